"""Part 3."""

from torch import Tensor, nn

from .multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, n_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__()
        self.ln1, self.ln2 = (nn.LayerNorm(d_model) for _ in range(2))
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
        self.norm_first = norm_first

    def forward(self, x: Tensor, causal: bool = True, key_padding_mask: Tensor | None = None) -> Tensor:
        skip = x
        if self.norm_first:
            hidden = self.attn(self.ln1(skip), causal, key_padding_mask)
            skip = hidden + skip
            hidden = self.ffn(self.ln2(skip))
            return hidden + skip
        hidden = self.attn(skip, causal, key_padding_mask)
        skip = self.ln1(hidden + skip)
        hidden = self.ffn(skip)
        return self.ln2(hidden + skip)
