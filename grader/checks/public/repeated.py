"""The same call gives the same answer, whatever was called before, and in both modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from grader import expect
from grader.cases import Case, SequenceCase
from grader.client import PartClient


def expect_repeatable(
    client: PartClient, case: Case, inputs: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> None:
    """Call with `inputs`, with `others`, and with `inputs` again; then `others` first, on a fresh instance.

    Args:
        inputs: keyword arguments of `forward`.
        others: some with other values, sizes and masks. Whatever an instance keeps from a call (a mask,
            a size) then shows in a later one.
    """
    tensors = [name for name, value in inputs.items() if isinstance(value, torch.Tensor)]

    first, *_, again = client.forwards(case, [inputs, *others, inputs])
    *_, later = client.forwards(case, [*others, inputs], training=not case.training)

    for name, tensor in first.by_name.items():
        law = "is the same in a second call with the same arguments"
        note = "calls with other sizes and other masks lie in between"
        expect.identical(again.by_name[name], tensor, name, law, note=note)
        law = "is the same in train and in eval mode, whatever was called before"
        expect.identical(later.by_name[name], tensor, name, law, note="on a second instance")
    changed = [name for name in tensors if name in first.changed]
    expect.that(
        not changed, "no argument is changed in place", f"after the call {', '.join(changed)} differs"
    )


def other_calls(case: SequenceCase) -> list[dict[str, Any]]:
    """The same sizes with other values and a padding; a larger batch of longer sequences, other masks."""
    same_size = replace(case, padding="left", seed=case.seed + 1)
    padding = "right" if case.padding == "none" else "none"
    larger = replace(
        case, T=case.T + 3, B=case.B + 1, padding=padding, causal=not case.causal, seed=case.seed + 2
    )
    return [{"x": other.x} | other.masks for other in (same_size, larger)]
