import torch
from torch import nn

from attention import scaled_dot_product_attention


class MultiheadAttention(nn.Module):
    """Self-attention with several heads, input (B, T, D)."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.embed_dim = d_model
        self.num_heads = n_heads
        self.head_dim = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def _shape(self, t):
        return t.reshape(t.size(0), t.size(1), self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x, attn_mask=None, key_padding_mask=None):
        q, k, v = self.qkv(x).split(self.embed_dim, -1)
        mask = attn_mask
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask[:, None, None, :]
            mask = key_padding_mask if mask is None else mask | key_padding_mask
        out, _ = scaled_dot_product_attention(self._shape(q), self._shape(k), self._shape(v), mask)
        return self.proj(out.transpose(1, 2).reshape(x.shape))


class MultiHeadSelfAttention(MultiheadAttention):
    def forward(self, x, causal=True, key_padding_mask=None):
        attn_mask = None
        if causal:
            t = x.size(1)
            attn_mask = torch.ones((t, t), dtype=torch.bool, device=x.device).triu(1)
        return super().forward(x, attn_mask, key_padding_mask)
