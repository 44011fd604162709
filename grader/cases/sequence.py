"""Cases of whole sequences: which positions are padding, and who sees whom."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch

from grader.cases import Case

PADDINGS = ("none", "empty", "right", "left", "scattered", "whole")
"""Which positions are padding: none; none, though there is a mask; the last ones; the first ones; any;
all of one sequence, and sometimes of all."""


@dataclass(frozen=True)
class SequenceCase(Case):
    """A batch of sequences of features; `sharp` makes attention scores about 1e5 in size."""

    kinds: ClassVar = {"padding": PADDINGS}
    usual: ClassVar[Collection[str]] = ("causal",)
    told_always: ClassVar[Collection[str]] = ("causal",)
    phrases: ClassVar = {"sharp": "scores of about 1e5"}

    B: int
    T: int
    n_heads: int
    d_head: int
    padding: str
    causal: bool
    sharp: bool

    @property
    def D(self) -> int:
        return self.n_heads * self.d_head

    @property
    def config(self) -> dict[str, int | bool]:
        return {"d_model": self.D, "n_heads": self.n_heads}

    @property
    def neighbours(self) -> list[dict[str, int | bool]]:
        return [self.config, replace(self, n_heads=self.n_heads + 1).config]

    @property
    def sizes(self) -> dict[str, int]:
        return {"B": self.B, "T": self.T, "D": self.D}

    @cached_property
    def x(self) -> torch.Tensor:  # (B, T, D)
        return self._with_zeros(self.randn("x", self.B, self.T, self.D))

    @cached_property
    def padded(self) -> torch.Tensor:
        """Which positions are padding, ``(B, T)``; every sequence but a `whole` one keeps one."""
        rows = torch.zeros(self.B, self.T, dtype=torch.bool)
        if self.padding == "whole":
            rows[self.seed % self.B] = True
            return rows | (self.seed % 4 == 0)
        if self.padding == "scattered":
            rows = self.coins("padding", self.B, self.T, probability=0.4)
            rows[:, self.seed % self.T] = False
            if self.T > 1 and not bool(rows.any()):
                rows[0, (self.seed + 1) % self.T] = True
            return rows
        if self.padding in ("right", "left"):
            lengths = torch.randint(1, self.T + 1, (self.B,), generator=self._generator("padding"))
            if self.T > 1 and bool((lengths == self.T).all()):
                lengths[0] = self.T - 1
            rows = torch.arange(self.T) >= lengths[:, None]
        return rows.flip(1) if self.padding == "left" else rows

    @cached_property
    def seen(self) -> torch.Tensor:
        """Who may see whom by `causal` and padding together: query, key, ``(B, T, T)``."""
        future = torch.ones(self.T, self.T, dtype=torch.bool).triu(1) & self.causal
        return ~(future | self.padded[:, None, :])

    @property
    def masks(self) -> dict[str, Any]:
        """`causal` and, where there is padding, the padding mask, as `forward` takes them."""
        if self.padding == "none":
            # Half of the cases leave the mask out, half hand over None.
            return {"causal": self.causal} | ({} if self.seed % 2 else {"key_padding_mask": None})
        return {"causal": self.causal, "key_padding_mask": self.padded}

    @property
    def inputs(self) -> dict[str, Any]:
        return {"x": self.x} | self.masks

    @property
    def small_sizes(self) -> Sequence[Mapping[str, Any]]:
        sizes = ((1, 1, 1, 1), (1, 2, 1, 1), (2, 2, 2, 2), (2, 3, 2, 2), (2, 5, 3, 4))
        return [dict(zip(("B", "T", "n_heads", "d_head"), each, strict=True)) for each in sizes]

    @property
    def shows_its_mask(self) -> bool:
        return self.padding in ("none", "empty") or bool(self.padded.any())

    @property
    def cuts(self) -> list[int]:
        """Positions after which the future is edited: all of them, or a handful in a long sequence."""
        if self.T <= 12:
            return list(range(self.T - 1))
        return [0, self.T // 2, self.T - 2]

    @cached_property
    def other_x(self) -> torch.Tensor:  # (B, T, D)
        """What `edited` puts in the place of `x`."""
        return self.randn("edit", self.B, self.T, self.D)

    def edited(self, where: torch.Tensor) -> torch.Tensor:
        """`x` with other values at the positions `where`, ``(T,)`` or ``(B, T)``."""
        return torch.where(where.unsqueeze(-1), self.other_x, self.x)
