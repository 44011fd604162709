import torch
import torch.nn as nn


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        scores = torch.matmul(q, k.transpose(-2, -1)) / q.shape[-1] ** 0.5
        if mask is None:
            return self.finish(scores.softmax(-1), v)
        mask = mask.expand(scores.shape)
        none_open = mask.all(-1, keepdim=True)
        best = scores.masked_fill(mask, -torch.inf).amax(-1, keepdim=True)
        best = best.masked_fill(none_open, 0.0).detach()
        # open scores are at most best anyway, the clamp only keeps exp of blocked ones finite
        e = torch.exp((scores - best).clamp(max=0.0)).masked_fill(mask, 0.0)
        weights = e / e.sum(-1, keepdim=True).masked_fill(none_open, 1.0)
        return self.finish(weights, v)

    def finish(self, weights, v):
        return torch.matmul(weights, v), weights
