import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    """I keep keys in the rows and queries in the columns: S = K Q^T, so the softmax goes down dim -2."""

    def forward(self, q, k, v, mask=None):
        S = k @ q.transpose(-2, -1) / q.shape[-1] ** 0.5      # (..., T_k, T_q)
        if mask is None:
            P = S.softmax(dim=-2)
        else:
            shape = S.shape[:-2] + (S.shape[-1], S.shape[-2])
            blocked = torch.broadcast_to(mask, shape).transpose(-2, -1)
            empty = blocked.all(dim=-2, keepdim=True)
            S = S.masked_fill(blocked & ~empty, -torch.inf)
            P = S.softmax(dim=-2) * ~empty
        return P.transpose(-2, -1) @ v, P.transpose(-2, -1)
