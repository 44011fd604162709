"""Part 2."""

import torch
from torch import Tensor, nn

from .attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"{n_heads} heads do not fit into {d_model} features")
        self.d_model, self.n_heads = d_model, n_heads
        self.proj = nn.Linear(d_model, d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.attend = ScaledDotProductAttention()

    def forward(self, x: Tensor, causal: bool = True, key_padding_mask: Tensor | None = None) -> Tensor:
        heads = (self.n_heads, self.d_model // self.n_heads)
        q, k, v = (
            part.unflatten(-1, heads).movedim(-2, -3)  # (B, H, T, d_head)
            for part in torch.split(self.qkv(x), self.d_model, dim=-1)
        )
        t = torch.arange(x.shape[1], device=x.device)
        blocked = t[None, :] > t[:, None] if causal else torch.zeros_like(t, dtype=torch.bool)
        if key_padding_mask is not None:
            blocked = blocked | key_padding_mask[:, None, None]
        out, _ = self.attend(q, k, v, blocked)
        return self.proj(out.movedim(-3, -2).flatten(-2))
