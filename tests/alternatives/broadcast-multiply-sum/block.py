import torch
import torch.nn.functional as F
from torch import nn

from starter.multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln2 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def add(self, x, norm, sublayer):
        return x + sublayer(norm(x)) if self.norm_first else norm(x + sublayer(x))

    def forward(self, x, causal=True, key_padding_mask=None):
        def attend(y):
            return self.attn(y, causal=causal, key_padding_mask=key_padding_mask)

        return self.add(self.add(x, self.ln1, attend), self.ln2, self.ffn)
