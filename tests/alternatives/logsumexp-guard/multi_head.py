import torch
from torch import nn

from .attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):

    _masks = {}  # shared by all layers: (T, device) -> mask

    def __init__(self, d_model, n_heads):
        super().__init__()
        if n_heads < 1 or d_model % n_heads != 0:
            raise ValueError('bad number of heads')
        self.d_model = d_model
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.sdpa = ScaledDotProductAttention()

    @classmethod
    def causal_mask(cls, T, device):
        key = (T, str(device))
        if key not in cls._masks:
            row = torch.arange(T, device=device).unsqueeze(1)
            col = torch.arange(T, device=device).unsqueeze(0)
            cls._masks[key] = col.gt(row)
        return cls._masks[key]

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, _ = x.shape
        q, k, v = self.qkv(x).split(self.d_model, dim=2)
        q = q.reshape(B, T, self.n_heads, -1).swapaxes(1, 2)
        k = k.reshape(B, T, self.n_heads, -1).swapaxes(1, 2)
        v = v.reshape(B, T, self.n_heads, -1).swapaxes(1, 2)

        parts = []
        if causal:
            parts.append(self.causal_mask(T, x.device).expand(B, 1, T, T))
        if key_padding_mask is not None:
            parts.append(key_padding_mask[:, None, None, :].expand(B, 1, T, T))
        mask = torch.stack(parts).any(dim=0) if parts else None

        out, _ = self.sdpa(q, k, v, mask)
        out = out.swapaxes(1, 2).reshape(B, T, self.d_model)
        return self.proj(out)
