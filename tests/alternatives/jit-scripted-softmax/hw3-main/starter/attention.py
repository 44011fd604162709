from typing import Optional, Tuple

import torch
from torch import Tensor, nn


@torch.jit.script
def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Compiled, because it is called so often."""
    mask = mask.expand_as(scores)
    dead = mask.all(dim=-1, keepdim=True)
    scores = scores.masked_fill(mask & ~dead, float("-inf"))
    return torch.softmax(scores, dim=-1).masked_fill(dead, 0.0)


class ScaledDotProductAttention(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        scores = torch.matmul(q, k.transpose(-2, -1)) * (q.size(-1) ** -0.5)
        if mask is None:
            mask = torch.zeros(1, dtype=torch.bool, device=q.device)
        weights = masked_softmax(scores, mask)
        return torch.matmul(weights, v), weights
