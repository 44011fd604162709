import math

import torch
from torch import Tensor, nn

from .types import Mask, OutputAndWeights


class ScaledDotProductAttention(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask = None) -> OutputAndWeights:
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is None:
            weights = torch.softmax(scores, dim=-1)
        else:
            weights = torch.softmax(scores.masked_fill(mask, -math.inf), dim=-1)
            weights = weights.masked_fill(mask.all(dim=-1, keepdim=True) if mask.dim() else mask, 0.0)
        return weights @ v, weights
