import torch
from torch import nn

import starter.attention as A


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"{d_model=} {n_heads=}")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = A.ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        q, k, v = self.qkv(x).reshape(B, T, 3 * self.n_heads, -1).transpose(1, 2).chunk(3, dim=1)
        mask = x.new_zeros((B, self.n_heads, T, T), dtype=torch.bool)
        if causal:
            i, j = torch.triu_indices(T, T, offset=1, device=x.device)
            mask[..., i, j] = True
        if key_padding_mask is not None:
            mask |= key_padding_mask[:, None, None, :]
        out, _ = self.attention(q, k, v, mask)
        return self.proj(out.transpose(1, 2).reshape(B, T, D))
