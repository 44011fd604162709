import numpy as np
import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model={d_model} is not a multiple of n_heads={n_heads}")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.sdpa = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        H = self.n_heads

        q, k, v = np.split(np.arange(3 * D), 3)  # which features are whose
        z = self.qkv(x)
        q, k, v = [z[..., i[0]:i[-1] + 1].view(B, T, H, D // H).transpose(1, 2) for i in (q, k, v)]

        mask = np.triu(np.ones((T, T), dtype=bool), k=1) if causal else np.zeros((T, T), dtype=bool)
        mask = torch.from_numpy(mask).to(x.device)
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, np.newaxis, np.newaxis, :]

        o, _ = self.sdpa(q, k, v, mask)
        return self.proj(o.transpose(1, 2).reshape(B, T, D))
