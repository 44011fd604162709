"""Part 1."""

import math

import torch
from torch import Tensor, nn


class ScaledDotProductAttention(nn.Module):
    """Scaled dot-product attention.

    q and k both get half of the scaling, so the product never gets larger than
    it has to be.
    """

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        quarter = math.sqrt(math.sqrt(k.shape[-1]))
        scores = (q / quarter) @ (k / quarter).transpose(-1, -2)
        if mask is None:
            mask = torch.zeros((), dtype=torch.bool, device=q.device)
        # -inf only where the row keeps at least one key, the softmax of a row of -inf is nan
        dead = mask.expand(scores.shape).all(dim=-1, keepdim=True)
        minus_inf = scores.new_tensor(-math.inf)
        scores = torch.where(mask & ~dead, minus_inf, scores)
        weights = torch.softmax(scores, dim=-1)
        weights = torch.where(dead, weights.new_zeros(()), weights)
        return weights @ v, weights
