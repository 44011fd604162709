import torch
from torch import nn

from .multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, n_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln2 = nn.LayerNorm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
        self.ffn.compile()

    def forward(
        self,
        x: torch.Tensor,
        causal: bool = True,
        key_padding_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        if self.norm_first:
            x = x + self.attn(self.ln1(x), causal, key_padding_mask)
            return x + self.ffn(self.ln2(x))
        x = self.ln1(x + self.attn(x, causal, key_padding_mask))
        return self.ln2(x + self.ffn(x))
