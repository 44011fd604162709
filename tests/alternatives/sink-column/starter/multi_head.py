import torch
from torch import nn

from attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("d_model must be a multiple of n_heads")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.att = ScaledDotProductAttention()
        # 0 and 1 in floats, so that .to(dtype) changes it with everything else; grows when needed
        self.register_buffer("tri", torch.ones(1, 1), persistent=False)

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        if T > len(self.tri):
            self.tri = torch.tril(x.new_ones(T, T))
        allowed = self.tri[:T, :T] if causal else x.new_ones(T, T)
        if key_padding_mask is not None:
            allowed = allowed * key_padding_mask.logical_not().to(allowed.dtype)[:, None, None, :]
        out = self.att(q, k, v, allowed < 0.5)[0]
        return self.proj(out.transpose(1, 2).reshape(B, T, D))
