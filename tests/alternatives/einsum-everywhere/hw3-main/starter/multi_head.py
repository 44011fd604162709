import torch
from torch import einsum, nn

from attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    """b batch, t position, e feature in, f feature out, h head, d feature of the head, s = q/k/v"""

    def __init__(self, d_model, n_heads):
        super().__init__()
        assert d_model % n_heads == 0, "n_heads must divide d_model"
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, d_model * 3)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        shape = (3, self.n_heads, self.d_head)
        w = self.qkv.weight.reshape(*shape, -1)
        b = self.qkv.bias.reshape(*shape)
        q, k, v = einsum("bte,shde->sbhtd", x, w) + b[:, None, :, None, :]

        t = x.shape[1]
        mask = torch.zeros(x.shape[0], 1, t, t, dtype=torch.bool, device=x.device)
        if causal:
            mask = mask | torch.full((t, t), True, device=x.device).triu(1)
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, None, :]

        out, _ = self.attention(q, k, v, mask)
        w_out = self.proj.weight.reshape(-1, self.n_heads, self.d_head)
        return einsum("bhtd,fhd->btf", out, w_out) + self.proj.bias
