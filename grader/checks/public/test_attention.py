"""Part 1, public: the laws of scaled dot-product attention."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

import torch

from grader import expect
from grader.cases.attention import AttentionCase
from grader.check import on_cases
from grader.checks.public import oracles
from grader.checks.public.placed import expect_dtype_and_device
from grader.checks.public.repeated import expect_repeatable
from grader.checks.public.visibility import drawing_who_looks_where
from grader.client import PartClient

FORWARD = "attention.py, ScaledDotProductAttention.forward"


@on_cases("attention", look_at=f"{FORWARD}: axes; softmax and product over the keys, whatever leads")
def test_shapes(attention: PartClient, case: AttentionCase) -> None:
    """Output is (..., T_q, d_v) and weights is (..., T_q, T_k), whatever the leading dimensions."""
    attention.forward(case, **case.inputs)  # the client compares the shapes
    # So a multi-head attention hands them over: heads split off and transposed, without a copy.
    attention.forward(case, **case.inputs, strided=True)


@on_cases("attention_plain", look_at="attention.py, ScaledDotProductAttention: it has nothing to learn")
def test_parameters(attention: PartClient, case: AttentionCase) -> None:
    """There are no parameters."""
    attention.forward(case, **case.inputs)  # a stub has none either
    names = [fact.name for fact in attention.parameters(case)]
    expect.that(not names, "the module has no parameters", f"the module has {', '.join(names[:5])}")


@on_cases(
    "attention_mixed",
    look_at=f"{FORWARD}: tensors made on the way need the dtype of q, those kept are buffers",
)
def test_dtype(attention: PartClient, case: AttentionCase) -> None:
    """float32 in gives float32 out, float64 in gives float64 out, and .to(device) moves all that is used."""
    expect_dtype_and_device(attention, case, **case.inputs)


@on_cases("attention_mixed", look_at=f"{FORWARD}: in-place operations, state kept between calls, dropout")
def test_repeatable(attention: PartClient, case: AttentionCase) -> None:
    """The same call gives the same again, whatever was called or made before, and changes no argument."""
    expect_repeatable(attention, case, case.inputs, _other_calls(case))


@functools.lru_cache(maxsize=256)
def _other_calls(case: AttentionCase) -> list[dict[str, Any]]:
    """The same sizes with a mask, larger ones, the same sizes without a mask."""
    masked = replace(case, mask="full", dead=False, seed=case.seed + 1)
    mask = "full" if case.mask == "none" else "none"
    longer = replace(case, T_q=case.T_q + 3, T_k=case.T_k + 2, mask=mask, dead=False, seed=case.seed + 2)
    plain = replace(case, mask="none", dead=False, seed=case.seed + 3)
    return [other.inputs for other in (masked, longer, plain)]


@on_cases("attention", look_at=f"{FORWARD}: softmax over the last axis, the keys; masking before it")
def test_distribution(attention: PartClient, case: AttentionCase) -> None:
    """The weights of a query are at least 0 and sum to 1 over the keys."""
    weights = attention.forward(case, **case.inputs).weights

    expect.at_least_zero(weights, "weights")
    sums = weights.double().sum(-1)
    expect.close(sums, torch.ones_like(sums), "weights.sum(-1)", "1 for every query")


@on_cases("attention_masked", look_at=f"{FORWARD}: the mask, True = blocked, and how it broadcasts")
def test_blocked_keys_weigh_zero(attention: PartClient, case: AttentionCase) -> None:
    """A blocked key weighs exactly 0, and the open ones do not."""
    weights = attention.forward(case, **case.inputs).weights

    with drawing_who_looks_where(attention, case):
        expect.zero(weights, case.blocked_everywhere, "weights", "where the mask is True")
        open_keys = ~case.blocked_everywhere
        expect.that(
            bool((weights[open_keys] > 0).all()),
            "weights is above 0 where the mask is False",
            f"{int((~(weights[open_keys] > 0)).sum())} of {int(open_keys.sum())} open keys have no weight",
        )


@on_cases("attention_masked", look_at=f"{FORWARD}: block scores before the softmax, with -inf")
def test_blocked_keys_do_not_matter(attention: PartClient, case: AttentionCase) -> None:
    """Other keys and values where every query is blocked change nothing, not in the last bit."""
    unused = case.blocked_everywhere.all(-2)  # (*lead, T_k)
    note = ""
    inputs = dict(case.inputs)
    if not bool(unused.any()):
        # Block one more key for everybody, so that there is one to edit.
        unused = torch.zeros_like(unused)
        unused[..., case.seed % case.T_k] = True
        open_left = ~(case.blocked_everywhere | unused.unsqueeze(-2))
        if not bool(open_left.any(-1).all()):
            return
        inputs["mask"] = case.blocked_everywhere | unused.unsqueeze(-2)
        note = f"key {case.seed % case.T_k} blocked for all queries"
    where = unused.unsqueeze(-1)
    k = torch.where(where, 10 * case.randn("other k", *case.k.shape), case.k)
    v = torch.where(where, 10 * case.randn("other v", *case.v.shape), case.v)

    before, after = attention.forwards(case, [inputs, inputs | {"k": k, "v": v}])

    law = "is the same after an edit of blocked keys and values"
    with drawing_who_looks_where(attention, case):
        expect.identical(after.output, before.output, "output", law, note=note)
        expect.identical(after.weights, before.weights, "weights", law, note=note)


@on_cases("attention_dead", look_at=f"{FORWARD}: rows of the mask that are True throughout")
def test_dead_rows_are_zero(attention: PartClient, case: AttentionCase) -> None:
    """A query with every key blocked has weights 0 and output 0; the other queries do not notice."""
    dead = case.blocked_everywhere.all(-1, keepdim=True)  # (*lead, T_q, 1)

    opened = case.inputs | {"mask": case.blocked_everywhere & ~dead}
    returned, other = attention.forwards(case, [case.inputs, opened])

    law = "for a query with every key blocked"
    expect.zero(returned.weights, dead.expand_as(returned.weights), "weights", law)
    expect.zero(returned.output, dead.expand_as(returned.output), "output", law)
    law = "what the other queries get where no query has every key blocked"
    expect.close(returned.output, other.output.masked_fill(dead, 0.0), "output", law)


@on_cases("attention_dead", look_at=f"{FORWARD}: NaN made on the way; nan_to_num hides it forward only")
def test_dead_rows_have_finite_gradients(attention: PartClient, case: AttentionCase) -> None:
    """With queries that have every key blocked, all gradients are finite."""
    back = {
        "output": case.randn("back output", *case.lead, case.T_q, case.d_v),
        "weights": case.randn("back weights", *case.lead, case.T_q, case.T_k),
    }

    gradients = attention.raw_gradients(case, back, **case.inputs, dtype=case.narrow_dtype)

    for name, gradient in gradients.items():
        expect.finite(gradient, f"the gradient of {name}")


@on_cases("attention", look_at=f"{FORWARD}: a softmax that subtracts the maximum; block with -inf")
def test_huge_scores(attention: PartClient, case: AttentionCase) -> None:
    """With scores up to 1e6 in size the best open key takes all the weight, blocked ones exactly 0."""
    # Along one direction u: q = a u with a = 1 or -1, k = c sqrt(d_head) u with distinct c up to 1e6
    # in size, so that score = a c, and no two scores of a query are close.
    direction = case.randn("direction", case.d_head)
    direction = direction / direction.norm()
    sign = torch.where(case.coins("sign", *case.lead, case.T_q, probability=0.5), 1.0, -1.0).double()
    steps = torch.linspace(-1e6, 1e6, case.T_k, dtype=torch.float64)
    size = steps[case.permutation("sizes", case.T_k)].expand(*case.lead, case.T_k)
    q = sign.unsqueeze(-1) * direction
    k = size.unsqueeze(-1) * direction * math.sqrt(case.d_head)
    scores = sign.unsqueeze(-1) * size.unsqueeze(-2)  # (*lead, T_q, T_k)
    best = scores.masked_fill(case.blocked_everywhere, -math.inf).argmax(-1)
    one_hot = torch.nn.functional.one_hot(best, case.T_k).double()

    attention.forward(case, **case.inputs)  # in which dtype its code runs
    dtypes = (torch.float32,) if attention.dtype is torch.float32 else (torch.float64, torch.float32)
    for dtype in dtypes:
        returned = attention.forward(case, dtype=dtype, **(case.inputs | {"q": q, "k": k}))
        note = f"scores between -1e6 and 1e6, {str(dtype).removeprefix('torch.')}"
        expect.finite(returned.weights, "weights", note=note)
        expect.finite(returned.output, "output", note=note)
        blocked = case.blocked_everywhere
        expect.zero(returned.weights, blocked, "weights", "where the mask is True", note=note)
        law = "1 at the open key with the largest score, else 0"
        expect.close(returned.weights, one_hot, "weights", law, note=note)


@on_cases("attention", look_at=f"{FORWARD}: output = weights v, with weights that sum to 1")
def test_equal_values_pass_through(attention: PartClient, case: AttentionCase) -> None:
    """If all values are equal, every query gets that value."""
    value = case.randn("value", *case.lead, 1, case.d_v)
    v = value.expand(*case.lead, case.T_k, case.d_v)

    output = attention.forward(case, **(case.inputs | {"v": v})).output

    expected = value.expand(*case.lead, case.T_q, case.d_v)
    expect.close(output, expected, "output", "the one value that all keys carry")


@on_cases("attention", look_at=f"{FORWARD}: keys, values and mask columns belong together")
def test_key_order_does_not_matter(attention: PartClient, case: AttentionCase) -> None:
    """Permuting the keys with their values and mask columns permutes the weights and nothing else."""
    order = case.permutation("order", case.T_k)
    permuted = {"q": case.q, "k": case.k[..., order, :], "v": case.v[..., order, :]}
    if case.blocked is not None:
        permuted["mask"] = case.blocked[..., order]

    before, after = attention.forwards(case, [case.inputs, permuted])

    note = f"keys in the order {order.tolist()}"
    expect.close(after.output, before.output, "output", "the output before", note=note)
    law = "the weights before, permuted"
    expect.close(after.weights, before.weights[..., order], "weights", law, note=note)


@on_cases("attention_plain", look_at=f"{FORWARD}: scores are q k^T / sqrt(d_head), d_head = q.shape[-1]")
def test_scale(attention: PartClient, case: AttentionCase) -> None:
    """Log w_i - log w_j equals (q k_i - q k_j) / sqrt(d_head), for every d_head."""
    weights = attention.forward(case, **case.inputs).weights.double()

    expect.that(
        bool((weights > 0).all()),
        "weights is above 0 for every key",
        f"the smallest weight is {float(weights.min()):.5g}",
    )
    logs = weights.log()
    scores = case.q @ case.k.transpose(-2, -1) / math.sqrt(case.d_head)
    law = "the differences of the scores / sqrt(d_head)"
    name = "log weights, less that of key 0"
    expect.close(logs - logs[..., :1], scores - scores[..., :1], name, law)


@on_cases("attention", look_at=FORWARD)
def test_torch_agrees(attention: PartClient, case: AttentionCase) -> None:
    """The output equals that of torch's scaled_dot_product_attention."""
    output = attention.forward(case, **case.inputs).output

    law = "torch's scaled_dot_product_attention"
    expect.close(output, oracles.attend(case.q, case.k, case.v, case.blocked), "output", law)
