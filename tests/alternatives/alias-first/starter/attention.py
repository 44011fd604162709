import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        scores = torch.einsum("...td,...sd->...ts", q, k) / q.shape[-1] ** 0.5
        if mask is not None:
            lowest = torch.finfo(scores.dtype).min
            scores = torch.where(mask, lowest, scores)
        weights = torch.softmax(scores, dim=-1)
        if mask is not None:
            weights = torch.where(mask, 0.0, weights)
        return torch.einsum("...ts,...sd->...td", weights, v), weights
