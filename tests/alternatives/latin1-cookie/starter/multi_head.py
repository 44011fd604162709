#!/usr/bin/env python
# vim: set fileencoding=iso-8859-1 :
import torch
from torch import nn

from .attention import ScaledDotProductAttention

FEHLER = "n_heads muß d_model teilen"


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(FEHLER)
        self.köpfe = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def aufteilen(self, t):
        return t.unflatten(2, (self.köpfe, -1)).transpose(1, 2)

    def forward(self, x, causal=True, key_padding_mask=None):
        L = x.shape[1]
        q, k, v = [self.aufteilen(t) for t in self.qkv(x).chunk(3, dim=2)]
        zukunft = torch.ones(L, L, dtype=torch.bool, device=x.device).triu(1) & causal
        if key_padding_mask is not None:
            zukunft = zukunft | key_padding_mask[:, None, None, :]
        y, _ = self.attention(q, k, v, zukunft)
        return self.proj(y.transpose(1, 2).flatten(2))
