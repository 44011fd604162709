import torch
from torch import nn

from attention import ScaledDotProductAttention
from helpers import rearrange


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        q, k, v = rearrange(self.qkv(x), "b t (c h d) -> c b h t d", c=3, h=self.n_heads)
        mask = None
        if causal:
            mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        if key_padding_mask is not None:
            pad = rearrange(key_padding_mask, "b t -> b 1 1 t")
            mask = pad if mask is None else mask | pad
        out, _ = self.attention(q, k, v, mask)
        return self.proj(rearrange(out, "b h t d -> b t (h d)"))
