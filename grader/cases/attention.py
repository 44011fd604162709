"""Cases of a single attention: any leading dimensions, a mask of any shape that fits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch

from grader.cases import Case

MASKS = (
    "none",
    "full",
    "shared",
    "keys",
    "one_row",
    "padding",
    "first",
    "last",
    "ones",
    "unbatched",
    "rows",
    "unbatched_rows",
    "one_column",
    "columns",
)
"""How a mask's shape meets the scores' ``(*lead, T_q, T_k)``: not given; all of it; ``(T_q, T_k)``;
``(T_k,)``; ``(1, T_k)``; one row for each of the first dimension; all of it with all leading dimensions
1 but the first, but the last, or with all of them 1; all of it without the first dimension; with one row
for all queries, with and without the first dimension; ``(T_q, 1)``; ``(*lead, T_q, 1)``."""

MASKS_OF_SEVERAL = ("first", "last", "ones", "unbatched", "rows", "unbatched_rows")
"""Kinds that differ from others where there are two leading dimensions or more."""

BLOCK_OF_KEYS = 16
"""With more keys than these some queries have the first ones blocked: all that such a block reads."""


@dataclass(frozen=True)
class AttentionCase(Case):
    """One attention; with `dead`, the mask blocks every key of some queries, or of all."""

    kinds: ClassVar = {"mask": MASKS}
    told_always: ClassVar[Collection[str]] = ("mask",)
    phrases: ClassVar = {"dead": "every key blocked for some queries"}

    lead: tuple[int, ...]
    T_q: int
    T_k: int
    d_head: int
    d_v: int
    mask: str
    dead: bool

    @property
    def sizes(self) -> dict[str, int]:
        return {"T_q": self.T_q, "T_k": self.T_k, "d_head": self.d_head, "d_v": self.d_v}

    @cached_property
    def q(self) -> torch.Tensor:  # (*lead, T_q, d_head)
        return self._with_zeros(self.randn("q", *self.lead, self.T_q, self.d_head))

    @cached_property
    def k(self) -> torch.Tensor:  # (*lead, T_k, d_head)
        return self._with_zeros(self.randn("k", *self.lead, self.T_k, self.d_head))

    @cached_property
    def v(self) -> torch.Tensor:  # (*lead, T_k, d_v)
        return self.randn("v", *self.lead, self.T_k, self.d_v)

    @cached_property
    def blocked(self) -> torch.Tensor | None:
        """The mask as it is handed over, True = blocked."""
        if self.mask == "none":
            return None
        shape = self._mask_shape()
        blocked = self.coins("mask", *shape, probability=0.4)
        # One key stays open in every row of the mask, so that no query is dead by accident.
        open_key = torch.randint(shape[-1], shape[:-1], generator=self._generator("open key"))
        if shape[-1] > BLOCK_OF_KEYS:
            late = self.coins("late", *shape[:-1], probability=0.5)
            blocked |= (torch.arange(shape[-1]) < open_key.unsqueeze(-1)) & late.unsqueeze(-1)
        blocked.scatter_(-1, open_key.unsqueeze(-1), False)
        if shape[-1] > 1 and not bool(blocked.any()):
            blocked.scatter_(-1, (open_key.unsqueeze(-1) + 1) % shape[-1], True)
        if self.dead:
            dead = self.coins("dead", *shape[:-1], probability=0.4)
            dead.view(-1)[self.seed % max(1, dead.numel())] = True
            dead |= self.seed % 7 == 0
            blocked |= dead.unsqueeze(-1)
        return blocked

    @cached_property
    def blocked_everywhere(self) -> torch.Tensor:
        """The mask for every query and key, ``(*lead, T_q, T_k)``."""
        shape = (*self.lead, self.T_q, self.T_k)
        if self.blocked is None:
            return torch.zeros(shape, dtype=torch.bool)
        return self.blocked.expand(shape)

    @property
    def inputs(self) -> dict[str, Any]:
        given = {"q": self.q, "k": self.k, "v": self.v}
        # Without a mask, half of the cases leave it out and half hand over None.
        return given if self.blocked is None and self.seed % 2 else given | {"mask": self.blocked}

    def tell(self, name: str, value: Any) -> str:
        """Leading dimensions and the mask are told as shapes."""
        if name == "lead":
            return f"leading dimensions {value}" if value else "no leading dimensions"
        if name == "mask":
            return "no mask" if value == "none" else f"mask of shape {self._mask_shape()}"
        return super().tell(name, value)

    @property
    def small_sizes(self) -> Sequence[Mapping[str, Any]]:
        lead = 2 if self.mask in MASKS_OF_SEVERAL else int(self.mask == "padding")
        sizes = ((1, 1, 1, 1), (1, 2, 1, 1), (2, 2, 1, 1), (2, 2, 2, 2), (2, 3, 4, 5))
        return [
            {"lead": (min(T_q, d_head),) * lead, "T_q": T_q, "T_k": T_k, "d_head": d_head, "d_v": d_v}
            for T_q, T_k, d_head, d_v in sizes
        ]

    @property
    def shows_its_mask(self) -> bool:
        return self.blocked is None or bool(self.blocked.any())

    def _mask_shape(self) -> tuple[int, ...]:
        ones = [1] * len(self.lead)
        return {
            "full": (*self.lead, self.T_q, self.T_k),
            "shared": (self.T_q, self.T_k),
            "keys": (self.T_k,),
            "one_row": (1, self.T_k),
            "padding": (*self.lead[:1], *ones[1:], 1, self.T_k),
            "first": (*self.lead[:1], *ones[1:], self.T_q, self.T_k),
            "last": (*ones[1:], *self.lead[-1:], self.T_q, self.T_k),
            "ones": (*ones, self.T_q, self.T_k),
            "unbatched": (*self.lead[1:], self.T_q, self.T_k),
            "rows": (*self.lead, 1, self.T_k),
            "unbatched_rows": (*self.lead[1:], 1, self.T_k),
            "one_column": (self.T_q, 1),
            "columns": (*self.lead, self.T_q, 1),
        }[self.mask]
