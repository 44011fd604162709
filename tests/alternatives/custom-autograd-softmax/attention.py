import torch
from torch import nn


class MaskedSoftmax(torch.autograd.Function):
    """y = softmax over the open keys, 0 elsewhere.   dx = y * (dy - sum(y * dy))"""

    @staticmethod
    def forward(ctx, x, mask):
        x = x.masked_fill(mask, float("-inf"))
        top = x.max(dim=-1, keepdim=True).values
        top[top == float("-inf")] = 0
        y = torch.exp(x - top)
        y = y / y.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(y.dtype).tiny)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        y, = ctx.saved_tensors
        return y * (dy - (y * dy).sum(dim=-1, keepdim=True)), None


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is None:
            mask = torch.zeros_like(scores, dtype=torch.bool)
        weights = MaskedSoftmax.apply(scores, mask)
        return weights @ v, weights
