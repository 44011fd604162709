"""Part 3, hidden: the Transformer block against the reference."""

from __future__ import annotations

from grader.cases.block import BlockCase
from grader.check import on_cases
from grader.checks.hidden.compare import expect_float32, expect_sequence_gradients, expect_sequence_output
from grader.client import PartClient

FORWARD = "block.py, TransformerBlock.forward"


@on_cases("block_pre_norm", look_at=f"{FORWARD}: x = x + attn(ln1(x)), then x = x + ffn(ln2(x))")
def test_reference_pre_norm(block: PartClient, reference: PartClient, case: BlockCase) -> None:
    """With the same weights a pre-norm block equals the reference, random gammas and betas included."""
    expect_sequence_output(block, reference, case)


@on_cases("block_post_norm", look_at=f"{FORWARD}: x = ln1(x + attn(x)), then x = ln2(x + ffn(x))")
def test_reference_post_norm(block: PartClient, reference: PartClient, case: BlockCase) -> None:
    """With the same weights a post-norm block equals the reference, random gammas and betas included."""
    expect_sequence_output(block, reference, case)


@on_cases(
    "block_small", look_at="block.py, TransformerBlock.__init__: eps = 1e-5 inside the root, biased variance"
)
def test_reference_small_variance(block: PartClient, reference: PartClient, case: BlockCase) -> None:
    """Where the norms read values of size 1e-3, so that eps counts, the block equals the reference."""
    expect_sequence_output(block, reference, case)


@on_cases("block_mixed", look_at=f"{FORWARD}: nothing detached, every parameter used")
def test_reference_gradients(block: PartClient, reference: PartClient, case: BlockCase) -> None:
    """The gradients of the input and of all parameters equal the reference's."""
    expect_sequence_gradients(block, reference, case)


@on_cases("block_mixed", look_at=FORWARD)
def test_reference_float32(block: PartClient, reference: PartClient, case: BlockCase) -> None:
    """In float32 output and gradients equal the reference's, up to float32's own error."""
    expect_float32(block, reference, case, x=case.x, weights=case.weights, **case.masks)
