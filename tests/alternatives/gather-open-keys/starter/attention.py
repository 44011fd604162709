import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if mask is None:
            keep = torch.ones_like(scores, dtype=torch.bool)
        else:
            keep = ~mask.expand_as(scores)
        has_key = keep.any(-1, True)
        keep_or_dead = keep | ~has_key  # dead rows stay as they are and are zeroed below
        weights = scores.where(keep_or_dead, -torch.inf).softmax(-1)
        weights = weights.where(has_key, 0.0)
        return weights @ v, weights
