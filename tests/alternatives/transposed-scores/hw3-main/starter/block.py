import torch
import torch.nn.functional as F
from torch import nn

from starter.multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    """nn.Linear and nn.LayerNorm only hold the parameters here, the maths is done with F.*"""

    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.norm_first = norm_first

    @staticmethod
    def norm(x, ln):
        return F.layer_norm(x, x.shape[-1:], ln.weight, ln.bias, 1e-5)

    def mlp(self, x):
        x = F.linear(x, self.ffn[0].weight, self.ffn[0].bias)
        x = F.gelu(x, approximate="none")
        return F.linear(x, self.ffn[2].weight, self.ffn[2].bias)

    def forward(self, x, causal=True, key_padding_mask=None):
        if self.norm_first:
            x = torch.add(x, self.attn(self.norm(x, self.ln1), causal, key_padding_mask))
            return torch.add(x, self.mlp(self.norm(x, self.ln2)))
        x = self.norm(torch.add(x, self.attn(x, causal, key_padding_mask)), self.ln1)
        return self.norm(torch.add(x, self.mlp(x)), self.ln2)
