import torch
from torch import nn

from attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("d_model must be a multiple of n_heads")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        qkv = self.qkv(x)
        batch = []
        for b in range(B):
            mask = torch.zeros(T, T, dtype=torch.bool)
            for i in range(T):
                for j in range(T):
                    if causal and j > i:
                        mask[i, j] = True
            if key_padding_mask is not None:
                for j in range(T):
                    if key_padding_mask[b, j]:
                        mask[:, j] = True
            heads = []
            for h in range(self.n_heads):
                lo, hi = h * self.d_head, (h + 1) * self.d_head
                q = qkv[b, :, lo:hi]
                k = qkv[b, :, D + lo:D + hi]
                v = qkv[b, :, 2 * D + lo:2 * D + hi]
                out, weights = self.attention(q, k, v, mask)
                heads.append(out)
            batch.append(torch.cat(heads, dim=1))
        return self.proj(torch.stack(batch))
