"""Part 2, hidden: multi-head self-attention against the reference."""

from __future__ import annotations

from grader.cases.multi_head import MultiHeadCase
from grader.check import on_cases
from grader.checks.hidden.compare import expect_float32, expect_sequence_gradients, expect_sequence_output
from grader.client import PartClient

FORWARD = "multi_head.py, MultiHeadSelfAttention.forward"


@on_cases("multi_head_mixed", look_at=FORWARD)
def test_reference_output(multi_head: PartClient, reference: PartClient, case: MultiHeadCase) -> None:
    """With the same weights the output equals the reference's, under every mask."""
    expect_sequence_output(multi_head, reference, case)


@on_cases("multi_head_mixed", look_at=f"{FORWARD}: nothing detached, every parameter used")
def test_reference_gradients(multi_head: PartClient, reference: PartClient, case: MultiHeadCase) -> None:
    """The gradients of the input and of all parameters equal the reference's."""
    expect_sequence_gradients(multi_head, reference, case)


@on_cases("multi_head_mixed", look_at=FORWARD)
def test_reference_float32(multi_head: PartClient, reference: PartClient, case: MultiHeadCase) -> None:
    """In float32 output and gradients equal the reference's, up to float32's own error."""
    expect_float32(multi_head, reference, case, x=case.x, weights=case.weights, **case.masks)
