"""Cases of a single attention."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st

from grader.cases.attention import MASKS, MASKS_OF_SEVERAL, AttentionCase
from grader.strategies.family import LENGTHS, SEEDS, Cases, Family, distinct

_BY_QUERY = ("full", "shared")
"""Masks with a row for each query, which long cases need."""

_USUAL_OF_HEADS = ("shared", "padding", "keys", "one_row", "full")

_FAR = st.integers(260, 300)


@st.composite
def attention_cases(
    draw: Callable[..., Any],
    *,
    masks: tuple[str, ...],
    dead: bool = False,
    equal: tuple[str, ...] = (),
    ones: tuple[str, ...] = (),
    batch_of_one: bool = False,
    length: str = "short",
    wide: bool = False,
    queries_as_batch: bool = False,
    heads: bool = False,
    all_ones: bool = False,
) -> AttentionCase:
    """Draw attention cases.

    Args:
        equal: sizes that coincide; all others are pairwise distinct.
        ones: sizes that are 1.
        batch_of_one: one of the leading dimensions is 1; with `heads`, the first.
        length: of T_q and T_k: "short", up to 9; "64"; "long", 67 to 80; "far queries" and "far keys", one
            of them 260 to 300 and the other short, so that code that visits pair after pair has time.
        wide: as many features as real models have.
        queries_as_batch: as many queries as the first dimension has.
        heads: with two leading dimensions, of sequences and heads.
        all_ones: every leading dimension is 1.
    """
    names = ["T_q", "T_k", "d_head", "d_v"]
    ranges = [st.integers(2, 9)] * 4
    ranges[0] = _FAR if length == "far queries" else LENGTHS.get(length, ranges[0])
    ranges[1] = _FAR if length == "far keys" else LENGTHS.get(length, ranges[1])
    if wide:
        ranges[2] = st.sampled_from((16, 24, 33, 64))
    sizes = dict(zip(names, draw(st.tuples(*ranges).filter(distinct)), strict=True))
    if equal:
        sizes |= dict.fromkeys(equal, sizes[equal[0]])
    sizes |= dict.fromkeys(ones, 1)
    mask = draw(st.sampled_from(masks))
    fewest = 2 if mask in MASKS_OF_SEVERAL else int(batch_of_one or queries_as_batch or mask == "padding")
    most = 3 if length == "short" else fewest if length.startswith("far") else 2
    if heads:
        fewest = most = 2
    lead = draw(st.lists(st.integers(2, 4 if length == "short" else 2), min_size=fewest, max_size=most))
    if batch_of_one:
        lead[0 if heads else draw(st.integers(0, len(lead) - 1))] = 1
    if all_ones:
        lead = [1] * len(lead)
    if queries_as_batch:
        sizes["T_q"] = lead[0]
    return AttentionCase(
        training=draw(st.booleans()), seed=draw(SEEDS), lead=tuple(lead), mask=mask, dead=dead, **sizes
    )


def _attention_family(masks: tuple[str, ...], *, dead: bool = False) -> Family:
    def kind(**options: Any) -> Cases:
        return attention_cases(masks=masks, dead=dead, **options)

    unmasked = ("none",) if "none" in masks else masks
    by_query = tuple(mask for mask in masks if mask in _BY_QUERY) or masks
    single_key = attention_cases(masks=unmasked, dead=dead, ones=("T_k",))
    unmasked_one = attention_cases(masks=unmasked, dead=dead, batch_of_one=True)
    kinds = {
        "distinct": (kind(), 8),
        "batch of one, unmasked": (unmasked_one, 1),
        "T_q=T_k": (kind(equal=("T_q", "T_k")), 2),
        "T_k=d_head": (kind(equal=("T_k", "d_head")), 2),
        "d_head=d_v": (kind(equal=("d_head", "d_v")), 1),
        "T_q=1": (kind(ones=("T_q",)), 2),
        "d_head=1": (kind(ones=("d_head",)), 1),
        "d_v=1": (kind(ones=("d_v",)), 1),
        "batch of one": (kind(batch_of_one=True), 2),
        "long": (attention_cases(masks=by_query, dead=dead, length="long"), 1),
    }
    if dead or "none" in masks:
        kinds["T_k=1"] = (single_key, 1)
    if dead:
        kinds["T_q=T_k=1"] = (kind(ones=("T_q", "T_k")), 1)
    if "rows" in masks:
        usual = partial(attention_cases, masks=_USUAL_OF_HEADS, dead=dead, heads=True)
        kinds["heads"] = (attention_cases(masks=MASKS_OF_SEVERAL, dead=dead, heads=True), 7)
        kinds["heads, batch of one"] = (usual(batch_of_one=True), 2)
        kinds["heads, usual"] = (usual(), 1)
        kinds["heads, all ones"] = (usual(all_ones=True), 1)
        kinds["heads, T_q=1"] = (usual(ones=("T_q",)), 1)
        kinds["T_q=B"] = (attention_cases(masks=("shared",), dead=dead, queries_as_batch=True), 1)
    kinds["wide"] = (kind(wide=True), 1)
    return kinds


_ALIVE = tuple(mask for mask in MASKS if mask not in ("one_column", "columns"))
_ALIVE_MASKED = tuple(mask for mask in _ALIVE if mask != "none")
_DEAD = tuple(mask for mask in MASKS if mask != "none")


def _mixed_attention_family() -> Family:
    """With and without masks, with and without dead rows: what the reference is compared on."""
    alive, dead = _attention_family(_ALIVE), _attention_family(_DEAD, dead=True)
    halves = {f"{name}, alive": (strategy, -(-2 * n // 3)) for name, (strategy, n) in alive.items()}
    halves |= {
        f"{name}, dead": (strategy, -(-n // 3))
        for name, (strategy, n) in dead.items()
        if n > 1 or name in ("long", "T_k=1", "T_q=T_k=1", "heads, T_q=1")
    }
    return _with_far(halves)


def _with_far(family: Family) -> Family:
    return dict(family) | {
        "far queries": (attention_cases(masks=_BY_QUERY, length="far queries"), 1),
        "far keys": (attention_cases(masks=_BY_QUERY, length="far keys"), 1),
        "64": (attention_cases(masks=_BY_QUERY, length="64"), 1),
    }


FAMILIES: dict[str, Family] = {
    "attention": _with_far(_attention_family(_ALIVE)),
    "attention_plain": _attention_family(("none",)),
    "attention_masked": _attention_family(_ALIVE_MASKED),
    "attention_dead": _attention_family(_DEAD, dead=True),
    "attention_mixed": _mixed_attention_family(),
}
