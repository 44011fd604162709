"""Part 1.

NOT used here: torch.nn.functional.scaled_dot_product_attention, F.scaled_dot_product_attention,
torch._C._nn.scaled_dot_product_attention, flex_attention. See also
https://pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
"""

import torch
import torch.nn.functional as F
from torch import nn


class ScaledDotProductAttention(nn.Module):
    """Same as F.scaled_dot_product_attention(q, k, v, attn_mask=~mask), and the weights with it.

    >>> q = k = v = torch.randn(2, 5, 8)
    >>> out, _ = ScaledDotProductAttention()(q, k, v)
    >>> torch.allclose(out, F.scaled_dot_product_attention(q, k, v), atol=1e-6)
    True
    """

    name = "scaled_dot_product_attention"

    def forward(self, q, k, v, mask=None):
        # return F.scaled_dot_product_attention(q, k, v, mask)   <- would be too easy
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is None:
            return self._finish(F.softmax(scores, dim=-1), v)
        scores = scores.masked_fill(mask, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        # unlike in nn.MultiheadAttention, a row with no key gives 0 and not nan
        return self._finish(weights.masked_fill(mask, 0.0), v)

    def _finish(self, weights, v):
        return weights @ v, weights
