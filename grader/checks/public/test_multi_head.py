"""Part 2, public: the laws of multi-head self-attention."""

from __future__ import annotations

from dataclasses import replace

import torch

from grader import expect
from grader.cases.multi_head import MultiHeadCase
from grader.check import on_cases, once
from grader.checks.public import oracles
from grader.checks.public.far import FAR, far_out
from grader.checks.public.parameters import expect_parameters
from grader.checks.public.placed import expect_dtype_and_device
from grader.checks.public.repeated import expect_repeatable, other_calls
from grader.checks.public.visibility import drawing_who_sees_whom, expect_past_unchanged, expect_visibility
from grader.client import PartClient

LONG = 1030
"""Positions; more than a mask that was made once for 1024 of them has."""

COLLIDING = 256
"""A position that bfloat16 cannot tell from the next one."""

CLASS = "multi_head.py, MultiHeadSelfAttention"
FORWARD = f"{CLASS}.forward"


@on_cases("multi_head_mixed", look_at=f"{FORWARD}: the way from (B, T, D) to heads and back")
def test_shapes(multi_head: PartClient, case: MultiHeadCase) -> None:
    """The output is (B, T, D)."""
    multi_head.forward(case, x=case.x, **case.masks)  # the client compares the shapes


@on_cases("multi_head", look_at=f"{CLASS}.__init__: qkv = nn.Linear(D, 3 D), proj = nn.Linear(D, D)")
def test_parameters(multi_head: PartClient, case: MultiHeadCase) -> None:
    """The parameters are qkv and proj, weight and bias, 4 D^2 + 4 D in all, and all of them train."""
    expect_parameters(multi_head, case)


@once(look_at=f"{CLASS}.__init__: ValueError unless n_heads divides d_model")
def test_indivisible_heads(multi_head: PartClient) -> None:
    """The constructor raises ValueError exactly when n_heads does not divide d_model."""
    for d_model, n_heads in ((7, 2), (8, 3), (2, 4), (12, 5), (9, 6), (24, 16), (10, 4)):
        raised = multi_head.construct(d_model=d_model, n_heads=n_heads)
        expect.that(
            "ValueError" in raised or "AssertionError" in raised,
            f"MultiHeadSelfAttention(d_model={d_model}, n_heads={n_heads}) raises ValueError",
            f"the constructor raises {raised[0]}" if raised else "the constructor raises nothing",
        )
    for d_model, n_heads in ((6, 1), (6, 2), (6, 6)):
        raised = multi_head.construct(d_model=d_model, n_heads=n_heads)
        expect.that(
            not raised,
            f"MultiHeadSelfAttention(d_model={d_model}, n_heads={n_heads}) is constructed",
            f"the constructor raises {raised[0] if raised else ''}",
        )


@on_cases(
    "multi_head_mixed",
    look_at=f"{FORWARD}: tensors made on the way need the dtype of x, those kept are buffers",
)
def test_dtype(multi_head: PartClient, case: MultiHeadCase) -> None:
    """float32 in gives float32 out, float64 in gives float64 out, and .to(device) moves all that is used."""
    expect_dtype_and_device(multi_head, case, x=case.x, **case.masks)


@on_cases("multi_head_mixed", look_at=f"{FORWARD}: in-place operations, state kept between calls, dropout")
def test_repeatable(multi_head: PartClient, case: MultiHeadCase) -> None:
    """The same call gives the same again, whatever was called or made before, and changes no argument."""
    expect_repeatable(multi_head, case, {"x": case.x} | case.masks, other_calls(case))


@on_cases("multi_head", look_at=f"{FORWARD}: the causal mask, True above the diagonal, on by default")
def test_future_perturbation(multi_head: PartClient, case: MultiHeadCase) -> None:
    """What stands after position t never changes the output at 0..t, not in the last bit."""
    edits = [case.edited(torch.arange(case.T) > t) for t in case.cuts]
    padding = None if case.padding == "none" else case.padded

    runs = [{"x": x} for x in (case.x, *edits)]
    before, *after = multi_head.forwards(case, runs, key_padding_mask=padding)

    with drawing_who_sees_whom(multi_head, case):
        expect_past_unchanged(before, after, case.cuts)
    expect.finite(before.output, "output")
    if case.T > 60:
        _expect_causal_far_out(multi_head, _far(case, FAR), [FAR // 2, COLLIDING, FAR - 3])
        _expect_causal_far_out(multi_head, _far(case, LONG), [LONG // 2])


def _expect_causal_far_out(multi_head: PartClient, case: MultiHeadCase, cuts: list[int]) -> None:
    edits = [case.edited(torch.arange(case.T) > t) for t in cuts]
    with far_out(case):
        before, *after = multi_head.forwards(case, [{"x": x} for x in (case.x, *edits)], forgiven=True)
        expect_past_unchanged(before, after, cuts)


def _far(case: MultiHeadCase, T: int) -> MultiHeadCase:
    return replace(case, B=1, T=T, n_heads=1, d_head=2, padding="none")


@on_cases(
    "multi_head_smooth", look_at=f"{FORWARD}: the causal mask leaves the diagonal and all below it open"
)
def test_past_matters(multi_head: PartClient, case: MultiHeadCase) -> None:
    """An edit of any position 0..t changes the output at t."""
    expect_visibility(multi_head, case)
    if case.T > 60:
        far = _far(case, FAR)
        edited = far.edited(torch.arange(FAR) == 0)
        with far_out(far):
            before, after = multi_head.forwards(far, [{"x": far.x}, {"x": edited}], forgiven=True)
            name, when = f"output[0, {FAR - 1}]", "after an edit of x[0, 0]"
            expect.differs(after.output[0, -1], before.output[0, -1], name, when)


@on_cases("multi_head_free", look_at=f"{FORWARD}: causal=False blocks no position")
def test_not_causal(multi_head: PartClient, case: MultiHeadCase) -> None:
    """With causal=False an edit of any position changes the output at every position."""
    expect_visibility(multi_head, case)


@on_cases("multi_head_free", look_at=f"{FORWARD}: nothing may depend on where a position stands")
def test_permutation(multi_head: PartClient, case: MultiHeadCase) -> None:
    """With causal=False, permuting the positions permutes the outputs and nothing else."""
    order = case.permutation("order", case.T)

    before, after = multi_head.forwards(case, [{"x": case.x}, {"x": case.x[:, order]}], causal=False)

    note = f"positions in the order {order.tolist()}"
    law = "the output before, permuted"
    expect.close(after.output, before.output[:, order], "output", law, note=note)


@on_cases("multi_head_smooth", look_at=f"{FORWARD}: head h owns features h*d_head .. (h+1)*d_head of q, k, v")
def test_head_slices(multi_head: PartClient, case: MultiHeadCase) -> None:
    """Behind the heads, features h*d_head .. (h+1)*d_head are single-head attention on that slice."""
    D, d_head = case.D, case.d_head
    identity = {"proj.weight": torch.eye(D).double(), "proj.bias": torch.zeros(D).double()}
    weights = case.weights | identity
    qkv = case.x @ weights["qkv.weight"].T + weights["qkv.bias"]
    q, k, v = qkv[..., :D], qkv[..., D : 2 * D], qkv[..., 2 * D :]
    future = torch.ones(case.T, case.T, dtype=torch.bool).triu(1)

    output = multi_head.forward(case, x=case.x, weights=weights).output

    for h in range(case.n_heads):
        own = slice(h * d_head, (h + 1) * d_head)
        expected = oracles.attend(q[..., own], k[..., own], v[..., own], future)
        expect.close(
            output[..., own],
            expected,
            f"output[..., {own.start}:{own.stop}], head {h}",
            "single-head attention on its slice of q, k and v",
            note="proj is the identity",
        )


@on_cases("multi_head_padded", look_at=f"{FORWARD}: key_padding_mask blocks keys, for every query and head")
def test_padding_does_not_matter(multi_head: PartClient, case: MultiHeadCase) -> None:
    """What stands at padded positions never changes the output at the others, not in the last bit."""
    edited = case.edited(case.padded)

    before, after = multi_head.forwards(case, [{"x": case.x}, {"x": edited}], **case.masks)

    real = ~case.padded
    with drawing_who_sees_whom(multi_head, case):
        expect.identical(
            after.output[real],
            before.output[real],
            "output at the positions that are no padding",
            "is the same after an edit of x at the padded ones",
            note=_padding(case),
        )


@on_cases(
    "multi_head_padded",
    look_at=f"{FORWARD}: key_padding_mask is (B, T) and belongs to the keys of its sequence",
)
def test_padded_equals_unpadded(multi_head: PartClient, case: MultiHeadCase) -> None:
    """Every sequence of a padded batch gives what it gives alone and without its padding."""
    if case.sharp:
        return  # rounding between the two shapes of the product would count
    batch = multi_head.forward(case, x=case.x, **case.masks).output

    runs = [{"x": case.x[b : b + 1, ~case.padded[b]]} for b in range(case.B)]
    alone = multi_head.forwards(case, runs, causal=case.causal)

    for b, single in enumerate(alone):
        expect.close(
            batch[b, ~case.padded[b]],
            single.output[0],
            f"output of sequence {b} at the positions that are no padding",
            "what the sequence gives alone",
            note=_padding(case),
        )


@on_cases("multi_head_padded", look_at=f"{FORWARD}: a key is blocked if either mask blocks it")
def test_both_masks(multi_head: PartClient, case: MultiHeadCase) -> None:
    """Query t sees key s exactly if s is no padding and, when causal, s <= t."""
    if not case.sharp:  # sharp attention ignores most keys
        expect_visibility(multi_head, case, note=_padding(case))


@on_cases("multi_head_dead", look_at=f"{FORWARD}: queries with every key blocked; there the heads give 0")
def test_left_padding_gives_bias(multi_head: PartClient, case: MultiHeadCase) -> None:
    """A query with no key left gives the bias of proj; the others do not notice."""
    dead = ~case.seen.any(-1)  # (B, T)

    output = multi_head.forward(case, x=case.x, weights=case.weights, **case.masks).output

    note = _padding(case)
    bias = case.weights["proj.bias"].expand_as(output)
    name, law = "output of the queries with no key left", "the bias of proj"
    expect.close(output[dead], bias[dead], name, law, note=note)
    expect.finite(output[~dead], "output of the other queries", note=note)


@on_cases("multi_head_dead", look_at=f"{FORWARD}: NaN made on the way; nan_to_num hides it forward only")
def test_dead_rows_have_finite_gradients(multi_head: PartClient, case: MultiHeadCase) -> None:
    """With queries that have no key left, all gradients are finite."""
    back = {"output": case.randn("back", *case.x.shape)}

    gradients = multi_head.raw_gradients(case, back, x=case.x, dtype=case.narrow_dtype, **case.masks)

    for name, gradient in gradients.items():
        expect.finite(gradient, f"the gradient of {name}", note=_padding(case))


@on_cases("multi_head_mixed", look_at=f"{FORWARD}: the batch axis stays apart in every view and product")
def test_batch_independence(multi_head: PartClient, case: MultiHeadCase) -> None:
    """Every sequence of a batch gives what it gives alone, whatever its neighbours are."""
    together = {"x": case.x} | ({} if case.padding == "none" else {"key_padding_mask": case.padded})
    apart = [{n: tensor[b : b + 1] for n, tensor in together.items()} for b in range(case.B)]

    batch, *alone = multi_head.forwards(case, [together, *apart], causal=case.causal)

    for b, single in enumerate(alone):
        law = "what the sequence gives in a batch of its own"
        expect.close(batch.output[b], single.output[0], f"output[{b}]", law)


@on_cases("multi_head_sharp", look_at=f"{FORWARD}: nothing cuts off large scores; blocked ones are -inf")
def test_huge_scores(multi_head: PartClient, case: MultiHeadCase) -> None:
    """With scores of about 1e5 the output still equals torch's multi-head attention."""
    output = multi_head.forward(case, x=case.x, weights=case.weights, **case.masks).output

    expected = oracles.multi_head(case.x, case.weights, case.n_heads, case.seen)
    # Scores computed in float32 are off by some hundredths, which shows where two are nearly equal.
    expect.close(output, expected, "output", "torch's multi-head attention", tolerance=0.05)


@on_cases("multi_head_mixed", look_at=f"{FORWARD} and attention.py", own_parts=True)
def test_together(multi_head: PartClient, case: MultiHeadCase) -> None:
    """With your own attention.py in use, the output equals torch's multi-head attention."""
    output = multi_head.forward(case, x=case.x, weights=case.weights, **case.masks).output

    expected = oracles.multi_head(case.x, case.weights, case.n_heads, case.seen)
    expect.close(output, expected, "output", "torch's multi-head attention")


def _padding(case: MultiHeadCase) -> str:
    """The padding mask as a student reads it, one row for each sequence."""
    if case.T > 16:
        return f"{int(case.padded.sum())} of {case.padded.numel()} positions padded"
    rows = ["".join("x" if padded else "." for padded in row) for row in case.padded.tolist()]
    return f"padding (x): {' '.join(rows)}"
