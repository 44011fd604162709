"""The same call gives the same answer, whatever was called before, and in both modes."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from grader import expect
from grader.cases import Case
from grader.cases.sequence import SequenceCase
from grader.client import Outputs, PartClient
from grader.submission import Raised

_WHATEVER = "the same, whatever was called or made before"
_SECOND = (
    "on a second instance, called before its weights were loaded; others of other sizes were made after it"
)
_MODES = {True: "train mode", False: "eval mode"}


def expect_repeatable(
    client: PartClient, case: Case, inputs: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> None:
    """Call with `inputs` again and again, each of `others` between; then once more on another instance.

    That one is in the other mode, was called before its weights were loaded, and is not the last of its class
    that was made: what is kept from older weights, or for all instances, then shows.

    Args:
        inputs: keyword arguments of `forward`.
        others: some with other values, sizes and masks. Whatever an instance keeps from a call (a mask,
            a size, keys) then shows in a later one.
    """
    tensors = [name for name, value in inputs.items() if isinstance(value, torch.Tensor)]
    turns = [inputs, inputs, *(turn for other in others for turn in (other, inputs))]

    answers = client.forwards(case, turns, dtype=case.narrow_dtype)
    first, *later = answers[:1] + answers[1::2]
    for name, tensor in first.by_name.items():
        for again in later:
            note = "calls with other sizes and masks lie in between"
            same = "is the same in a later call with the same arguments"
            expect.identical(_told(again.by_name[name]), _told(tensor), name, same, note=note)
    try:
        _expect_same(client, case, [*others, inputs], first, "of another instance", _WHATEVER, _SECOND)
    except expect.CheckFailure:
        # The mode alone may do it: then that is what there is to say.
        was, now = _MODES[case.training], _MODES[not case.training]
        _expect_same(client, case, [inputs], first, f"in {now}", f"what it is in {was}", f"then in {now}")
        raise
    changed = [name for name in tensors if name in first.changed]
    expect.that(
        not changed, "no argument is changed in place", f"after the call {', '.join(changed)} differs"
    )


def _expect_same(
    client: PartClient,
    case: Case,
    turns: Sequence[Mapping[str, Any]],
    first: Outputs,
    which: str,
    law: str,
    note: str,
) -> None:
    """The last turn, on an instance in the other mode with a past and neighbours, gives what `first` is."""
    dtype, mode = case.narrow_dtype, not case.training
    neighbours = case.neighbours if len(turns) > 1 else ()
    try:
        other = client.forwards(case, turns, dtype=dtype, training=mode, neighbours=neighbours)[-1]
    except Raised as error:
        raise expect.CheckFailure(
            f"the output {which} equals {law}", f"{error.where}: {error.sentence}", note
        ) from error
    for name, tensor in first.by_name.items():
        here = other.by_name[name]
        expect.that(
            here.dtype is tensor.dtype,
            f"{name} {which} has dtype {tensor.dtype}",
            f"{name} {which} has dtype {here.dtype}",
            note=note,
        )
        expect.close(_told(here), _told(tensor), f"{name} {which}", law, note=note)


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
