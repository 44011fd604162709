"""Part 2: multi-head self-attention, several attentions side by side on slices of the features.

Source: Vaswani et al., "Attention Is All You Need" (2017), section 3.2.2.
"""

import torch
from torch import nn

from starter.attention import ScaledDotProductAttention


class MultiHeadSelfAttention(nn.Module):
    """Every position asks every position that it may see, once per head."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        """Create the projections, ``4 D^2 + 4 D`` parameters.

        ``qkv = nn.Linear(D, 3 D)`` makes queries, keys and values at once, in this order along the
        features (q | k | v); ``proj = nn.Linear(D, D)`` mixes what the heads bring back.

        Args:
            d_model: features per position, ``D``.
            n_heads: number of heads, ``H``; each works on ``d_head = D / H`` features.

        Raises:
            ValueError: ``n_heads`` does not divide ``d_model``.
        """
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("n_heads must divide d_model")
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.attention = ScaledDotProductAttention()

    def forward(
        self,
        x: torch.Tensor,
        causal: bool = True,
        key_padding_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Project, attend per head, concatenate the heads in order, project.

        Head ``h`` owns the features ``h * d_head .. (h + 1) * d_head`` of q, of k and of v. A key is
        blocked if either mask blocks it. A query with no key left gets 0 from its heads, so that
        ``proj`` gives its bias there.

        Args:
            x: ``(B, T, D)``.
            causal: position t looks at the positions 0..t only.
            key_padding_mask: boolean ``(B, T)``, True = padding: no query looks at it. A padded
                position is itself a query like any other.

        Returns:
            ``(B, T, D)``.

        Example:
            With D = H = 1, all weights 1, all biases 0 and x = [[[0], [ln 3]]] q, k and v are all x.
            Causal: position 0 sees only itself and gives 0; position 1 has scores [0, (ln 3)^2].
            With key_padding_mask = [[True, False]] position 0 sees nothing and gives 0 (the bias),
            position 1 sees only itself and gives ln 3.
        """
        B, T, D = x.shape
        qkv = self.qkv(x)                                  # (B, T, 3D)
        q, k, v = qkv.chunk(3, dim=2)                      # (B, T, D)
        q = q.view(B, T, self.n_heads, self.d_head).transpose(1, 2)
        k = k.view(B, T, self.n_heads, self.d_head).transpose(1, 2)
        v = v.view(B, T, self.n_heads, self.d_head).transpose(1, 2)

        mask = torch.zeros(B, self.n_heads, T, T, dtype=torch.bool, device=x.device)
        if causal:
            mask = mask | torch.triu(torch.ones(T, T, device=x.device), diagonal=1).bool()
        if key_padding_mask is not None:
            mask = mask | key_padding_mask.unsqueeze(1).unsqueeze(1)

        output, weights = self.attention(q, k, v, mask)
        output = output.transpose(1, 2).contiguous().view(B, T, D)
        return self.proj(output)
