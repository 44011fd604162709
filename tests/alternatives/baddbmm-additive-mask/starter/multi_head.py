import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("d_model % n_heads != 0")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def causal_mask(self, x):
        T = x.size(1)
        additive = torch.full((T, T), float("-inf"), device=x.device).triu(1)
        return additive.isinf()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        qkv = self.qkv(x).reshape(B, T, 3, self.n_heads, -1)
        q, k, v = qkv.transpose(1, 3).unbind(dim=2)  # (B, H, 3, T, d) -> 3 x (B, H, T, d)
        mask = self.causal_mask(x).expand(B, 1, T, T) if causal else None
        if key_padding_mask is not None:
            cols = key_padding_mask[:, None, None, :].expand(B, 1, T, T)
            mask = cols if mask is None else mask + cols  # bool + bool is "or"
        out = self.attention(q, k, v, mask)[0]
        out = torch.cat(out.unbind(dim=1), dim=-1)
        return self.proj(out)
