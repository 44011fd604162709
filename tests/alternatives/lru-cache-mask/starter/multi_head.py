from __future__ import annotations

from functools import lru_cache

import torch
from torch import nn

from starter.attention import ScaledDotProductAttention

__all__ = ["MultiHeadSelfAttention"]


@lru_cache(maxsize=32)
def future(length: int, device: torch.device) -> torch.Tensor:
    """Built once per length, read only."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int) -> None:
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def forward(
        self, x: torch.Tensor, causal: bool = True, key_padding_mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, D // self.n_heads).permute(2, 0, 3, 1, 4)
        masks = []
        if causal:
            masks.append(future(T, x.device))
        if key_padding_mask is not None:
            masks.append(key_padding_mask[:, None, None, :])
        mask = masks[0] if masks else None
        for m in masks[1:]:
            mask = mask | m
        out, _ = self.attention(q, k, v, mask)
        return self.proj(out.transpose(1, 2).reshape(B, T, D))
