import math

import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    @torch.compile(dynamic=True)
    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        d_head = q.shape[-1]
        scores = q @ k.transpose(-2, -1) / math.sqrt(d_head)  # (..., T_q, T_k)
        if mask is None:
            weights = torch.softmax(scores, dim=-1)
            return weights @ v, weights  # (..., T_q, d_v)
        # -inf blocks exactly whatever the size of the scores. A row with no key left turns into NaN,
        # which the second fill replaces; neither fill lets a gradient through where it wrote.
        weights = torch.softmax(scores.masked_fill(mask, -math.inf), dim=-1)
        weights = weights.masked_fill(mask, 0.0)  # (..., T_q, T_k)
        return weights @ v, weights  # (..., T_q, d_v)
