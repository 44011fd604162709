import torch
from torch import nn

from .attention import ScaledDotProductAttention


torch.set_num_threads(4)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"n_heads must divide d_model, got d_model={d_model}, n_heads={n_heads}")
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def forward(
        self,
        x: torch.Tensor,
        causal: bool = True,
        key_padding_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        B, T, D = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.n_heads, D // self.n_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (B, H, T, d_head) each

        mask = torch.zeros(T, T, dtype=torch.bool, device=x.device)
        if causal:
            mask = torch.ones_like(mask).triu(1)
        if key_padding_mask is not None:
            mask = mask | key_padding_mask[:, None, None, :]  # (B, 1, T, T)

        heads, _ = self.attention(q, k, v, mask)  # (B, H, T, d_head)
        return self.proj(heads.transpose(1, 2).reshape(B, T, D))
