import torch.nn as nn
from multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super(TransformerBlock, self).__init__()
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        # the same modules once more, in order, to loop over them below
        self.sublayers = nn.ModuleList([self.attn, self.ffn])
        self.norms = nn.ModuleList([self.ln1, self.ln2])
        self.norm_first = norm_first

    def forward(self, x, causal=True, key_padding_mask=None):
        extra = [(causal, key_padding_mask), ()]
        for sublayer, norm, args in zip(self.sublayers, self.norms, extra):
            if self.norm_first:
                x = x + sublayer(norm(x), *args)
            else:
                x = norm(x + sublayer(x, *args))
        return x
