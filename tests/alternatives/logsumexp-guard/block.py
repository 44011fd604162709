from torch import nn

from .multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):

    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        for i in (1, 2):
            setattr(self, f'ln{i}', nn.LayerNorm(d_model))
        self.add_module('attn', MultiHeadSelfAttention(d_model, n_heads))
        self.add_module('ffn', nn.Sequential())
        self.ffn.append(nn.Linear(d_model, d_ff))
        self.ffn.append(nn.GELU())
        self.ffn.append(nn.Linear(d_ff, d_model))
        self.forward_fn = self.forward_pre if norm_first else self.forward_post

    def forward_pre(self, x, causal, key_padding_mask):
        x = x + self.attn(self.ln1(x), causal, key_padding_mask)
        x = x + self.ffn(self.ln2(x))
        return x

    def forward_post(self, x, causal, key_padding_mask):
        x = self.ln1(x + self.attn(x, causal, key_padding_mask))
        x = self.ln2(x + self.ffn(x))
        return x

    def forward(self, x, causal=True, key_padding_mask=None):
        return self.forward_fn(x, causal, key_padding_mask)
