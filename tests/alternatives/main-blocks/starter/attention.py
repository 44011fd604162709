import math

import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        if mask is not None:
            weights = weights.masked_fill(mask, 0.0)
        return weights @ v, weights


def compare_with_torch(trials):
    """My check against the built-in one (only for testing!)."""
    import torch.nn.functional as F

    for _ in range(trials):
        q, k, v = torch.randn(3, 2, 5, 8)
        mask = torch.ones(5, 5).triu(1).bool()
        mine, _ = ScaledDotProductAttention()(q, k, v, mask)
        theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=~mask)
        torch.testing.assert_close(mine, theirs)


if __name__ == "__main__":
    compare_with_torch(1_000_000)  # takes a while
