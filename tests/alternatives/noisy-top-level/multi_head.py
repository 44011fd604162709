import sys

import torch
from torch import nn

from attention import ScaledDotProductAttention, log

torch.manual_seed(0)
print("loading multi_head", file=sys.stderr)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            print("ERROR: n_heads must divide d_model")
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()
        print(self)

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        print(f"{q.shape=} {k.shape=} {v.shape=}")
        mask = torch.zeros(T, T, dtype=torch.bool)
        if causal:
            mask = torch.ones(T, T, dtype=torch.bool).triu(1)
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, None, :]
        print("mask\n", mask.int())
        y, w = self.attention(q, k, v, mask)
        log.info("%d nans in the weights", w.isnan().sum().item())
        y = y.transpose(1, 2).reshape(B, T, D)
        return self.proj(y)


print("multi_head ok", file=sys.stderr)
