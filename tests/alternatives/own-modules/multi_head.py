import torch
from torch import nn

from starter.attention import ScaledDotProductAttention
from starter.layers import Linear


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"n_heads={n_heads} does not divide d_model={d_model}")
        self.n_heads = n_heads
        self.qkv = Linear(d_model, 3 * d_model)
        self.proj = Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        q, k, v = [p.reshape(B, T, self.n_heads, -1).transpose(1, 2) for p in self.qkv(x).chunk(3, -1)]
        mask = torch.zeros(1, 1, T, T, dtype=torch.bool, device=x.device)
        if causal:
            mask = mask.logical_or(torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1))
        if key_padding_mask is not None:
            mask = mask.logical_or(key_padding_mask[:, None, None])
        y = self.attention(q, k, v, mask)[0]
        return self.proj(y.transpose(1, 2).reshape(B, T, D))
