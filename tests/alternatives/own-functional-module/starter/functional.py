"""Everything that has no parameters. My own torch.nn.functional, so to speak."""

import math

import torch


def linear(x, weight, bias):
    return x @ weight.mT + bias


def layer_norm(x, weight, bias, eps=1e-5):
    var, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias


def gelu(x):
    return x * torch.special.ndtr(x)  # x * Phi(x)


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is None:
        weights = scores.softmax(-1)
    else:
        weights = scores.masked_fill(mask, -math.inf).softmax(-1).masked_fill(mask, 0)
    return weights @ v, weights


def multi_head_attention_forward(x, n_heads, qkv, proj, mask):
    b, t, d = x.shape
    q, k, v = linear(x, qkv.weight, qkv.bias).view(b, t, 3, n_heads, d // n_heads).movedim(2, 0).transpose(2, 3)
    out, _ = scaled_dot_product_attention(q, k, v, mask)
    return linear(out.transpose(1, 2).reshape(b, t, d), proj.weight, proj.bias)
