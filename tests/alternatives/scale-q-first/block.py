import torch.nn as nn

from starter.multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.Sequential(
            nn.Linear(d_model, d_ff),
            nn.GELU(),
            nn.Linear(d_ff, d_model),
        )
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)

    def _residual(self, sublayer, norm, x):
        """One sublayer with its norm and its skip connection."""
        if self.norm_first:
            return x + sublayer(norm(x))
        return norm(x + sublayer(x))

    def forward(self, x, causal=True, key_padding_mask=None):
        x = self._residual(lambda t: self.attn(t, causal, key_padding_mask), self.ln1, x)
        x = self._residual(self.ffn, self.ln2, x)
        return x
