import math
import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    """Solved for matrices. Anything bigger is taken apart until it is matrices."""

    def matrices(self, q, k, v, mask):
        s = torch.addmm(q.new_zeros(1), q, k.t(), beta=0, alpha=1 / math.sqrt(q.shape[1]))
        w = torch.softmax(s.masked_fill(mask, -math.inf), dim=1)
        w = torch.where(mask.all(dim=1, keepdim=True), torch.zeros_like(w), w)
        return torch.mm(w, v), w

    def forward(self, q, k, v, mask=None):
        if mask is None:
            mask = torch.zeros(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device)
        mask = mask.broadcast_to(q.shape[:-1] + k.shape[-2:-1])
        if q.ndim == 2:
            return self.matrices(q, k, v, mask)
        outputs, weights = zip(*(self(*args) for args in zip(q, k, v, mask)))
        return torch.stack(outputs), torch.stack(weights)
