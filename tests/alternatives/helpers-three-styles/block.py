from torch import nn

from .helpers import residual
from .multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln2 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, causal=True, key_padding_mask=None):
        x = residual(x, lambda y: self.attn(y, causal, key_padding_mask), self.ln1, self.norm_first)
        return residual(x, self.ffn, self.ln2, self.norm_first)
