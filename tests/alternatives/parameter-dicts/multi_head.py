import torch
import torch.nn as nn

from attention import ScaledDotProductAttention


def affine(n_in, n_out):
    """Weight and bias, without a forward."""
    bound = n_in**-0.5
    return nn.ParameterDict({
        "weight": nn.Parameter(torch.rand(n_out, n_in) * 2 * bound - bound),
        "bias": nn.Parameter(torch.zeros(n_out)),
    })


def apply(params, x):
    return x @ params["weight"].T + params["bias"]


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.qkv = affine(d_model, 3 * d_model)
        self.proj = affine(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        q, k, v = apply(self.qkv, x).reshape(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        i = torch.arange(T, device=x.device)
        mask = i.view(1, T) > (i.view(T, 1) if causal else T)
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, None, :]
        y, _ = self.attention(q, k, v, mask)
        return apply(self.proj, y.transpose(1, 2).reshape(B, T, D))
