from torch import nn

from starter.layers import GELU, LayerNorm, Linear, Sequential
from starter.multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln2 = LayerNorm(d_model)
        self.ffn = Sequential(Linear(d_model, d_ff), GELU(), Linear(d_ff, d_model))

    def forward(self, x, causal=True, key_padding_mask=None):
        if not self.norm_first:
            x = self.ln1(x + self.attn(x, causal, key_padding_mask))
            x = self.ln2(x + self.ffn(x))
            return x
        x = x + self.attn(self.ln1(x), causal, key_padding_mask)
        x = x + self.ffn(self.ln2(x))
        return x
