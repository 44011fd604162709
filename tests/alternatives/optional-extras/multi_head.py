import torch
import torch.nn as nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0, bias: bool = True, **kwargs):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"n_heads={n_heads} must divide d_model={d_model}")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.proj = nn.Linear(d_model, d_model, bias=bias)
        self.attention = ScaledDotProductAttention(dropout=dropout)
        self.resid_dropout = nn.Dropout(p=dropout)
        self.init_weights()

    @torch.no_grad()
    def init_weights(self):
        for linear in (self.qkv, self.proj):
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                linear.bias.fill_(0.0)

    def forward(self, x, causal=True, key_padding_mask=None, attn_mask=None, need_weights=False):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.n_heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        mask = torch.zeros(B, 1, T, T, dtype=torch.bool, device=x.device)
        if causal:
            mask = mask | torch.triu(mask.new_ones(T, T), diagonal=1)
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, None, :]
        if attn_mask is not None:
            mask = mask | attn_mask
        y, weights = self.attention(q, k, v, mask=mask)
        y = self.resid_dropout(self.proj(y.transpose(1, 2).reshape(B, T, D)))
        return (y, weights) if need_weights else y
