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

    def forward(self, x, causal=True, key_padding_mask=None):
        x = self.first_half(x, causal, key_padding_mask)
        x = self.second_half(x)
        return x

    def first_half(self, x, causal, key_padding_mask):
        if self.norm_first:
            return self.attn(self.ln1(x), causal, key_padding_mask) + x
        return self.ln1(self.attn(x, causal, key_padding_mask) + x)

    def second_half(self, x):
        if self.norm_first:
            return self.ffn(self.ln2(x)) + x
        return self.ln2(self.ffn(x) + x)
