"""Part 1, hidden: scaled dot-product attention against the reference."""

from __future__ import annotations

from dataclasses import replace

from grader import expect
from grader.cases.attention import AttentionCase
from grader.check import on_cases
from grader.checks.hidden.compare import expect_float32, expect_gradients, expect_output
from grader.checks.public.far import FAR, far_out
from grader.client import PartClient

FORWARD = "attention.py, ScaledDotProductAttention.forward"


@on_cases("attention_mixed", look_at=FORWARD)
def test_reference_output(attention: PartClient, reference: PartClient, case: AttentionCase) -> None:
    """The output equals the reference's, with every kind of mask and leading dimensions."""
    expect_output(attention, reference, case)
    if 64 < case.T_q < FAR // 2:
        far = replace(case, lead=(), T_q=FAR - 1, T_k=FAR, mask="shared", dead=False)
        with far_out(far):
            expect_output(attention, reference, far, forgiven=True)


@on_cases("attention_mixed", look_at=FORWARD)
def test_reference_weights(attention: PartClient, reference: PartClient, case: AttentionCase) -> None:
    """The weights equal the reference's."""
    weights = attention.forward(case, **case.inputs).weights

    expected = reference.forward(case, **case.inputs).weights
    expect.close(weights, expected, "weights", "the reference's")


@on_cases("attention_mixed", look_at=f"{FORWARD}: nothing detached, no in-place edit of what is needed back")
def test_reference_gradients(attention: PartClient, reference: PartClient, case: AttentionCase) -> None:
    """The gradients of q, k and v equal the reference's."""
    back = {"output": case.randn("back", *case.lead, case.T_q, case.d_v)}

    expect_gradients(attention, reference, case, back, **case.inputs)


@on_cases("attention_mixed", look_at=FORWARD)
def test_reference_float32(attention: PartClient, reference: PartClient, case: AttentionCase) -> None:
    """In float32 output, weights and gradients equal the reference's, up to float32's own error."""
    expect_float32(attention, reference, case, **case.inputs)
