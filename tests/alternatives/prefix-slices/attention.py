import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        d_head = q.shape[-1]
        scores = torch.matmul(q, torch.transpose(k, -1, -2))
        scores = scores.div(d_head**0.5)
        if mask is None:
            weights = torch.softmax(scores, -1)
            return torch.matmul(weights, v), weights

        open_ = torch.logical_not(mask)
        # exponentials relative to the best open key
        best = torch.where(open_, scores, -torch.inf).amax(-1, keepdim=True)
        best = torch.where(best == -torch.inf, 0.0, best)
        e = torch.where(open_, scores - best, -torch.inf).exp()
        total = e.sum(-1, keepdim=True)
        weights = e / total.clamp_min(0.5)  # total is 0 or >= 1
        return torch.matmul(weights, v), weights
