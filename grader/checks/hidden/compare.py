"""Comparisons with the reference that more than one part makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from grader import expect
from grader.cases import Case
from grader.cases.sequence import SequenceCase
from grader.checks.public.far import FAR, far_out
from grader.client import PartClient

FLOAT32_ERRORS = 32.0
"""How many times the reference's own float32 error another order of operations may err."""

FLOAT32_GRADIENTS = 1e-3
"""What may be lost on the way back in float32: enough for sums in any order."""


def expect_output(client: PartClient, reference: PartClient, case: Case, **circumstances: bool) -> None:
    """Compare the outputs under the case's weights and masks; `circumstances` are those of a `Call`."""
    output = client.forward(case, weights=case.weights, **case.inputs, **circumstances).output

    expected = reference.forward(case, **case.inputs).output
    expect.close(output, expected, "output", "the reference's")


def expect_sequence_output(client: PartClient, reference: PartClient, case: SequenceCase) -> None:
    """Compare the outputs; of a long case those far out, too."""
    expect_output(client, reference, case)
    if case.T > 64:
        far = replace(case, B=1, T=FAR, n_heads=2, d_head=2, padding="scattered", causal=True)
        with far_out(far):
            expect_output(client, reference, far, forgiven=True)


def expect_float32(client: PartClient, reference: PartClient, case: Case, **inputs: Any) -> None:
    """Compare one float32 forward with the float64 reference, in a third of the cases gradients, too.

    What is allowed follows from how far the reference itself, run in float32, is from its float64
    answer on this case; where that happens to be very small, from the precision of float32.
    """
    observed = client.forward(case, dtype=torch.float32, **inputs)
    exact = reference.forward(case, **inputs)
    rounded = reference.forward(case, dtype=torch.float32, **inputs)
    for name, expected in exact.by_name.items():
        own_error = float((rounded.by_name[name].double() - expected).abs().max())
        scale = max(1.0, float(expected.abs().max()))
        precision = torch.finfo(torch.float32).eps * scale
        expect.close(
            observed.by_name[name],
            expected,
            name,
            "the reference's, computed in float32",
            tolerance=FLOAT32_ERRORS * max(own_error, precision) / scale,
        )
    if case.narrow_dtype is torch.float32:
        back = {"output": case.randn("back", *exact.output.shape)}
        law = "the reference's, computed in float32"
        expect_gradients(
            client, reference, case, back, law=law, tolerance=FLOAT32_GRADIENTS, dtype=torch.float32, **inputs
        )


def expect_gradients(
    client: PartClient,
    reference: PartClient,
    case: Case,
    back: Mapping[str, torch.Tensor],
    *,
    law: str = "the reference's",
    tolerance: float | None = None,
    dtype: torch.dtype | None = None,
    **inputs: Any,
) -> None:
    """Compare the gradients of the inputs and of every parameter with the float64 reference's.

    Args:
        back: what comes back into the outputs, by name.
        law: see `expect.close`; `tolerance`, too.
        dtype: that of the student's side; None for the client's own.
    """
    gradients = client.gradients(case, back, dtype=dtype, busy=case.busy, **inputs)

    for name, expected in reference.gradients(case, back, **inputs).items():
        expect.close(gradients[name], expected, f"the gradient of {name}", law, tolerance=tolerance)


def expect_sequence_gradients(client: PartClient, reference: PartClient, case: SequenceCase) -> None:
    """Compare the gradients of the input and of every parameter, under the case's weights and masks."""
    back = {"output": case.randn("back", *case.x.shape)}
    expect_gradients(client, reference, case, back, x=case.x, weights=case.weights, **case.masks)
