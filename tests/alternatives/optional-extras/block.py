import torch.nn as nn

from starter.multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff=None, norm_first=True, *, dropout=0.0, activation=nn.GELU, eps=1e-5):
        super().__init__()
        d_ff = d_ff or 4 * d_model
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model, eps=eps)
        self.attn = MultiHeadSelfAttention(d_model, n_heads, dropout=dropout)
        self.ln2 = nn.LayerNorm(d_model, eps=eps)
        self.ffn = nn.Sequential(
            nn.Linear(d_model, d_ff),
            activation(),
            nn.Linear(d_ff, d_model),
            nn.Dropout(dropout),
        )

    def forward(self, x, causal=True, key_padding_mask=None, **kwargs):
        if self.norm_first:
            x = x + self.attn(self.ln1(x), causal, key_padding_mask, **kwargs)
            x = x + self.ffn(self.ln2(x))
        else:
            x = self.ln1(x + self.attn(x, causal, key_padding_mask, **kwargs))
            x = self.ln2(x + self.ffn(x))
        return x
