import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):

	def forward(self, q, k, v, mask=None):
		"""∃ mask: True ⇒ blocked. weights = softmax(q·kᵀ / √d)"""
		α = q.shape[-1] ** -0.5
		scores = α * (q @ k.transpose(-2, -1))
		if mask is not None:
			blocked = mask.broadcast_to(scores.shape)
			scores = scores.masked_fill(blocked, -torch.inf)
			weights = scores.softmax(-1).masked_fill(blocked, 0)
		else:
			weights = scores.softmax(-1)
		return weights @ v, weights
