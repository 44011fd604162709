from torch import nn

from starter.multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.attn = MultiHeadSelfAttention(d_model=d_model, n_heads=n_heads)
        self.ffn = nn.Sequential(
            nn.Linear(in_features=d_model, out_features=d_ff),
            nn.GELU(),
            nn.Linear(in_features=d_ff, out_features=d_model),
        )
        self.ln1 = nn.LayerNorm(normalized_shape=d_model)
        self.ln2 = nn.LayerNorm(normalized_shape=d_model)
        self.norm_first = norm_first

    def forward(self, x, causal=True, key_padding_mask=None):
        kw = dict(causal=causal, key_padding_mask=key_padding_mask)
        if self.norm_first:
            x = x + self.attn(x=self.ln1(x), **kw)
            return x + self.ffn(self.ln2(x))
        x = self.ln1(x + self.attn(x=x, **kw))
        return self.ln2(x + self.ffn(x))
