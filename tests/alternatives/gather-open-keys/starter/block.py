from functools import partial

from torch import nn

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
        attend = partial(self.attn, causal=causal, key_padding_mask=key_padding_mask)
        for norm, sublayer in ((self.ln1, attend), (self.ln2, self.ffn)):
            match self.norm_first:
                case True:
                    x = x + sublayer(norm(x))
                case _:
                    x = norm(x + sublayer(x))
        return x
