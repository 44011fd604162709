"""The cases that checks are run on: sizes and a seed, from which every tensor is built.

A case is small, prints on one line and says everything; two equal cases give equal tensors. Tensors
are float64 at unit scale, `weights` are what goes into the student's module by parameter name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch


@dataclass(frozen=True)
class Case:
    """What all cases have.

    Attributes:
        training: whether the module is in train mode.
        seed: where all random numbers of the case come from.
    """

    training: bool
    seed: int

    @property
    def config(self) -> dict[str, int | bool]:
        """The constructor's keyword arguments."""
        return {}

    @property
    def by_position(self) -> bool:
        """Whether arguments are handed over by position, as far as they are the first ones."""
        return self.seed % 8 >= 4

    @property
    def narrow_dtype(self) -> torch.dtype | None:
        """float32 in a third of the cases, for what is mostly asked in float64; None: whatever it is else."""
        return torch.float32 if self.seed % 3 == 0 else None

    @property
    def busy(self) -> bool:
        """Whether gradients are asked for in the middle of other work."""
        return self.seed % 3 == 1

    @property
    def has_zeros(self) -> bool:
        """Whether one position of the input is all zeros: no padding, unless a mask says so."""
        return self.seed % 5 == 3

    @property
    def neighbours(self) -> list[dict[str, int | bool]]:
        """Configurations of other instances: the same, and one that has nothing in common with it."""
        return [self.config, self.config]

    @property
    def weights(self) -> dict[str, torch.Tensor] | None:
        """Parameters by name; None where the contract has none."""
        return None

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that the case fixes, by the letter that shapes are written with."""
        return {}

    @property
    def inputs(self) -> dict[str, Any]:
        """What `forward` is called with."""
        return {}

    def randn(self, purpose: str, *shape: int) -> torch.Tensor:
        """Standard normal numbers, the same for the same case, purpose and shape."""
        return torch.randn(shape, generator=self._generator(purpose), dtype=torch.float64)

    def _with_zeros(self, rows: torch.Tensor) -> torch.Tensor:
        """With one position of zeros in the last but one axis, if the case has it so."""
        if self.has_zeros and rows.shape[-2] > 2:
            rows[..., self.seed % rows.shape[-2], :] = 0
        return rows

    def coins(self, purpose: str, *shape: int, probability: float) -> torch.Tensor:
        """Booleans, True with `probability`."""
        return torch.rand(shape, generator=self._generator(purpose)) < probability

    def permutation(self, purpose: str, length: int) -> torch.Tensor:
        """A random order of 0 .. length - 1, not the identity if there is another."""
        if length < 2:
            return torch.arange(length)
        order = torch.randperm(length, generator=self._generator(purpose))
        return order if bool((order != torch.arange(length)).any()) else order.roll(1)

    def describe(self) -> str:
        """The case on one line, as a student reads it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        shown = {name: value for name, value in values.items() if name not in ("training", "seed")}
        told = [
            self.tell(name, value)
            for name, value in shown.items()
            if value not in (False, "none") or name in _TOLD_ALWAYS
        ]
        mode = "train mode" if self.training else "eval mode"
        passed = ["arguments by position"] if self.by_position else []
        zeros = ["one position all zeros"] if self.has_zeros else []
        return ", ".join([*told, f"seed={self.seed}", mode, *passed, *zeros])

    @property
    def small_sizes(self) -> Sequence[Mapping[str, Any]]:
        """Sizes of such a case that a student can hold, the smallest first; none: it is shown as it is."""
        return ()

    @property
    def shows_its_mask(self) -> bool:
        """Whether something is masked, if the case is one with a mask."""
        return True

    def tell(self, name: str, value: Any) -> str:
        """One field, as a student reads it."""
        return _PHRASES.get(name, f"{name}={value}")

    def _generator(self, purpose: str) -> torch.Generator:
        mixed = self.seed
        for character in purpose:
            mixed = (mixed * 131 + ord(character)) % (1 << 31)
        return torch.Generator().manual_seed(mixed)


_TOLD_ALWAYS = ("causal", "norm_first", "mask")
_PHRASES = {
    "dead": "every key blocked for some queries",
    "sharp": "scores of about 1e5",
    "small": "values of about 1e-3",  # hidden
}


# --- attention -----------------------------------------------------------------------------------

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


# --- multi-head ----------------------------------------------------------------------------------

PADDINGS = ("none", "empty", "right", "left", "scattered", "whole")
"""Which positions are padding: none; none, though there is a mask; the last ones; the first ones; any;
all of one sequence, and sometimes of all."""


@dataclass(frozen=True)
class SequenceCase(Case):
    """A batch of sequences of features; `sharp` makes attention scores about 1e5 in size."""

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


@dataclass(frozen=True)
class MultiHeadCase(SequenceCase):
    """Multi-head attention with random weights and biases."""

    @cached_property
    def weights(self) -> dict[str, torch.Tensor]:
        D = self.D
        sharpness = 300.0 if self.sharp else 1.0
        return {
            "qkv.weight": sharpness * self.randn("qkv.weight", 3 * D, D) / math.sqrt(D),
            "qkv.bias": self.randn("qkv.bias", 3 * D) / 2,
            "proj.weight": self.randn("proj.weight", D, D) / math.sqrt(D),
            "proj.bias": self.randn("proj.bias", D) / 2,
        }


# --- block ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BlockCase(SequenceCase):
    """A block with random weights, biases, gammas and betas."""

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


CASE_CLASSES: dict[str, type[Case]] = {
    kind.__name__: kind for kind in (AttentionCase, MultiHeadCase, BlockCase)
}
