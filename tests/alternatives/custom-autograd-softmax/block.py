import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from starter.multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    """The feed-forward net is recomputed in the backward pass, to save memory."""

    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def cheap_ffn(self, x):
        return checkpoint(self.ffn, x, use_reentrant=False)

    def forward(self, x, causal=True, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attn(self.ln1(x), causal, key_padding_mask)
            x = x + self.cheap_ffn(self.ln2(x))
        else:
            x = self.ln1(x + self.attn(x, causal, key_padding_mask))
            x = self.ln2(x + self.cheap_ffn(x))
        return x
