import math
from typing import Optional

import torch
import torch.nn as nn


class ScaledDotProductAttention(nn.Module):
    """
    Parameters
    ----------
    dropout : float
        Dropout on the weights, off by default.
    scale : float, optional
        Replaces 1/sqrt(d_head).
    """

    def __init__(self, dropout: float = 0.0, scale: Optional[float] = None, **kwargs):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.scale = scale

    def forward(self, q, k, v, mask=None, *, return_scores=False):
        scale = self.scale or 1.0 / math.sqrt(q.size(-1))
        scores = scale * torch.matmul(q, k.transpose(-1, -2))
        if mask is None:
            weights = scores.softmax(dim=-1)
        else:
            assert mask.dtype == torch.bool
            weights = scores.masked_fill(mask, -math.inf).softmax(dim=-1).masked_fill(mask, 0.0)
        output = torch.matmul(self.dropout(weights), v)
        if return_scores:
            return output, weights, scores
        return output, weights
