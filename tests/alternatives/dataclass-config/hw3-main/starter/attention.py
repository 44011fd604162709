from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Attended(NamedTuple):
    output: Tensor   # (..., T_q, d_v)
    weights: Tensor  # (..., T_q, T_k)


class ScaledDotProductAttention(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Attended:
        scores = self._scores(q, k)
        weights = self._softmax(scores) if mask is None else self._masked_softmax(scores, mask)
        return Attended(output=weights @ v, weights=weights)

    @staticmethod
    def _scores(q: Tensor, k: Tensor) -> Tensor:
        return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])

    @staticmethod
    def _softmax(scores: Tensor) -> Tensor:
        # 2^(x log2 e) = e^x
        scores = scores - scores.detach().amax(dim=-1, keepdim=True)
        powers = torch.exp2(scores * math.log2(math.e))
        return powers / powers.sum(dim=-1, keepdim=True)

    @classmethod
    def _masked_softmax(cls, scores: Tensor, mask: Tensor) -> Tensor:
        alive = ~mask.expand_as(scores).all(dim=-1, keepdim=True)
        filled = scores.masked_fill(mask & alive, -math.inf)
        return cls._softmax(filled).masked_fill(~alive, 0.0)
