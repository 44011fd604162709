import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    """No matrix products, only broadcasting. Costs memory, but every axis has a place."""

    def forward(self, q, k, v, mask=None):
        d_head = q.shape[-1]
        #                 query axis         key axis
        prod = q[..., :, None, :] * k[..., None, :, :]       # (..., T_q, T_k, d)
        scores = prod.sum(-1) * d_head**-0.5

        if mask is not None:
            scores = torch.where(mask, torch.full_like(scores, float("-inf")), scores)
        weights = nn.Softmax(dim=-1)(scores)
        if mask is not None:
            weights = torch.where(mask, torch.zeros_like(weights), weights)

        out = (weights[..., None] * v[..., None, :, :]).sum(-2)  # (..., T_q, d_v)
        return out, weights
