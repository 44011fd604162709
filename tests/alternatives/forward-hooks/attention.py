import torch
from torch import nn


def remember_weights(module, args, result):
    """Forward hook, keeps the last weights for plotting."""
    module.last_weights = result[1].detach()


class ScaledDotProductAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.last_weights = None
        self.register_forward_hook(remember_weights)

    def forward(self, q, k, v, mask=None):
        scores = torch.matmul(q / q.shape[-1] ** 0.5, k.transpose(-2, -1))
        weights = self.masked(scores, mask)
        return torch.matmul(weights, v), weights

    @staticmethod
    def masked(scores, mask):
        if mask is None:
            return scores.softmax(-1)
        p = (scores + torch.zeros_like(scores).masked_fill(mask, -1e30)).softmax(-1)
        return p * ~mask  # exact zeros, in rows without a key too
