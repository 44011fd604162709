import torch
from torch import nn


def stable_softmax(scores, mask):
    """float64 inside, so that even scores of a million are resolved well."""
    wide = scores.to(torch.float64)
    if mask is not None:
        wide = wide.masked_fill(mask, float("-inf"))
    probs = torch.softmax(wide, dim=-1)
    if mask is not None:
        probs = torch.where(mask, torch.zeros_like(probs), probs)
    return probs.to(scores.dtype)  # and back to whatever came in


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        scores = torch.einsum("...qd, ...kd -> ...qk", q, k) * (q.size(-1) ** -0.5)
        weights = stable_softmax(scores, mask)
        return weights @ v, weights
