import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("d_model must be divisible by n_heads!")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def open_keys(self, x, causal, key_padding_mask):
        """Float, 1 where query i may look at key j, and 0 elsewhere; the two masks are multiplied."""
        T = x.shape[1]
        keep = torch.ones(T, T, device=x.device)
        if causal:
            keep = torch.tril(keep)
        if key_padding_mask is not None:
            keep = keep * (1 - key_padding_mask.float())[:, None, None, :]
        return keep

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.n_heads, self.d_head)
        q, k, v = (qkv.select(2, i).transpose(1, 2) for i in range(3))
        keep = self.open_keys(x, causal, key_padding_mask)
        out, weights = self.attention(q, k, v, keep == 0)
        out = out.transpose(1, 2).reshape(B, T, D)
        return self.proj(out)
