from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from starter.attention import Attended, ScaledDotProductAttention


@dataclass(frozen=True)
class HeadConfig:
    d_model: int
    n_heads: int

    def __post_init__(self) -> None:
        if self.d_model % self.n_heads != 0:
            raise ValueError(f"n_heads={self.n_heads} does not divide d_model={self.d_model}")

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.config = HeadConfig(d_model, n_heads)
        self.qkv: nn.Linear = nn.Linear(d_model, 3 * d_model)
        self.proj: nn.Linear = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def forward(self, x: Tensor, causal: bool = True, key_padding_mask: Tensor | None = None) -> Tensor:
        q, k, v = self._heads(self.qkv(x))
        attended: Attended = self.attention(q, k, v, self._mask(x, causal, key_padding_mask))
        return self.proj(attended.output.transpose(1, 2).flatten(2))

    def _heads(self, qkv: Tensor) -> tuple[Tensor, ...]:
        c = self.config
        return qkv.unflatten(-1, (3, c.n_heads, c.d_head)).permute(2, 0, 3, 1, 4).unbind(0)

    @staticmethod
    def _mask(x: Tensor, causal: bool, key_padding_mask: Tensor | None) -> Tensor | None:
        if not causal and key_padding_mask is None:
            return None
        T = x.shape[1]
        mask = torch.zeros(T, T, dtype=torch.bool, device=x.device)
        if causal:
            mask = mask.logical_not().triu(diagonal=1)
        if (pad := key_padding_mask) is not None:
            mask = mask | pad[:, None, None, :]
        return mask
