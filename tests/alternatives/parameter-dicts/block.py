import math

import torch
import torch.nn as nn

from multi_head import MultiHeadSelfAttention, affine, apply


def layer_norm(params, x):
    d = x - x.mean(-1, keepdim=True)
    return d / torch.sqrt((d * d).mean(-1, keepdim=True) + 1e-5) * params["weight"] + params["bias"]


def gelu(x):
    return 0.5 * x * torch.erfc(-x / math.sqrt(2))


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        for name in ("ln1", "ln2"):
            params = {"weight": nn.Parameter(torch.ones(d_model)), "bias": nn.Parameter(torch.zeros(d_model))}
            self.add_module(name, nn.ParameterDict(params))
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.ModuleList([affine(d_model, d_ff), nn.Identity(), affine(d_ff, d_model)])

    def mlp(self, x):
        return apply(self.ffn[2], gelu(apply(self.ffn[0], x)))

    def forward(self, x, causal=True, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attn(layer_norm(self.ln1, x), causal, key_padding_mask)
            return x + self.mlp(layer_norm(self.ln2, x))
        x = layer_norm(self.ln1, x + self.attn(x, causal, key_padding_mask))
        return layer_norm(self.ln2, x + self.mlp(x))
