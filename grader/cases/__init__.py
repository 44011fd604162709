"""The cases that checks are run on: sizes and a seed, from which every tensor is built.

A case is small, prints on one line and says everything; two equal cases give equal tensors. Tensors
are float64 at unit scale, `weights` are what goes into the student's module by parameter name.

Here is what all cases have; each part has a file with its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch


@dataclass(frozen=True)
class Case:
    """What all cases have.

    Attributes:
        training: whether the module is in train mode.
        seed: where all random numbers of the case come from.
        kinds: the values of each field that is a word, plain ones first.
        usual: the switches that are on where nothing is special.
        told_always: fields that are told even when they are off.
        phrases: how a field is told that is on.
    """

    kinds: ClassVar[Mapping[str, Sequence[str]]] = {}
    usual: ClassVar[Collection[str]] = ()
    told_always: ClassVar[Collection[str]] = ()
    phrases: ClassVar[Mapping[str, str]] = {}

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
            if value not in (False, "none") or name in self.told_always
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
        return self.phrases.get(name, f"{name}={value}")

    def _generator(self, purpose: str) -> torch.Generator:
        mixed = self.seed
        for character in purpose:
            mixed = (mixed * 131 + ord(character)) % (1 << 31)
        return torch.Generator().manual_seed(mixed)
