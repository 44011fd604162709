import torch.nn.functional as F
from torch import einsum, nn

from multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def mlp(self, x):
        up, down = self.ffn[0], self.ffn[2]
        h = F.gelu(einsum("bte,fe->btf", x, up.weight) + up.bias)
        return einsum("btf,ef->bte", h, down.weight) + down.bias

    def forward(self, x, causal=True, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attn(self.ln1(x), causal, key_padding_mask)
            x = x + self.mlp(self.ln2(x))
        else:
            x = self.ln1(x + self.attn(x, causal, key_padding_mask))
            x = self.ln2(x + self.mlp(x))
        return x
