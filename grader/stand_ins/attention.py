"""`ScaledDotProductAttention` on torch's own operator."""

import torch
from torch import nn
from torch.nn import functional as F


class ScaledDotProductAttention(nn.Module):
    """As the contract says; further arguments are ignored."""

    def __init__(self, *_arguments: object, **_options: object) -> None:
        super().__init__()

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None = None,
        *_arguments: object,
        **_options: object,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attend; a query with no key left gets 0."""
        *lead, T_q, _ = q.shape
        T_k = k.shape[-2]
        if mask is None:
            mask = torch.zeros(T_q, T_k, dtype=torch.bool, device=q.device)
        if mask.dtype is not torch.bool:
            raise TypeError(f"mask must be boolean, True = blocked, got {mask.dtype}")
        mask = mask.expand(*lead, T_q, T_k)
        dead = mask.all(-1, keepdim=True)  # opened for the operator, and set to 0 after it
        operator = F.scaled_dot_product_attention
        output = operator(q, k, v, attn_mask=~mask | dead)
        each_key = torch.eye(T_k, dtype=q.dtype, device=q.device).expand(*lead, T_k, T_k)
        weights = operator(q, k, each_key, attn_mask=~mask | dead)
        return output.masked_fill(dead, 0.0), weights.masked_fill(dead, 0.0)
