"""What torch's own operators say; from-scratch code is compared with them, never made of them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.nn import functional as F

Weights = Mapping[str, torch.Tensor]


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, blocked: torch.Tensor | None = None
) -> torch.Tensor:
    """Torch's attention; shapes as in the contract, no query with every key blocked."""
    if blocked is None:
        return F.scaled_dot_product_attention(q, k, v)
    allowed = ~blocked
    while allowed.dim() < 2:
        allowed = allowed.unsqueeze(0)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)


def multi_head(x: torch.Tensor, weights: Weights, n_heads: int, seen: torch.Tensor) -> torch.Tensor:
    """Torch's multi-head self-attention of `x (B, T, D)`; a query that sees nobody gives the bias.

    Args:
        weights: ``qkv.weight``, ``qkv.bias``, ``proj.weight``, ``proj.bias``.
        seen: query, key, ``(B, T, T)``, True = may look.
    """
    B, T, D = x.shape
    dead = ~seen.any(-1)  # (B, T)
    blocked = ~(seen | dead.unsqueeze(-1))  # dead queries look everywhere, and are replaced below
    positions_first = x.transpose(0, 1)  # (T, B, D), as torch's function takes it
    output, _ = F.multi_head_attention_forward(
        positions_first,
        positions_first,
        positions_first,
        D,
        n_heads,
        weights["qkv.weight"],
        weights["qkv.bias"],
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=weights["proj.weight"],
        out_proj_bias=weights["proj.bias"],
        attn_mask=blocked.repeat_interleave(n_heads, dim=0),
        need_weights=False,
    )
    output = output.transpose(0, 1)  # (B, T, D)
    return torch.where(dead.unsqueeze(-1), weights["proj.bias"].expand(B, T, D), output)


def layer_norm(x: torch.Tensor, weights: Weights, name: str) -> torch.Tensor:
    """Torch's layer norm with the parameters ``NAME.weight`` and ``NAME.bias``."""
    return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"])


def feed_forward(x: torch.Tensor, weights: Weights) -> torch.Tensor:
    """Linear, exact GELU, Linear."""
    hidden = F.gelu(F.linear(x, weights["ffn.0.weight"], weights["ffn.0.bias"]))
    return F.linear(hidden, weights["ffn.2.weight"], weights["ffn.2.bias"])


def block(
    x: torch.Tensor, weights: Weights, n_heads: int, seen: torch.Tensor, *, norm_first: bool
) -> torch.Tensor:
    """The block's equation; shapes as in `multi_head`."""

    def attention(x: torch.Tensor) -> torch.Tensor:
        return multi_head(x, part_of(weights, "attn"), n_heads, seen)

    if norm_first:
        x = x + attention(layer_norm(x, weights, "ln1"))
        return x + feed_forward(layer_norm(x, weights, "ln2"), weights)
    x = layer_norm(x + attention(x), weights, "ln1")
    return layer_norm(x + feed_forward(x, weights), weights, "ln2")


def part_of(weights: Weights, name: str) -> dict[str, torch.Tensor]:
    """The weights under ``NAME.``, without that prefix."""
    return {n.removeprefix(f"{name}."): t for n, t in weights.items() if n.startswith(f"{name}.")}
