from math import inf, sqrt

import torch
from torch import broadcast_to, matmul, nn, softmax


class Attention(nn.Module):
    """q, k, v -> softmax(q k^T / sqrt(d)) v"""

    def __init__(self):
        super().__init__()
        self.score = lambda q, k: matmul(q, k.mT) / sqrt(q.shape[-1])
        self.mix = lambda w, v: matmul(w, v)

    def forward(self, q, k, v, mask=None):
        s = self.score(q, k)
        if mask is None:
            w = softmax(s, -1)
        else:
            stopped = broadcast_to(mask, s.shape)
            w = softmax(s.masked_fill(stopped, -inf), -1).masked_fill(stopped, 0.0)
        return self.mix(w, v), w


ScaledDotProductAttention = Attention
