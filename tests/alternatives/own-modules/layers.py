"""The layers, from scratch as well."""

import math

import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        bound = 1 / math.sqrt(fan_in)
        self.weight = nn.Parameter(torch.empty(fan_out, fan_in).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(fan_out).uniform_(-bound, bound))

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        return torch.addmm(self.bias, flat, self.weight.t()).reshape(*x.shape[:-1], -1)


class LayerNorm(nn.Module):
    def __init__(self, size, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))
        self.eps = eps

    def forward(self, x):
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)  # biased: divided by n
        return centred * torch.rsqrt(variance + self.eps) * self.weight + self.bias


class GELU(nn.Module):
    def forward(self, x):
        return x * 0.5 * (1 + torch.erf(x * math.sqrt(0.5)))


class Sequential(nn.Module):
    """Children are called "0", "1", ... like in torch."""

    def __init__(self, *layers):
        super().__init__()
        self.n = len(layers)
        for i in range(self.n):
            self.register_module(str(i), layers[i])

    def forward(self, x):
        for i in range(self.n):
            x = getattr(self, str(i))(x)
        return x
