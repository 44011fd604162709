from torch import nn

from starter.multi_head import MultiHeadSelfAttention


class Chain(nn.Module):
    """My own nn.Sequential."""

    def __init__(self, *steps):
        super().__init__()
        for i, step in enumerate(steps):
            self.add_module(str(i), step)

    def forward(self, x):
        for step in self.children():
            x = step(x)
        return x


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln2 = nn.LayerNorm(d_model)
        self.ffn = Chain(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, causal=True, key_padding_mask=None):
        return self.pre(x, causal, key_padding_mask) if self.norm_first else self.post(x, causal, key_padding_mask)

    def pre(self, x, *masks):
        x = x + self.attn(self.ln1(x), *masks)
        return x + self.ffn(self.ln2(x))

    def post(self, x, *masks):
        x = self.ln1(x + self.attn(x, *masks))
        return self.ln2(x + self.ffn(x))
