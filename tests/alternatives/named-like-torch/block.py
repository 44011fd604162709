from torch import nn

from multi_head import MultiHeadSelfAttention


class TransformerEncoderLayer(nn.Module):
    def __init__(self, d_model, nhead, dim_feedforward, norm_first):
        super().__init__()
        self.norm_first = norm_first
        self.attn = MultiHeadSelfAttention(d_model, nhead)
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, dim_feedforward), nn.GELU(), nn.Linear(dim_feedforward, d_model))

    def _sa_block(self, x, is_causal, key_padding_mask):
        return self.attn(x, is_causal, key_padding_mask)

    def _ff_block(self, x):
        return self.ffn(x)

    def forward(self, src, is_causal, src_key_padding_mask):
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.ln1(x), is_causal, src_key_padding_mask)
            x = x + self._ff_block(self.ln2(x))
        else:
            x = self.ln1(x + self._sa_block(x, is_causal, src_key_padding_mask))
            x = self.ln2(x + self._ff_block(x))
        return x


class TransformerBlock(TransformerEncoderLayer):
    """The same under the names that the homework asks for."""

    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__(d_model, nhead=n_heads, dim_feedforward=d_ff, norm_first=norm_first)

    def forward(self, x, causal=True, key_padding_mask=None):
        return super().forward(x, is_causal=causal, src_key_padding_mask=key_padding_mask)
