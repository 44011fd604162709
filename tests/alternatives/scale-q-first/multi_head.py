import torch
import torch.nn as nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("d_model must be divisible by n_heads")
        self.h = n_heads
        self.d_k = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.sdpa = ScaledDotProductAttention()

    def split_heads(self, t):
        b, n, _ = t.size()
        return t.view(b, n, self.h, self.d_k).transpose(1, 2)

    def merge_heads(self, t):
        b, _, n, _ = t.size()
        return t.transpose(1, 2).contiguous().view(b, n, self.h * self.d_k)

    def forward(self, x, causal=True, key_padding_mask=None):
        n = x.size(1)
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))

        mask = None
        if causal:
            mask = torch.triu(torch.ones(n, n, device=x.device), diagonal=1).bool()
        if key_padding_mask is not None:
            pad = key_padding_mask.unsqueeze(1).unsqueeze(2)
            mask = pad if mask is None else torch.logical_or(mask, pad)

        out, _ = self.sdpa(q, k, v, mask)
        return self.proj(self.merge_heads(out))
