"""Cases of a block, in both placements of the norms."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch

from grader.cases.sequence import SequenceCase


@dataclass(frozen=True)
class BlockCase(SequenceCase):
    """A block with random weights, biases, gammas and betas."""

    usual: ClassVar[Collection[str]] = ("causal", "norm_first")
    told_always: ClassVar[Collection[str]] = ("causal", "norm_first")
    phrases: ClassVar = SequenceCase.phrases | {"small": "values of about 1e-3"}  # hidden

    d_ff: int
    norm_first: bool
    small: bool  # hidden: what both norms read then has a variance of about 1e-6, so that eps counts

    @property
    def config(self) -> dict[str, int | bool]:
        sizes = {"d_model": self.D, "n_heads": self.n_heads, "d_ff": self.d_ff}
        # Pre-norm is the default: half of the cases leave it to that.
        by_default = self.norm_first and self.seed % 2 == 0
        return sizes if by_default else sizes | {"norm_first": self.norm_first}

    @property
    def neighbours(self) -> list[dict[str, int | bool]]:
        other = replace(self, n_heads=self.n_heads + 1, d_ff=self.d_ff + 1, norm_first=not self.norm_first)
        return [self.config, other.config]

    @cached_property
    def x(self) -> torch.Tensor:  # (B, T, D)
        scale = 1.0
        scale = 1e-3 if self.small else scale  # hidden
        return self._with_zeros(self.randn("x", self.B, self.T, self.D) * scale)

    @cached_property
    def weights(self) -> dict[str, torch.Tensor]:
        weights = self.weights_of("")
        for name in self._read_by_norms() if self.small else ():  # hidden
            weights[name] = weights[name] * 1e-3  # hidden
        return weights

    @property
    def small_sizes(self) -> Sequence[Mapping[str, Any]]:
        # The norms of one or two features are constants, or signs: no property would be left.
        sizes = ((1, 1, 1, 3, 4), (1, 2, 1, 3, 4), (2, 2, 2, 2, 3), (2, 3, 2, 2, 5), (2, 5, 3, 4, 6))
        return [dict(zip(("B", "T", "n_heads", "d_head", "d_ff"), each, strict=True)) for each in sizes]

    def weights_of(self, instance: str) -> dict[str, torch.Tensor]:
        """The weights of one block of several, under names without the instance's."""
        D, F = self.D, self.d_ff

        def matrix(name: str, rows: int, columns: int) -> torch.Tensor:
            return self.randn(instance + name, rows, columns) / math.sqrt(columns)

        def vector(name: str, size: int) -> torch.Tensor:
            return self.randn(instance + name, size) / 2

        return {
            "ln1.weight": 1 + vector("ln1.weight", D),
            "ln1.bias": vector("ln1.bias", D),
            "attn.qkv.weight": matrix("attn.qkv.weight", 3 * D, D),
            "attn.qkv.bias": vector("attn.qkv.bias", 3 * D),
            "attn.proj.weight": matrix("attn.proj.weight", D, D),
            "attn.proj.bias": vector("attn.proj.bias", D),
            "ln2.weight": 1 + vector("ln2.weight", D),
            "ln2.bias": vector("ln2.bias", D),
            "ffn.0.weight": matrix("ffn.0.weight", F, D),
            "ffn.0.bias": vector("ffn.0.bias", F),
            "ffn.2.weight": matrix("ffn.2.weight", D, F),
            "ffn.2.bias": vector("ffn.2.bias", D),
        }

    def _read_by_norms(self) -> Sequence[str]:  # hidden
        """Parameters that set the scale of what `ln1` or `ln2` reads."""  # hidden
        sublayers = ["attn.proj.weight", "attn.proj.bias"]  # hidden
        if self.norm_first:  # hidden
            return sublayers  # hidden
        return [*sublayers, "ln1.weight", "ln1.bias", "ffn.2.weight", "ffn.2.bias"]  # hidden
