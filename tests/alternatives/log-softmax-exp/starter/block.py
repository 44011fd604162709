from typing import Optional

import torch
import torch.nn as nn

from starter.multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, n_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(
        self,
        x: torch.Tensor,
        causal: bool = True,
        key_padding_mask: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        a_in = self.ln1(x) if self.norm_first else x
        x = x + self.attn(a_in, causal, key_padding_mask)
        if not self.norm_first:
            x = self.ln1(x)
        f_in = self.ln2(x) if self.norm_first else x
        x = x + self.ffn(f_in)
        if not self.norm_first:
            x = self.ln2(x)
        return x
