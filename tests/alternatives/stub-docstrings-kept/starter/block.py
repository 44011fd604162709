"""Part 3: the Transformer block, attention and a feed-forward net, each with a norm and a residual.

Sources: Vaswani et al. (2017), section 3.1 (post-norm); Xiong et al., "On Layer Normalization in the
Transformer Architecture" (2020), figure 1 (pre-norm).
"""

import torch
from torch import nn

from starter.multi_head import MultiHeadSelfAttention


class TransformerBlock(nn.Module):
    """Positions talk to each other, then each thinks for itself; both only add to what was there."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, norm_first: bool = True) -> None:
        """Create the layers, ``4 D^2 + 4 D + 2 D F + F + D + 4 D`` parameters.

        ``ln1``, ``ln2 = nn.LayerNorm(D)`` (eps 1e-5, biased variance);
        ``attn = MultiHeadSelfAttention(D, H)``;
        ``ffn = nn.Sequential(nn.Linear(D, F), nn.GELU(), nn.Linear(F, D))`` (exact GELU).

        Args:
            d_model: features per position, ``D``.
            n_heads: number of attention heads, ``H``.
            d_ff: features inside the feed-forward net, ``F``.
            norm_first: True for pre-norm, False for post-norm.

        Raises:
            ValueError: ``n_heads`` does not divide ``d_model``.
        """
        super().__init__()
        self.norm_first = norm_first
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads)
        self.ffn = nn.Sequential(
            nn.Linear(d_model, d_ff),
            nn.GELU(),
            nn.Linear(d_ff, d_model),
        )

    def forward(
        self,
        x: torch.Tensor,
        causal: bool = True,
        key_padding_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Run both sublayers.

        Pre-norm: ``x = x + attn(ln1(x))``, then ``x = x + ffn(ln2(x))``.
        Post-norm: ``x = ln1(x + attn(x))``, then ``x = ln2(x + ffn(x))``.

        Args:
            x: ``(B, T, D)``.
            causal: position t looks at the positions 0..t only.
            key_padding_mask: boolean ``(B, T)``, True = padding: no query looks at it.

        Returns:
            ``(B, T, D)``.

        Example:
            With all weights and biases 0 (those of the norms included) both sublayers give 0: pre-norm
            returns x itself, post-norm returns 0.
        """
        if self.norm_first:
            x = x + self.attn(self.ln1(x), causal, key_padding_mask)
            x = x + self.ffn(self.ln2(x))
        else:
            x = self.ln1(x + self.attn(x, causal, key_padding_mask))
            x = self.ln2(x + self.ffn(x))
        return x
