import torch
from torch import nn

from multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln2 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, causal=True, key_padding_mask=None):
        print("block in ", x.shape, x.dtype)
        if self.norm_first:
            x = x + self.attn(self.ln1(x), causal, key_padding_mask)
            print("after attention", x.mean().item(), x.std().item())
            x = x + self.ffn(self.ln2(x))
        else:
            x = self.ln1(x + self.attn(x, causal, key_padding_mask))
            print("after attention", x.mean().item(), x.std().item())
            x = self.ln2(x + self.ffn(x))
        print("block out", x.shape, x.dtype)
        return x


block = TransformerBlock(64, 4, 256)
n = sum(p.numel() for p in block.parameters())
print("parameters:", n)
assert n == 49_984
