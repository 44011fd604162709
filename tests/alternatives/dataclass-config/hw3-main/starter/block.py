from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from torch import Tensor, nn

from starter.multi_head import MultiHeadSelfAttention

Sublayer = Callable[[Tensor], Tensor]


@dataclass
class BlockConfig:
    d_model: int
    n_heads: int
    d_ff: int
    norm_first: bool = True


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, n_heads: int, d_ff: int, norm_first: bool = True) -> None:
        super().__init__()
        self.cfg = cfg = BlockConfig(d_model, n_heads, d_ff, norm_first)
        self.ln1 = nn.LayerNorm(cfg.d_model)
        self.ln2 = nn.LayerNorm(cfg.d_model)
        self.attn = MultiHeadSelfAttention(cfg.d_model, cfg.n_heads)
        self.ffn = nn.Sequential(nn.Linear(cfg.d_model, cfg.d_ff), nn.GELU(), nn.Linear(cfg.d_ff, cfg.d_model))

    @classmethod
    def from_config(cls, cfg: BlockConfig) -> TransformerBlock:
        return cls(cfg.d_model, cfg.n_heads, cfg.d_ff, cfg.norm_first)

    def forward(self, x: Tensor, causal: bool = True, key_padding_mask: Tensor | None = None) -> Tensor:
        step = self._pre_norm if self.cfg.norm_first else self._post_norm
        x = step(x, self.ln1, lambda y: self.attn(y, causal, key_padding_mask))
        return step(x, self.ln2, self.ffn)

    @staticmethod
    def _pre_norm(x: Tensor, norm: nn.LayerNorm, sublayer: Sublayer) -> Tensor:
        return x + sublayer(norm(x))

    @staticmethod
    def _post_norm(x: Tensor, norm: nn.LayerNorm, sublayer: Sublayer) -> Tensor:
        return norm(x + sublayer(x))
