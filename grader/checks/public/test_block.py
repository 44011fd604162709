"""Part 3, public: the laws of the Transformer block."""

from __future__ import annotations

from dataclasses import replace

import torch

from grader import expect
from grader.cases.block import BlockCase
from grader.check import on_cases, once
from grader.checks.public import oracles
from grader.checks.public.parameters import count, expect_parameters
from grader.checks.public.placed import expect_dtype_and_device
from grader.checks.public.repeated import expect_repeatable, other_calls
from grader.checks.public.visibility import drawing_who_sees_whom, expect_past_unchanged, expect_visibility
from grader.client import PartClient

CLASS = "block.py, TransformerBlock"
FORWARD = f"{CLASS}.forward"
DEPTH = 3
"""Blocks in a stack: enough for a leak of one position to be passed on."""

ATTENTION_OFF = ("attn.proj.weight", "attn.proj.bias")
FFN_OFF = ("ffn.2.weight", "ffn.2.bias")


@on_cases("block_mixed", look_at=FORWARD)
def test_shapes(block: PartClient, case: BlockCase) -> None:
    """The output is (B, T, D)."""
    block.forward(case, x=case.x, **case.masks)  # the client compares the shapes


@on_cases("block", look_at=f"{CLASS}.__init__: ln1, attn, ln2 and ffn, named as in the docstring")
def test_parameters(block: PartClient, case: BlockCase) -> None:
    """The parameters are those of ln1, attn, ln2 and ffn, nothing further, and all of them train."""
    expect_parameters(block, case)


@once(look_at=f"{CLASS}.__init__: biases, d_ff, two norms")
def test_published_counts(block: PartClient) -> None:
    """(64, 4, 256) has 49,984 parameters, (512, 8, 2048) 3,152,384 and (768, 12, 3072) 7,087,872."""
    published = {(64, 4, 256): 49_984, (512, 8, 2048): 3_152_384, (768, 12, 3072): 7_087_872}
    for (d_model, n_heads, d_ff), expected in published.items():
        observed = count(block.parameters(d_model=d_model, n_heads=n_heads, d_ff=d_ff))
        block_of = f"TransformerBlock({d_model}, {n_heads}, {d_ff})"
        expect.that(
            observed == expected,
            f"{block_of} has {expected:,} parameters",
            f"{block_of} has {observed:,} parameters",
        )


@on_cases(
    "block_mixed", look_at=f"{FORWARD}: tensors made on the way need the dtype of x, those kept are buffers"
)
def test_dtype(block: PartClient, case: BlockCase) -> None:
    """float32 in gives float32 out, float64 in gives float64 out, and .to(device) moves all that is used."""
    expect_dtype_and_device(block, case, x=case.x, **case.masks)


@on_cases("block_mixed", look_at=f"{FORWARD}: x += ... writes into the caller's tensor; dropout; kept state")
def test_repeatable(block: PartClient, case: BlockCase) -> None:
    """The same call gives the same again, whatever was called or made before, and changes no argument."""
    expect_repeatable(block, case, {"x": case.x} | case.masks, other_calls(case))


@on_cases("block_pre_norm", look_at=f"{FORWARD}: both residuals, x + attn(...) and x + ffn(...)")
def test_zero_weights_identity(block: PartClient, case: BlockCase) -> None:
    """With all weights and biases 0, a pre-norm block returns its input."""
    zeros = {name: torch.zeros_like(tensor) for name, tensor in case.weights.items()}

    output = block.forward(case, x=case.x, weights=zeros, **case.masks).output

    expect.close(output, case.x, "output", "x", note="all parameters are 0")


@on_cases("block", look_at=f"{FORWARD}: nothing but attn may look at other positions; causal by default")
def test_future_perturbation(block: PartClient, case: BlockCase) -> None:
    """Through a stack of three, what stands after position t never changes the output at 0..t."""
    edits = [case.edited(torch.arange(case.T) > t) for t in case.cuts]

    before, *after = block.forwards(case, [{"x": x} for x in (case.x, *edits)], depth=DEPTH)

    with drawing_who_sees_whom(block, case, depth=DEPTH):
        expect_past_unchanged(before, after, case.cuts, note=f"{DEPTH} blocks, one behind the other")
    expect.finite(before.output, "output")


@on_cases("block_mixed", look_at=f"{CLASS}: ffn and norms work on the last axis, the features")
def test_ffn_reads_one_position(block: PartClient, case: BlockCase) -> None:
    """With attention silenced, the output at a position depends on the input there and nowhere else."""
    weights = _silenced(case, ATTENTION_OFF)
    t = case.seed % case.T
    here = torch.arange(case.T) == t
    edited = case.edited(~here)

    runs = [{"x": case.x}, {"x": edited}]
    before, after = block.forwards(case, runs, weights=weights, **case.masks)

    name, law = f"output[:, {t}]", f"is the same after an edit of x everywhere but at [:, {t}]"
    expect.identical(after.output[:, t], before.output[:, t], name, law, note="proj of attn is 0")


@on_cases(
    "block_mixed", look_at=f"{FORWARD}: attn is called with causal and key_padding_mask, in both placements"
)
def test_masks_are_passed_on(block: PartClient, case: BlockCase) -> None:
    """A position sees exactly those that causal and key_padding_mask let it see."""
    expect_visibility(block, case)


@on_cases("block", look_at=f"{CLASS}.__init__: attn gets n_heads, ffn gets d_ff")
def test_sizes_are_passed_on(block: PartClient, case: BlockCase) -> None:
    """Attn works with n_heads heads, and ffn is d_ff wide."""
    shapes = {fact.name: fact.shape for fact in block.parameters(case)}
    for name, shape in (("ffn.0.weight", (case.d_ff, case.D)), ("ffn.2.weight", (case.D, case.d_ff))):
        # Where the name is another, the parameters check says so and blocks the forward below.
        if name in shapes:
            observed = shapes[name]
            expect.that(observed == shape, f"{name} has shape {shape}", f"{name} has shape {observed}")
    if case.T == 1:
        return  # a single position gives the same, however many heads look at it
    other = replace(case, n_heads=case.D, d_head=1) if case.n_heads == 1 else _single_head(case)

    own = block.forward(case, x=case.x, weights=case.weights).output
    with_other = block.forward(other, x=case.x, weights=case.weights).output

    when = f"when n_heads is {other.n_heads} instead of {case.n_heads}"
    expect.differs(with_other, own, "output", when, note="the same weights")


@on_cases("block_mixed", look_at=f"{FORWARD}: x + attn(ln1(x)) pre-norm, ln1(x + attn(x)) post-norm")
def test_attention_sublayer(block: PartClient, case: BlockCase) -> None:
    """With the feed-forward net silenced, the attention sublayer is what the equation says."""
    weights = _silenced(case, FFN_OFF)
    attn = oracles.part_of(weights, "attn")
    normed = oracles.layer_norm(case.x, weights, "ln1") if case.norm_first else case.x
    expected = case.x + oracles.multi_head(normed, attn, case.n_heads, case.seen)
    if not case.norm_first:
        expected = oracles.layer_norm(expected, weights, "ln1")
        expected = oracles.layer_norm(expected, weights, "ln2")

    output = block.forward(case, x=case.x, weights=weights, **case.masks).output

    law = "x + attn(ln1(x))" if case.norm_first else "ln2(ln1(x + attn(x)))"
    expect.close(output, expected, "output", law, note="the last layer of ffn is 0")


@on_cases("block_mixed", look_at=f"{FORWARD}: x + ffn(ln2(x)) pre-norm, ln2(x + ffn(x)) post-norm")
def test_ffn_sublayer(block: PartClient, case: BlockCase) -> None:
    """With attention silenced, the feed-forward sublayer is what the equation says."""
    weights = _silenced(case, ATTENTION_OFF)
    if case.norm_first:
        normed = oracles.layer_norm(case.x, weights, "ln2")
        expected = case.x + oracles.feed_forward(normed, weights)
    else:
        x = oracles.layer_norm(case.x, weights, "ln1")
        expected = oracles.layer_norm(x + oracles.feed_forward(x, weights), weights, "ln2")

    output = block.forward(case, x=case.x, weights=weights, **case.masks).output

    law = "x + ffn(ln2(x))" if case.norm_first else "ln2(x + ffn(x)) with x = ln1(x)"
    expect.close(output, expected, "output", law, note="proj of attn is 0")


@on_cases("block_pre_norm", look_at=f"{FORWARD}: the residuals carry x itself, not ln(x)")
def test_constant_shift(block: PartClient, case: BlockCase) -> None:
    """Pre-norm: adding a constant to all features of the input adds it to the output."""
    shift = 10 * (1 + case.randn("shift", case.B, case.T, 1).abs())

    before, after = block.forwards(case, [{"x": case.x}, {"x": case.x + shift}], **case.masks)

    law, note = "the output before, plus the constant", "x + c, some c above 10 for each position"
    # A norm that computes in float32 inside loses more where the mean is large.
    expect.close(after.output, before.output + shift, "output", law, tolerance=5e-4, note=note)


@on_cases("block_post_norm", look_at=f"{FORWARD}: post-norm ends with ln2(x + ffn(x))")
def test_post_norm_is_normalised(block: PartClient, case: BlockCase) -> None:
    """Post-norm: (output - beta) / gamma of ln2 has mean 0 and variance 1 at every position."""
    if case.D < 2:
        return  # one feature has no variance
    signs = torch.where(case.weights["ln2.weight"] < 0, -1.0, 1.0)
    gamma = signs * case.weights["ln2.weight"].abs().clamp(min=0.3)
    weights = case.weights | {"ln2.weight": gamma}

    output = block.forward(case, x=case.x, weights=weights, **case.masks).output.double()

    normed = (output - weights["ln2.bias"]) / gamma
    means, variances = normed.mean(-1), normed.var(-1, unbiased=False)
    expect.close(means, torch.zeros_like(means), "the mean of (output - beta) / gamma", "0")
    # eps takes a little of the variance, more of it where little variance went in.
    name = "the variance of (output - beta) / gamma"
    expect.close(variances, torch.ones_like(variances), name, "1", tolerance=0.05)


@on_cases("block_mixed", look_at=f"{FORWARD}, multi_head.py and attention.py", own_parts=True)
def test_together(block: PartClient, case: BlockCase) -> None:
    """With your own multi_head.py and attention.py in use, the block is what its equation says."""
    output = block.forward(case, x=case.x, weights=case.weights, **case.masks).output

    expected = oracles.block(case.x, case.weights, case.n_heads, case.seen, norm_first=case.norm_first)
    expect.close(output, expected, "output", "the block's equation on torch's multi-head attention")


def _single_head(case: BlockCase) -> BlockCase:
    return replace(case, n_heads=1, d_head=case.D)


def _silenced(case: BlockCase, names: tuple[str, ...]) -> dict[str, torch.Tensor]:
    """The case's weights, those named replaced by zeros."""
    return case.weights | {name: torch.zeros_like(case.weights[name]) for name in names}
