from torch import nn

from starter.multi_head import MultiHeadSelfAttention


class Sublayer(nn.Module):
    def __init__(self, d_model, body, norm_first):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.body = body
        self.norm_first = norm_first

    def forward(self, x, *args):
        if self.norm_first:
            return x + self.body(self.norm(x), *args)
        return self.norm(x + self.body(x, *args))


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        mlp = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
        self.sub1 = Sublayer(d_model, MultiHeadSelfAttention(d_model, n_heads), norm_first)
        self.sub2 = Sublayer(d_model, mlp, norm_first)
        # the names from the handout, for the same modules
        self.ln1, self.attn = self.sub1.norm, self.sub1.body
        self.ln2, self.ffn = self.sub2.norm, self.sub2.body

    def forward(self, x, causal=True, key_padding_mask=None):
        return self.sub2(self.sub1(x, causal, key_padding_mask))
