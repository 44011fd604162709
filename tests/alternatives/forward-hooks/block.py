import torch
from torch import nn

from starter.multi_head import MultiHeadSelfAttention


class LayerNorm(nn.LayerNorm):
    """nn.LayerNorm with the formula written out."""

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / (var + self.eps).sqrt() * self.weight + self.bias


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = LayerNorm(d_model)
        self.ln2 = LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x, causal=True, key_padding_mask=None):
        if self.norm_first:
            x = torch.stack([x, self.attn(self.ln1(x), causal, key_padding_mask)]).sum(0)
            return torch.stack([x, self.ffn(self.ln2(x))]).sum(0)
        x = self.ln1(x + self.attn(x, causal, key_padding_mask))
        return self.ln2(x + self.ffn(x))
