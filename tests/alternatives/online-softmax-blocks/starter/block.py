from torch import nn

import starter.multi_head


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.attn = starter.multi_head.MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, causal=True, key_padding_mask=None):
        f = lambda y: self.attn(y, causal, key_padding_mask)
        g = self.ffn
        if self.norm_first:
            u = f(self.ln1(x)) + x
            return g(self.ln2(u)) + u
        u = self.ln1(f(x) + x)
        return self.ln2(g(u) + u)
