from torch import nn

from starter.multi_head import MultiHeadSelfAttention


class FeedForward(nn.Sequential):
    def __init__(self, d_model, d_ff):
        super().__init__(nn.Linear(d_model, d_ff), nn.GELU(approximate="none"), nn.Linear(d_ff, d_model))


class _Block(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.ln1 = nn.LayerNorm(d_model, eps=1e-5)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln2 = nn.LayerNorm(d_model, eps=1e-5)
        self.ffn = FeedForward(d_model, d_ff)


class TransformerBlock(_Block):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__(d_model, n_heads, d_ff)
        self.norm_first = norm_first

    def forward(self, x, causal=True, key_padding_mask=None):
        if self.norm_first:
            y = x + self.attn(self.ln1(x), causal=causal, key_padding_mask=key_padding_mask)
            return y + self.ffn(self.ln2(y))
        y = self.ln1(x + self.attn(x, causal=causal, key_padding_mask=key_padding_mask))
        return self.ln2(y + self.ffn(y))
