import math
import torch
from torch import nn

from multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln2 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def sublayer1(self, x, causal, key_padding_mask):
        return self.attn(x, causal, key_padding_mask)

    def sublayer2(self, x):
        # position by position, to convince myself that the FFN does not mix positions
        return torch.stack([self.ffn(x[:, t]) for t in range(x.shape[1])], dim=1)

    def forward(self, x, causal=True, key_padding_mask=None):
        if self.norm_first:
            x = x + self.sublayer1(self.ln1(x), causal, key_padding_mask)
            x = x + self.sublayer2(self.ln2(x))
        else:
            x = self.ln1(x + self.sublayer1(x, causal, key_padding_mask))
            x = self.ln2(x + self.sublayer2(x))
        return x
