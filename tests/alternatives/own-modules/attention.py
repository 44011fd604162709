import math

import torch
from torch import nn


def softmax(x, dim):
    x = x - x.amax(dim=dim, keepdim=True)
    e = x.exp()
    return e / e.sum(dim=dim, keepdim=True)


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
        if mask is None:
            weights = softmax(scores, -1)
        else:
            alive = (~mask).expand_as(scores).any(dim=-1, keepdim=True)
            # an unmasked stand-in row for those with nothing to look at, its result is thrown away
            weights = softmax(scores.masked_fill(mask & alive, -math.inf), -1)
            weights = weights.masked_fill(~alive, 0.0)
        return weights @ v, weights
