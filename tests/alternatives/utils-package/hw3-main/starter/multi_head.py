from torch import Tensor, nn

from .attention import ScaledDotProductAttention
from .random import init_linear
from .types import Mask
from .utils import combine, join_heads, split_heads
from .utils.masks import future_mask


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.qkv = init_linear(nn.Linear(d_model, 3 * d_model))
        self.proj = init_linear(nn.Linear(d_model, d_model))
        self.attention = ScaledDotProductAttention()

    def forward(self, x: Tensor, causal: bool = True, key_padding_mask: Mask = None) -> Tensor:
        q, k, v = (split_heads(part, self.n_heads) for part in self.qkv(x).chunk(3, dim=-1))
        mask = combine(
            future_mask(x.shape[1], x.device) if causal else None,
            key_padding_mask[:, None, None, :] if key_padding_mask is not None else None,
        )
        out, _ = self.attention(q, k, v, mask)
        return self.proj(join_heads(out))
