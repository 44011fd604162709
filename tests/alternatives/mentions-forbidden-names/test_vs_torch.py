# python -m pytest test_vs_torch.py
import torch
import torch.nn.functional as F

from attention import ScaledDotProductAttention


def test_same_as_torch():
    q, k, v = torch.randn(3, 2, 4, 6, 8)
    out, _ = ScaledDotProductAttention()(q, k, v)
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v))
