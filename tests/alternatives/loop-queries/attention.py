import math
import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    """One query at a time. Slower, but I can follow what happens."""

    def attend_one(self, query, keys, values, blocked):
        # query (..., d), keys (..., T_k, d), values (..., T_k, d_v), blocked (..., T_k)
        s = (keys @ query.unsqueeze(-1)).squeeze(-1) / math.sqrt(query.shape[-1])
        s = s.masked_fill(blocked, -math.inf)
        w = torch.softmax(s, dim=-1)
        w = w.masked_fill(blocked, 0.0)
        return (w.unsqueeze(-2) @ values).squeeze(-2), w

    def forward(self, q, k, v, mask=None):
        shape = q.shape[:-1] + (k.shape[-2],)
        if mask is None:
            mask = torch.zeros(shape, dtype=torch.bool, device=q.device)
        mask = mask.expand(shape)
        outs, ws = [], []
        for t in range(q.shape[-2]):
            o, w = self.attend_one(q[..., t, :], k, v, mask[..., t, :])
            outs.append(o)
            ws.append(w)
        return torch.stack(outs, dim=-2), torch.stack(ws, dim=-2)
