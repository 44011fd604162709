import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(ScaledDotProductAttention):
    """Multi-head attention *is* attention, with projections around it."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads does not divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def mask(self, x, causal, key_padding_mask):
        length = x.size(1)
        mask = torch.zeros(1, 1, length, length, dtype=torch.uint8, device=x.device)
        if causal:
            mask = mask + torch.ones_like(mask).triu(1)
        if key_padding_mask is not None:
            mask = mask + key_padding_mask[:, None, None, :].to(torch.uint8)
        return mask > 0

    def forward(self, x, causal=True, key_padding_mask=None):
        batch, length, width = x.size()
        # (B, T, 3, H, d) -> (3, B, H, T, d)
        q, k, v = self.qkv(x).view(batch, length, 3, self.n_heads, width // self.n_heads).permute(2, 0, 3, 1, 4)
        out, _ = super().forward(q, k, v, self.mask(x, causal, key_padding_mask))
        return self.proj(out.permute(0, 2, 1, 3).reshape(batch, length, width))
