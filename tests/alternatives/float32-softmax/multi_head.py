import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


class QKVProjection(nn.Linear):
    """A Linear that hands out q, k and v already cut into heads, (B, H, T, d_head) each."""

    def __init__(self, d_model, n_heads):
        super().__init__(d_model, 3 * d_model)
        self.n_heads = n_heads

    def forward(self, x):
        bsz, seqlen, dim = x.shape
        xqkv = super().forward(x).view(bsz, seqlen, 3, self.n_heads, dim // self.n_heads)
        return xqkv.permute(2, 0, 3, 1, 4).unbind(0)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.qkv = QKVProjection(d_model, n_heads)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()
        # not part of the state_dict
        self.register_buffer("mask", torch.triu(torch.ones(256, 256), 1).bool(), persistent=False)

    def forward(self, x, causal=True, key_padding_mask=None):
        bsz, seqlen, dim = x.shape
        xq, xk, xv = self.qkv(x)
        if seqlen > self.mask.shape[0]:
            self.mask = torch.triu(torch.ones(seqlen, seqlen, device=x.device), 1).bool()
        mask = self.mask[:seqlen, :seqlen] & causal  # & False switches it off
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, None, :]
        output, _ = self.attention(xq, xk, xv, mask)
        return self.proj(output.transpose(1, 2).contiguous().view(bsz, seqlen, dim))
