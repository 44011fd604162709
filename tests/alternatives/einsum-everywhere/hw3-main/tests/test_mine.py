import pytest
import torch

from starter.attention import ScaledDotProductAttention


@pytest.mark.parametrize("t", [1, 5])
def test_rows_sum_to_one(t):
    x = torch.randn(2, t, 4)
    _, w = ScaledDotProductAttention()(x, x, x)
    torch.testing.assert_close(w.sum(-1), torch.ones(2, t))
