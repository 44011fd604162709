import torch
from torch import nn

from .attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.shape = 3, n_heads, d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attend = ScaledDotProductAttention()
        self.register_buffer("never", torch.zeros(1, 1, 1, 1, dtype=torch.bool), persistent=False)

    def forward(self, x, causal=True, key_padding_mask=None):
        T = x.shape[1]
        q, k, v = self.qkv(x).unflatten(2, self.shape).permute(2, 0, 3, 1, 4)
        future = self.never if not causal else ~torch.ones(1, 1, T, T, device=x.device).tril().bool()
        padding = self.never if key_padding_mask is None else key_padding_mask[:, None, None]
        out, _ = self.attend(q, k, v, future | padding)
        return self.proj(out.transpose(1, 2).flatten(2))
