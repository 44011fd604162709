# coding: cp1252
"""„Teil 3“ – der Block"""
from torch import nn

from .multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.zuerst = norm_first
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, causal=True, key_padding_mask=None):
        if self.zuerst:
            x = x + self.attn(self.ln1(x), causal, key_padding_mask)
            return x + self.ffn(self.ln2(x))
        x = self.ln1(x + self.attn(x, causal, key_padding_mask))
        return self.ln2(x + self.ffn(x))
