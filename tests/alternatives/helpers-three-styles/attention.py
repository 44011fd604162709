from torch import nn

from starter.helpers import masked_softmax


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        weights = masked_softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, mask)
        return weights @ v, weights
