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
        if self.norm_first:
            x = self.ln1(x)
            x = x + self.attn(x, causal, key_padding_mask)
            x = self.ln2(x)
            x = x + self.ffn(x)
        else:
            x = self.ln1(x + self.attn(x, causal, key_padding_mask))
            x = self.ln2(x + self.ffn(x))
        return x
