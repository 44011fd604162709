import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    def scores(self, q, k):
        return q.matmul(k.transpose(-2, -1)).div(q.size(-1) ** 0.5)

    def normalise(self, scores, mask):
        if mask is None:
            return scores.softmax(-1)
        lowest = torch.finfo(scores.dtype).min
        # exp(lowest - max) is exactly 0, unless the whole row is at the lowest value;
        # the second line takes care of those rows
        weights = scores.masked_fill(mask, lowest).softmax(-1)
        return weights.masked_fill(mask, 0.0)

    def forward(self, q, k, v, mask=None):
        weights = self.normalise(self.scores(q, k), mask)
        return weights.matmul(v), weights
