import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        assert d_model % n_heads == 0, "d_model must be divisible by n_heads"
        self.n_heads = n_heads
        # one container for everything, and then short names for its items
        self.layers = nn.ModuleDict()
        self.layers["in"] = nn.Linear(d_model, 3 * d_model)
        self.layers["out"] = nn.Linear(d_model, d_model)
        self.qkv = self.layers["in"]
        self.proj = self.layers["out"]
        self.attention = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        q, k, v = self.layers["in"](x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        mask = torch.full((T, T), causal, dtype=torch.bool, device=x.device).triu(1)
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, None, :]
        out, _ = self.attention(q, k, v, mask)
        return self.layers["out"](out.transpose(1, 2).reshape(B, T, D))
