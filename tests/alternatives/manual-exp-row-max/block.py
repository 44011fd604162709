import numpy as np
import torch
from torch import nn

from starter.multi_head import MultiHeadSelfAttention

SQRT_2 = float(np.sqrt(2.0))


class GELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.erf(x / SQRT_2))


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, causal=True, key_padding_mask=None):
        ident = nn.Identity()
        pre1, post1 = (self.ln1, ident) if self.norm_first else (ident, self.ln1)
        pre2, post2 = (self.ln2, ident) if self.norm_first else (ident, self.ln2)
        x = post1(x + self.attn(pre1(x), causal, key_padding_mask))
        return post2(x + self.ffn(pre2(x)))
