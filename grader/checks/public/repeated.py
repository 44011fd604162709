"""The same call gives the same answer, whatever was called before, and in both modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from grader import expect
from grader.cases import Case, SequenceCase
from grader.client import PartClient


def expect_repeatable(
    client: PartClient, case: Case, inputs: Mapping[str, Any], other: Mapping[str, Any]
) -> None:
    """Call with `inputs`, with `other`, and with `inputs` again; then on a fresh instance, other way round.

    Args:
        inputs: keyword arguments of `forward`.
        other: some of other sizes, under other masks. Whatever an instance keeps from a call (a mask, a
            size) then shows in the next one.
    """
    tensors = [name for name, value in inputs.items() if isinstance(value, torch.Tensor)]

    first, _, again = client.forwards(case, [inputs, other, inputs])
    _, later = client.forwards(case, [other, inputs], training=not case.training)

    for name, tensor in first.by_name.items():
        law = "is the same in a second call with the same arguments"
        note = "another call, with longer sequences and other masks, lies in between"
        expect.identical(again.by_name[name], tensor, name, law, note=note)
        law = "is the same in train and in eval mode"
        expect.identical(later.by_name[name], tensor, name, law, note="on a second instance")
    changed = [name for name in tensors if name in first.changed]
    expect.that(
        not changed, "no argument is changed in place", f"after the call {', '.join(changed)} differs"
    )


def other_masks(case: SequenceCase) -> dict[str, Any]:
    """A larger batch of longer sequences, padded if the case is not, causal if the case is not."""
    padding = "right" if case.padding == "none" else "none"
    other = replace(
        case, T=case.T + 3, B=case.B + 1, padding=padding, causal=not case.causal, seed=case.seed + 1
    )
    return {"x": other.x} | other.masks
