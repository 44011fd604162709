import torch
from torch import nn

EPS = 1e-9


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        scores = torch.matmul(q, k.transpose(-2, -1)) / (q.shape[-1] ** 0.5)
        if mask is None:
            keep = torch.ones_like(scores)
        else:
            keep = 1.0 - mask.to(scores.dtype).expand_as(scores)   # 1 = open, 0 = blocked

        # largest open score of the row (0 if there is none), blocked ones are pulled down to it
        best = scores.masked_fill(keep == 0, -torch.inf).max(dim=-1, keepdim=True).values.detach()
        best = torch.nan_to_num(best, neginf=0.0)
        shifted = torch.where(keep == 0, 0.0, scores - best)

        e = torch.exp(shifted) * keep
        # e.sum() is at least 1 in a row with an open key, so EPS only matters in empty rows: 0 / EPS = 0
        weights = e / (e.sum(dim=-1, keepdim=True) + EPS)
        return torch.matmul(weights, v), weights
