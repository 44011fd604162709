import torch
from torch import nn


def scaled_dot_product_attention(q, k, v, mask=None):
    """Same name as the one in torch, but written by me."""
    scale = 1.0 / (q.shape[-1] ** 0.5)
    attn = (q * scale) @ k.transpose(-2, -1)
    if mask is not None:
        attn = attn.masked_fill(mask, float("-inf"))
    attn = torch.softmax(attn, dim=-1)
    if mask is not None:
        attn = attn.masked_fill(mask, 0.0)
    return attn @ v, attn


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        return scaled_dot_product_attention(q, k, v, mask)
