from typing import Optional

from torch import Tensor, nn

from starter.multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, n_heads: int, d_ff: int, norm_first: bool = True):
        super().__init__()
        self.norm_first = norm_first
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
        self.ln2 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln1 = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, causal: bool = True, key_padding_mask: Optional[Tensor] = None) -> Tensor:
        if self.norm_first:
            x = self.attn(self.ln1(x), causal, key_padding_mask) + x
            x = self.ffn(self.ln2(x)) + x
            return x
        x = self.ln1(self.attn(x, causal, key_padding_mask) + x)
        x = self.ln2(self.ffn(x) + x)
        return x
