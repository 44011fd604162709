"""The same call gives the same answer, whatever was called before, and in both modes."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from grader import expect
from grader.cases import Case, SequenceCase
from grader.client import Outputs, PartClient
from grader.submission import Raised

_WHATEVER = "what it is in the other mode, whatever was called or made before"
_SECOND = (
    "on a second instance, called before its weights were loaded; others of other sizes were made after it"
)


def expect_repeatable(
    client: PartClient, case: Case, inputs: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> None:
    """Call with `inputs` again and again, each of `others` between; then once more on another instance.

    That one was called before its weights were loaded, and is not the last of its class that was made: what
    is kept from older weights, or for all instances, then shows.

    Args:
        inputs: keyword arguments of `forward`.
        others: some with other values, sizes and masks. Whatever an instance keeps from a call (a mask,
            a size, keys) then shows in a later one.
    """
    tensors = [name for name, value in inputs.items() if isinstance(value, torch.Tensor)]
    turns = [inputs, inputs, *(turn for other in others for turn in (other, inputs))]

    answers = client.forwards(case, turns, dtype=case.narrow_dtype)
    other = _on_another_instance(client, case, [*others, inputs])

    first, *later = answers[:1] + answers[1::2]
    for name, tensor in first.by_name.items():
        for again in later:
            note = "calls with other sizes and masks lie in between"
            same = "is the same in a later call with the same arguments"
            expect.identical(_told(again.by_name[name]), _told(tensor), name, same, note=note)
        expect.that(
            other.by_name[name].dtype is tensor.dtype,
            f"{name} has dtype {tensor.dtype}, whatever was called or made before",
            f"{name} has dtype {other.by_name[name].dtype}",
            note=_SECOND,
        )
        expect.close(_told(other.by_name[name]), _told(tensor), name, _WHATEVER, note=_SECOND)
    changed = [name for name in tensors if name in first.changed]
    expect.that(
        not changed, "no argument is changed in place", f"after the call {', '.join(changed)} differs"
    )


def _on_another_instance(client: PartClient, case: Case, turns: Sequence[Mapping[str, Any]]) -> Outputs:
    """What the last turn gives in the other mode, on an instance with a past and neighbours."""
    dtype, mode = case.narrow_dtype, not case.training
    try:
        return client.forwards(case, turns, dtype=dtype, training=mode, neighbours=case.neighbours)[-1]
    except Raised as error:
        observed = f"{error.where}: {error.sentence}"
        raise expect.CheckFailure(f"the output equals {_WHATEVER}", observed, _SECOND) from error


def _told(values: torch.Tensor) -> torch.Tensor:
    """The same with a number for NaN: that there is one is for other checks; here it is the same again."""
    return torch.nan_to_num(values, nan=1e9, posinf=math.inf, neginf=-math.inf)


@functools.lru_cache(maxsize=256)
def other_calls(case: SequenceCase) -> list[dict[str, Any]]:
    """The same sizes with a padding, a larger batch of longer sequences, the same sizes without padding."""
    padding = "right" if case.padding == "none" else "none"
    others = [
        replace(case, padding="left", seed=case.seed + 1),
        replace(case, T=case.T + 3, B=case.B + (case.T > 1), padding=padding, seed=case.seed + 2),
        replace(case, padding="none", causal=not case.causal, seed=case.seed + 3),
    ]
    return [{"x": other.x} | other.masks for other in others]
