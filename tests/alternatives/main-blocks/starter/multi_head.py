import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.n_heads, D // self.n_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mask = torch.zeros(B, 1, T, T, dtype=torch.bool, device=x.device)
        if causal:
            mask = mask | torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, None, :]
        heads, _ = self.attention(q, k, v, mask)
        return self.proj(heads.transpose(1, 2).reshape(B, T, D))


def _oracle(d_model, n_heads):
    """nn.MultiheadAttention with the same weights as mine."""
    mine = MultiHeadSelfAttention(d_model, n_heads)
    oracle = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
    with torch.no_grad():
        oracle.in_proj_weight.copy_(mine.qkv.weight)
        oracle.in_proj_bias.copy_(mine.qkv.bias)
        oracle.out_proj.weight.copy_(mine.proj.weight)
        oracle.out_proj.bias.copy_(mine.proj.bias)
    return mine, oracle


def test_against_torch():
    mine, oracle = _oracle(32, 4)
    x = torch.randn(2, 10, 32)
    mask = torch.ones(10, 10).triu(1).bool()
    torch.testing.assert_close(mine(x), oracle(x, x, x, attn_mask=mask, need_weights=False)[0])


if __name__ == "__main__":
    test_against_torch()
    print("all good")
