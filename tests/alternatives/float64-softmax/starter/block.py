import torch.nn.functional as F
from torch import nn

from multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.ModuleDict({"0": nn.Linear(d_model, d_ff), "2": nn.Linear(d_ff, d_model)})
        self.ln2 = nn.LayerNorm(d_model)
        self.ln1 = nn.LayerNorm(d_model)
        self.pre = bool(norm_first)

    def feed_forward(self, x):
        return self.ffn["2"](F.gelu(self.ffn["0"](x)))

    def forward(self, x, causal=True, key_padding_mask=None):
        if self.pre:
            x = x + self.attn(self.ln1(x), causal, key_padding_mask)
            x = x + self.feed_forward(self.ln2(x))
            return x
        x = self.ln1(x + self.attn(x, causal, key_padding_mask))
        x = self.ln2(x + self.feed_forward(x))
        return x
