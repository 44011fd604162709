import torch
from torch import nn

from .attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    """Does not mask the padding, but takes the padded keys out before attending, sample by sample."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def one_sample(self, q, k, v, causal, padding):
        # q, k, v (H, T, d), padding (T,) or None
        T = q.shape[1]
        pos = torch.arange(T, device=q.device)
        open_keys = pos if padding is None else pos[~padding]
        if len(open_keys) == 0:
            return torch.zeros_like(q)
        future = None
        if causal:
            future = open_keys[None, :] > pos[:, None]  # (T, number of open keys)
        out, _ = self.attention(q, k[:, open_keys], v[:, open_keys], future)
        return out

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        samples = []
        for b in range(B):
            padding = None if key_padding_mask is None else key_padding_mask[b]
            samples.append(self.one_sample(q[b], k[b], v[b], causal, padding))
        out = torch.stack(samples)
        return self.proj(out.transpose(1, 2).reshape(B, T, D))
