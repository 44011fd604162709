import torch
import torch.nn.functional as F
from torch import nn

from attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    """One head after the other, each with its own rows of the big qkv matrix."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"cannot split {d_model} features into {n_heads} heads")
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.one_head = ScaledDotProductAttention()

    def project(self, x, which, head):
        start = which * self.d_model + head * self.d_head
        rows = slice(start, start + self.d_head)
        return F.linear(x, self.qkv.weight[rows], self.qkv.bias[rows])

    def forward(self, x, causal=True, key_padding_mask=None):
        T = x.shape[1]
        mask = torch.zeros(T, T, dtype=torch.bool, device=x.device)
        if causal:
            for t in range(T):
                mask[t, t + 1:] = True
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, :]

        results = []
        for h in range(self.n_heads):
            q, k, v = (self.project(x, which, h) for which in range(3))  # (B, T, d_head)
            out, _ = self.one_head(q, k, v, mask)
            results.append(out)
        return self.proj(torch.cat(results, dim=-1))
