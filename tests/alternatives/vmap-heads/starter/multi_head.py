import torch
from torch import nn

from starter.attention import attend


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.n_heads, D // self.n_heads)
        q, k, v = qkv.unbind(dim=2)  # (B, T, H, d)

        mask = torch.zeros(B, T, T, dtype=torch.bool, device=x.device)
        if causal:
            mask = mask | torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, :]

        over_heads = torch.vmap(attend, in_dims=(1, 1, 1, None), out_dims=(1, 0))
        over_batch = torch.vmap(over_heads, in_dims=(0, 0, 0, 0))
        out, _ = over_batch(q, k, v, mask)  # (B, T, H, d)
        return self.proj(out.reshape(B, T, D))
