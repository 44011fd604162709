import torch
from torch import nn


def attend(q, k, v, mask):
    """One query sequence and one key sequence, vmap does the rest."""
    scores = q @ k.T / q.shape[-1] ** 0.5
    dead = mask.all(dim=-1, keepdim=True)
    scores = torch.where(mask & ~dead, -torch.inf, scores)
    weights = torch.where(dead, 0.0, torch.softmax(scores, dim=-1))
    return weights @ v, weights


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        shape = (*q.shape[:-1], k.shape[-2])
        if mask is None:
            mask = torch.zeros(shape, dtype=torch.bool, device=q.device)
        f = attend
        for _ in range(q.dim() - 2):
            f = torch.vmap(f)
        return f(q, k, v, mask.expand(shape))
