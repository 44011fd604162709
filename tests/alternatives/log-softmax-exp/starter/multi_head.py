from typing import Optional

import torch
import torch.nn as nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    causal_mask: torch.Tensor

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("d_model has to be a multiple of n_heads")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attn = ScaledDotProductAttention()
        self.register_buffer("causal_mask", torch.ones(0, 0, dtype=torch.bool), persistent=True)

    def _get_mask(self, T: int, device: torch.device) -> torch.Tensor:
        """The buffer grows to the longest sequence seen so far."""
        if self.causal_mask.shape[0] < T:
            self.causal_mask = torch.ones(T, T, dtype=torch.bool, device=device).triu(1)
        return self.causal_mask[:T, :T]

    def forward(
        self,
        x: torch.Tensor,
        causal: bool = True,
        key_padding_mask: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, D // self.n_heads).unbind(2)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)

        mask: Optional[torch.Tensor] = None
        if causal:
            mask = self._get_mask(T, x.device)
        if key_padding_mask is not None:
            pad = key_padding_mask[:, None, None, :]
            mask = pad if mask is None else (mask | pad)

        y, _ = self.attn(q, k, v, mask=mask)
        return self.proj(y.transpose(1, 2).flatten(2))
