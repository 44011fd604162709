from typing import Optional

import torch
from torch import Tensor, nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model % n_heads is {d_model % n_heads}, not 0")
        self.heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.core = ScaledDotProductAttention()

    def forward(self, x: Tensor, causal: bool = True, key_padding_mask: Optional[Tensor] = None) -> Tensor:
        b, t, d = x.shape
        qkv = self.qkv(x).unflatten(-1, (3, self.heads, d // self.heads))
        q, k, v = qkv.movedim(1, -2).unbind(1)  # (b, 3, heads, t, d_head)
        steps = torch.arange(t, device=x.device)
        limit = steps if causal else torch.full_like(steps, t - 1)  # last key that each query sees
        mask = steps.unsqueeze(0) > limit.unsqueeze(1)
        if key_padding_mask is not None:
            mask = torch.where(key_padding_mask[:, None, None, :], True, mask)
        out, _ = self.core(q, k, v, mask)
        return self.proj(out.movedim(1, 2).reshape(b, t, d))
