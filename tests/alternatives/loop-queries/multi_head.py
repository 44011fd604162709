import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model // n_heads * n_heads != d_model:
            raise ValueError("d_model / n_heads must be a whole number")
        self.n_heads = n_heads
        self.proj = nn.Linear(d_model, d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.attention = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        d = D // self.n_heads
        q, k, v = self.qkv(x).tensor_split(3, dim=-1)

        mask = torch.zeros(B, T, T, dtype=torch.bool, device=x.device)
        if causal:
            mask = mask | torch.ones_like(mask).triu(diagonal=1)
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, :]

        out = torch.empty(B, T, 0, dtype=x.dtype, device=x.device)
        for h in range(self.n_heads):
            mine = slice(h * d, (h + 1) * d)
            head, _ = self.attention(q[..., mine], k[..., mine], v[..., mine], mask)
            out = torch.cat((out, head), dim=-1)
        return self.proj(out)
