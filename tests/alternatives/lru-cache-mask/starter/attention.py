from __future__ import annotations

import math

import torch
from torch import nn

__all__ = ["ScaledDotProductAttention"]


class ScaledDotProductAttention(nn.Module):
    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = (q @ k.transpose(-2, -1)).mul(1 / math.sqrt(q.shape[-1]))
        if mask is not None:
            scores = scores.masked_fill(mask, -math.inf)
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights.masked_fill(mask, 0)
        output = torch.sum(weights.unsqueeze(-1) * v.unsqueeze(-3), dim=-2)
        return output, weights
