"""Part 2: what nn.MultiheadAttention does, in 30 lines."""

import torch
from torch import nn

from starter.attention import ScaledDotProductAttention

BANNED = (
    "nn.MultiheadAttention",
    "torch.nn.MultiheadAttention",
    "F.multi_head_attention_forward",
    "nn.Transformer",
    "nn.TransformerEncoderLayer",
    "torch.nn.attention.flex_attention",
)


class MultiHeadSelfAttention(nn.Module):
    f"""Written without {BANNED}."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            # nn.MultiheadAttention raises an AssertionError here
            raise ValueError("embed_dim must be divisible by num_heads, as in nn.MultiheadAttention(embed_dim, num_heads)")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)   # in_proj of nn.MultiheadAttention
        self.proj = nn.Linear(d_model, d_model)      # out_proj of nn.MultiheadAttention
        self.scaled_dot_product_attention = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.n_heads, D // self.n_heads).permute(2, 0, 3, 1, 4)
        mask = self.merge_masks(x, causal, key_padding_mask)
        out, _ = self.scaled_dot_product_attention(q, k, v, mask)
        return self.proj(out.transpose(1, 2).reshape(B, T, D))

    def merge_masks(self, x, causal, key_padding_mask):
        """Cf. nn.MultiheadAttention.merge_masks and nn.Transformer.generate_square_subsequent_mask."""
        T = x.shape[1]
        mask = torch.zeros(T, T, dtype=torch.bool, device=x.device)
        if causal:
            mask = torch.ones_like(mask).triu(1)
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, None, :]
        return mask
