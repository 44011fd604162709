import torch
import torch.nn.functional as F
from torch import nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    """Uses that a Linear on every position is a convolution of width 1."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    @staticmethod
    def pointwise(x, linear):
        return F.conv1d(x, linear.weight.unsqueeze(-1), linear.bias)

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        z = self.pointwise(x.transpose(1, 2), self.qkv)          # (B, 3D, T)
        q, k, v = z.view(B, 3, self.n_heads, -1, T).transpose(-1, -2).unbind(1)

        pos = torch.arange(T, device=x.device)
        blocked = torch.zeros(B, 1, T, T, dtype=torch.bool, device=x.device)
        if causal:
            blocked = blocked | (pos.view(1, 1, 1, T) > pos.view(1, 1, T, 1))
        if key_padding_mask is not None:
            blocked = blocked | key_padding_mask.reshape(B, 1, 1, T)

        y, _ = self.attention(q, k, v, blocked)                  # (B, H, T, d)
        y = y.transpose(-1, -2).reshape(B, D, T)
        return self.pointwise(y, self.proj).transpose(1, 2)
