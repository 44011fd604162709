from torch import nn


class TransformerBlock(nn.Module):

    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        from starter.multi_head import MultiHeadSelfAttention  # here, to avoid a circular import

        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        layers = []
        layers.append(nn.Linear(d_model, d_ff))
        layers.append(nn.GELU())
        layers.append(nn.Linear(d_ff, d_model))
        self.ffn = nn.Sequential(*layers)

    def forward(self, x, causal=True, key_padding_mask=None):
        residual = x
        if self.norm_first:
            x = self.ln1(x)
        x = self.attn(x, causal, key_padding_mask)
        x = residual + x
        if not self.norm_first:
            x = self.ln1(x)

        residual = x
        if self.norm_first:
            x = self.ln2(x)
        x = self.ffn(x)
        x = residual + x
        if not self.norm_first:
            x = self.ln2(x)
        return x
