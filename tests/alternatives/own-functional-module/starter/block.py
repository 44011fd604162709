from torch import nn

from . import functional as F
from .multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def norm(self, i, x):
        ln = getattr(self, f"ln{i}")
        return F.layer_norm(x, ln.weight, ln.bias)

    def mlp(self, x):
        w1, b1, w2, b2 = self.ffn.parameters()
        return F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2)

    def forward(self, x, causal=True, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attn(self.norm(1, x), causal, key_padding_mask)
            return x + self.mlp(self.norm(2, x))
        x = self.norm(1, x + self.attn(x, causal, key_padding_mask))
        return self.norm(2, x + self.mlp(x))
