import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    """Attention with an additive mask: 0 where a key is open, a very negative number where not.

    I do not add -inf, because (-inf) - (-inf) in a completely blocked row gives NaN.
    """

    @staticmethod
    def additive(mask, like):
        bias = torch.zeros_like(like)
        if mask is not None:
            bias = bias.masked_fill(mask, torch.finfo(like.dtype).min)
        return bias

    def forward(self, q, k, v, mask=None):
        lead, (n, d), m = q.shape[:-2], q.shape[-2:], k.shape[-2]
        like = torch.empty(*lead, n, m, dtype=q.dtype, device=q.device)
        bias = self.additive(mask, like)
        scores = torch.baddbmm(
            bias.reshape(-1, n, m),
            q.reshape(-1, n, d),
            k.reshape(-1, m, d).transpose(1, 2),
            beta=1.0,
            alpha=d**-0.5,
        ).reshape(like.shape)
        weights = torch.softmax(scores, dim=-1)
        if mask is not None:
            # a dead row is not zero yet: all its scores are equally bad
            alive = (bias == 0).any(dim=-1, keepdim=True)
            weights = weights * alive
        return weights @ v, weights
