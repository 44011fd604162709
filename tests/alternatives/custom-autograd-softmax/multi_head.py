import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        d_head, rest = divmod(d_model, n_heads)
        if rest:
            raise ValueError("rest %d" % rest)
        self.n_heads, self.d_head = n_heads, d_head
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def forward(self, x, causal=True, key_padding_mask=None):
        B, T, _ = x.shape
        q, k, v = torch.chunk(self.qkv(x), 3, dim=-1)
        q, k, v = (torch.stack(t.split(self.d_head, dim=-1), dim=1) for t in (q, k, v))  # (B, H, T, d)

        mask = torch.zeros(B, self.n_heads, T, T, dtype=torch.bool, device=x.device)
        if causal:
            mask[:] = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
        if key_padding_mask is not None:
            mask.logical_or_(key_padding_mask[:, None, None, :])

        out, weights = self.attention(q, k, v, mask)
        self.last_weights = weights.detach()  # for the plots
        return self.proj(torch.cat([out[:, h] for h in range(self.n_heads)], dim=-1))
