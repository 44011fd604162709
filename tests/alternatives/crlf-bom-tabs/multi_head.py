import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):

	def __init__(self, d_model, n_heads):
		super().__init__()
		if d_model % n_heads != 0:
			raise ValueError("n_heads must divide d_model")
		self.H = n_heads
		self.qkv = nn.Linear(d_model, 3 * d_model)
		self.proj = nn.Linear(d_model, d_model)
		self.attention = ScaledDotProductAttention()

	def forward(self, x, causal=True, key_padding_mask=None):
		B, T, D = x.shape
		q, k, v = self.qkv(x).reshape(B, T, 3, self.H, D // self.H).permute(2, 0, 3, 1, 4)
		mask = torch.zeros(B, 1, T, T, dtype=torch.bool, device=x.device)
		if causal:
			mask = mask | torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
		if key_padding_mask is not None:
			mask = mask | key_padding_mask[:, None, None, :]
		y, _ = self.attention(q, k, v, mask)
		return self.proj(y.transpose(1, 2).reshape(B, T, D))
