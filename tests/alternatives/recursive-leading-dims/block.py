from torch import nn

from .multi_head import MultiHeadSelfAttention


class PreNorm(nn.Module):
    def forward(self, x, norm, f):
        return x + f(norm(x))


class PostNorm(nn.Module):
    def forward(self, x, norm, f):
        return norm(x + f(x))


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.wiring = PreNorm() if norm_first else PostNorm()
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln2 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, causal=True, key_padding_mask=None):
        x = self.wiring(x, self.ln1, lambda y: self.attn(y, causal, key_padding_mask))
        return self.wiring(x, self.ln2, self.ffn)
