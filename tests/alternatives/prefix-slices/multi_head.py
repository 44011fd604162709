import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    """Causal without any causal mask: position t just never gets to see the keys after t."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model ({d_model}) / n_heads ({n_heads}) is not an integer")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.sdpa = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        q, k, v = (
            part.reshape(B, T, self.n_heads, D // self.n_heads).permute(0, 2, 1, 3)
            for part in torch.split(self.qkv(x), [D, D, D], dim=-1)
        )
        pad = None if key_padding_mask is None else key_padding_mask[:, None, None, :]

        if not causal:
            out = self.sdpa(q, k, v, pad)[0]
        else:
            steps = []
            for t in range(T):
                seen = slice(0, t + 1)
                pad_t = None if pad is None else pad[..., seen]
                step, _ = self.sdpa(q[:, :, t:t + 1], k[:, :, seen], v[:, :, seen], pad_t)
                steps.append(step)
            out = torch.cat(steps, dim=2)

        return self.proj(out.permute(0, 2, 1, 3).reshape(B, T, D))
