"""Part 1: scaled dot-product attention, the one equation that the rest is built around.

Source: Vaswani et al., "Attention Is All You Need" (2017), section 3.2.1.
"""

import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    """Each query takes a weighted mean of the values, weighted by how well it matches the keys."""

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attend: ``weights = softmax(q k^T / sqrt(d_head))`` over the keys, ``output = weights v``.

        A blocked key weighs exactly 0. A query whose keys are all blocked has weights 0 and output 0,
        and no NaN reaches its gradients either. Scores up to 1e6 in size give finite results.

        Args:
            q: queries, ``(..., T_q, d_head)``, any number of leading dimensions, also none.
            k: keys, ``(..., T_k, d_head)``, with the same leading dimensions.
            v: values, ``(..., T_k, d_v)``, with the same leading dimensions.
            mask: boolean, True = blocked, broadcastable to ``(..., T_q, T_k)``; None blocks nothing.

        Returns:
            ``output (..., T_q, d_v)`` and ``weights (..., T_q, T_k)``.

        Example:
            With d_head = 1, q = [[1]], k = [[0], [ln 3]], v = [[0], [8]] the scores are [0, ln 3],
            the weights [1/4, 3/4] and the output [[6]]. With mask = [[False, True]] the weights are
            [1, 0] and the output [[0]].
        """
        # ===== my solution =====
        d_head = q.shape[-1]

        # step 1: scores
        scores = torch.matmul(q, k.transpose(-2, -1))
        scores = scores / (d_head ** 0.5)

        # step 2: blocked keys get -inf
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))

        # step 3: softmax (float("-inf") - float("-inf") is nan, so the empty rows are nan now)
        weights = torch.softmax(scores, dim=-1)

        # step 4: get rid of the nan. masked_fill and not nan_to_num: real nans should stay visible
        if mask is not None:
            weights = weights.masked_fill(mask, 0.0)

        # step 5: weighted mean of the values
        output = torch.matmul(weights, v)
        return output, weights
        # ===== end =====
