"""`MultiHeadSelfAttention` on torch's own function."""

import torch
from torch import nn
from torch.nn import functional as F


class MultiHeadSelfAttention(nn.Module):
    """As the contract says; further arguments are ignored."""

    def __init__(self, d_model: int, n_heads: int, *_arguments: object, **_options: object) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model, got {n_heads} and {d_model}")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(
        self,
        x: torch.Tensor,
        causal: bool = True,
        key_padding_mask: torch.Tensor | None = None,
        *_arguments: object,
        **_options: object,
    ) -> torch.Tensor:
        """Attend in heads; a query with no key left gets the bias of `proj`."""
        if not isinstance(causal, bool):
            raise TypeError(f"causal must be True or False, got a {type(causal).__name__}")
        if key_padding_mask is not None and key_padding_mask.dtype is not torch.bool:
            raise TypeError(f"key_padding_mask must be boolean, got {key_padding_mask.dtype}")
        B, T, D = x.shape
        mask = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1) & causal
        mask = mask.expand(B, T, T)
        if key_padding_mask is not None:
            mask = key_padding_mask[:, None, :] | mask
        dead = mask.all(-1, keepdim=True)  # opened for the function, and set to the bias after it
        positions_first = x.transpose(0, 1)
        output, _ = F.multi_head_attention_forward(
            positions_first,
            positions_first,
            positions_first,
            D,
            self.n_heads,
            self.qkv.weight,
            self.qkv.bias,
            None,
            None,
            False,
            0.0,
            self.proj.weight,
            self.proj.bias,
            attn_mask=(mask & ~dead).repeat_interleave(self.n_heads, dim=0),
            need_weights=False,
        )
        return torch.where(dead, self.proj.bias, output.transpose(0, 1))
