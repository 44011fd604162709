import torch
from torch import nn

from . import functional as F


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, x, causal=True, key_padding_mask=None):
        t = x.shape[1]
        mask = torch.zeros((t, t), dtype=torch.bool, device=x.device)
        if causal:
            mask = torch.triu(~mask, 1)
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, None, :]
        return F.multi_head_attention_forward(x, self.n_heads, self.qkv, self.proj, mask)
