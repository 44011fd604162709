'''Part 3: nn.TransformerEncoderLayer(d_model, n_heads, d_ff, dropout=0, activation="gelu", batch_first=True).'''

from torch import nn

from starter.multi_head import MultiHeadSelfAttention

HELP = """
import torch.nn as nn
layer = nn.TransformerEncoderLayer(64, 4, 256)   # <- not like this
out = nn.Transformer()(src, tgt)                 # <- and not like this
"""


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln2 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, causal=True, key_padding_mask=None):
        sa, ff = self.attn, self.ffn
        if self.norm_first:
            x = x + sa(self.ln1(x), causal, key_padding_mask)
            x = x + ff(self.ln2(x))
        else:
            x = self.ln1(x + sa(x, causal, key_padding_mask))
            x = self.ln2(x + ff(x))
        return x
