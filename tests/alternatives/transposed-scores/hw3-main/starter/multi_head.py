import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        assert d_model % n_heads == 0
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        # features first, (3, H, d, B, T): then everything else is a transpose away
        z = self.qkv(x).permute(2, 0, 1).unflatten(0, (3, self.n_heads, D // self.n_heads))
        q, k, v = (a.permute(2, 0, 3, 1) for a in z)          # (B, H, T, d)

        sees = torch.ones(T, T, dtype=torch.bool, device=x.device)
        if causal:
            sees = sees.tril()
        if key_padding_mask is not None:
            sees = sees & ~key_padding_mask[:, None, None, :]

        y, _ = self.attention(q, k, v, ~sees)
        return self.proj(y.permute(0, 2, 1, 3).flatten(start_dim=2))
