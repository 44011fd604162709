"""Hypothesis strategies for the cases, by family; and the cases of a grade, drawn once and recorded.

A family is what a group of checks is run on. Its kinds say which coincidences of sizes it meets and
how often: as a rule sizes are pairwise distinct, so that no two axes can be mistaken for each other,
and some cases make them equal on purpose.

The cases that decide a grade are `cases.json`: the same for every submission, every machine and every
version of Hypothesis, which grading does not even import. `python -m grader record` draws them again after
a family has changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from grader.cases import MASKS, MASKS_OF_SEVERAL, PADDINGS, AttentionCase, BlockCase, Case, MultiHeadCase
from grader.recorded import CASES_FILE, as_text, recorded
from grader.simplest import size

RECORD_SEED = 3

Cases = st.SearchStrategy[Case]

_SEEDS = st.integers(0, 2**16)


Family = Mapping[str, tuple[Cases, int]]
"""The cases that a group of checks is run on: a strategy and a number for each kind of coincidence."""


def draw(family: Family, number: int) -> list[Case]:
    """Draw the family's cases afresh, the same for the same `number`; small ones come first."""
    cases: list[Case] = []
    met: Counter[tuple[str, Any]] = Counter()
    for index, (strategy, count) in enumerate(family.values()):
        pool = _examples(strategy, 4 * count + 4, 1000 * number + index)
        for _ in range(min(count, len(pool))):
            chosen = min(pool, key=lambda case: sum(met[feature] for feature in _features(case)))
            pool.remove(chosen)
            met.update(_features(chosen))
            cases.append(chosen)
    return sorted(cases, key=lambda case: (size(case), case.training, case.seed, repr(case)))


class DrawnCases(dict[str, list[Case]]):
    """The cases of every family, drawn under one number when they are first asked for."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def __missing__(self, name: str) -> list[Case]:
        """Draw the family's cases."""
        self[name] = draw(FAMILIES[name], self._number)
        return self[name]


def record(names: Collection[str] = (), path: Path = CASES_FILE) -> None:
    """Draw these families, all if none is named, and write them beside what is recorded of the others.

    Whatever changes in the source, what Hypothesis draws may change with it: it takes constants from there.
    """
    drawn = {
        name: draw(family, RECORD_SEED) if name in (names or FAMILIES) else recorded(path)[name]
        for name, family in FAMILIES.items()
    }
    path.write_text(as_text(drawn), encoding="utf-8")


def _features(case: Case) -> list[tuple[str, Any]]:
    """What should be met about equally often: modes, masks, paddings, numbers of leading dimensions."""
    values = asdict(case)
    features: list[tuple[str, Any]] = [
        (name, value) for name, value in values.items() if isinstance(value, (bool, str))
    ]
    if "lead" in values:
        features.append(("lead", len(values["lead"])))
    if "padding" in values:
        features.append(("masks", (values["padding"], values["causal"])))
    return features


def _examples(strategy: Cases, count: int, number: int) -> list[Case]:
    """About `count` distinct examples; the first that Hypothesis tries are nearly minimal, so go last."""
    found: dict[Case, None] = {}

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(case: Case) -> None:
        found.setdefault(case)

    collect()
    return list(found)[::-1]


# --- attention -----------------------------------------------------------------------------------


_BY_QUERY = ("full", "shared")
"""Masks with a row for each query, which long cases need."""

_USUAL_OF_HEADS = ("shared", "padding", "keys", "one_row", "full")

_LENGTHS = {
    "short": st.integers(2, 9),
    "64": st.sampled_from((32, 64)),
    "long": st.integers(67, 80),
}
"""Of T_q, T_k and T."""

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
    ranges[0] = _FAR if length == "far queries" else _LENGTHS.get(length, ranges[0])
    ranges[1] = _FAR if length == "far keys" else _LENGTHS.get(length, ranges[1])
    if wide:
        ranges[2] = st.sampled_from((16, 24, 33, 64))
    sizes = dict(zip(names, draw(st.tuples(*ranges).filter(_distinct)), strict=True))
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
        training=draw(st.booleans()), seed=draw(_SEEDS), lead=tuple(lead), mask=mask, dead=dead, **sizes
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


def _distinct(sizes: tuple[int, ...]) -> bool:
    return len(set(sizes)) == len(sizes)


# --- sequences -----------------------------------------------------------------------------------


@st.composite
def sequence_sizes(draw: Callable[..., Any], *, coincidence: str = "distinct") -> dict[str, int]:
    """Draw B, T, n_heads and d_head, pairwise distinct but for the coincidence."""
    length = coincidence if coincidence in _LENGTHS else "short"
    several = st.integers(2, 4 if length == "short" else 3)
    ranges = {
        "B": several,
        "T": _LENGTHS[length],
        "n_heads": several,
        "d_head": st.integers(2, 6),
    }
    values = draw(st.tuples(*ranges.values()).filter(_distinct))
    sizes: dict[str, int] = dict(zip(ranges, values, strict=True))
    if coincidence == "B=T":
        sizes["T"] = sizes["B"]
    elif coincidence == "T=H":
        sizes["T"] = sizes["n_heads"]
    elif coincidence == "B=H":
        sizes["B"] = sizes["n_heads"]
    elif coincidence == "H=D":
        sizes["d_head"] = 1
    elif coincidence == "H=d_head":
        sizes["d_head"] = sizes["n_heads"]
    elif coincidence == "T=D":
        sizes["T"] = sizes["n_heads"] * sizes["d_head"]
    elif coincidence == "many heads":
        sizes |= {"n_heads": draw(st.integers(5, 12)), "d_head": 2}
    elif coincidence == "many sequences":
        sizes["B"] = draw(st.integers(10, 13))
    elif coincidence == "wide":
        sizes |= {"n_heads": 2, "d_head": draw(st.sampled_from((16, 17, 32)))}
    elif coincidence == "B=D":
        sizes["B"] = sizes["n_heads"] * sizes["d_head"]
    elif coincidence == "D=1":
        sizes |= {"n_heads": 1, "d_head": 1}
    elif coincidence == "64":
        sizes["T"] = 64
    elif coincidence == "B=T=1":
        sizes |= {"B": 1, "T": 1}
    elif coincidence.endswith("=1"):
        sizes[{"B": "B", "T": "T", "H": "n_heads"}[coincidence[0]]] = 1
    return sizes


@st.composite
def multi_head_cases(
    draw: Callable[..., Any],
    *,
    coincidence: str = "distinct",
    paddings: tuple[str, ...] = ("none",),
    causal: tuple[bool, ...] = (True,),
    sharp: bool = False,
) -> MultiHeadCase:
    """Draw multi-head cases."""
    return MultiHeadCase(
        training=draw(st.booleans()),
        seed=draw(_SEEDS),
        padding=draw(st.sampled_from(paddings)),
        causal=draw(st.sampled_from(causal)),
        sharp=sharp,
        **draw(sequence_sizes(coincidence=coincidence)),
    )


@st.composite
def block_cases(
    draw: Callable[..., Any],
    *,
    coincidence: str = "distinct",
    paddings: tuple[str, ...] = ("none",),
    causal: tuple[bool, ...] = (True,),
    norm_first: tuple[bool, ...] = (True, False),
    small: bool = False,  # hidden
) -> BlockCase:
    """Draw block cases."""
    # The norms of one or two features are constants, or signs: no property would be left.
    sizes = draw(sequence_sizes(coincidence=coincidence).filter(lambda s: s["n_heads"] * s["d_head"] > 2))
    D = sizes["n_heads"] * sizes["d_head"]
    widths = st.integers(3, 20).filter(lambda size: size not in {*sizes.values(), D})
    widths = {"F=D": st.just(D), "wide": st.integers(65, 70)}.get(coincidence, widths)
    return BlockCase(
        training=draw(st.booleans()),
        seed=draw(_SEEDS),
        padding=draw(st.sampled_from(paddings)),
        causal=draw(st.sampled_from(causal)),
        sharp=False,
        d_ff=draw(widths),
        norm_first=draw(st.sampled_from(norm_first)),
        small=small,  # hidden
        **sizes,
    )


_COINCIDENCES = {
    "distinct": 10,
    "B=T": 2,
    "T=H": 2,
    "B=H": 1,
    "B=1": 2,
    "T=1": 1,
    "H=1": 2,
    "H=D": 2,
    "H=d_head": 1,
    "T=D": 1,
    "many heads": 1,
    "long": 1,
}
_PADDED = ("right", "left", "scattered")
_FURTHER = {"wide": 1, "many sequences": 1, "64": 1, "B=D": 1}
"""For what is compared with the reference."""


def _sequence_family(
    cases: Callable[..., Cases],
    *,
    without: tuple[str, ...] = (),
    further: Mapping[str, int] = {},
    **options: Any,
) -> Family:
    # Of a block, "wide" has many hidden features, too.
    own = {"F=D": 1, "wide": 1} if cases is block_cases else {"D=1": 1}
    kinds = {
        name: (cases(coincidence=name, **options), count)
        for name, count in (_COINCIDENCES | own | dict(further)).items()
        if name not in without
    }
    if "many sequences" in further:
        many = cases(coincidence="many sequences", **(options | {"paddings": ("right", "scattered")}))
        kinds["many sequences"] = (many, 1)
    if "whole" in options.get("paddings", ()):
        for causal in options.get("causal", (True,)):
            # A single position that is padding: by itself it would hardly ever be drawn.
            lone = options | {"paddings": ("whole",), "causal": (causal,)}
            told = f"padded, causal={causal}"
            kinds[f"T=1, {told}"] = (cases(coincidence="T=1", **lone), 1)
            kinds[f"B=T=1, {told}"] = (cases(coincidence="B=T=1", **lone), 1)
            if further:
                kinds[f"H=1, {told}"] = (cases(coincidence="H=1", **(lone | {"paddings": _PADDED})), 1)
        if "none" in options["paddings"]:
            kinds["B=T=1"] = (cases(coincidence="B=T=1", **(options | {"paddings": ("none",)})), 1)
    return kinds


def _with_sharp(family: Family, **options: Any) -> Family:
    sharp = multi_head_cases(sharp=True, **options)
    return dict(family) | {"sharp": (sharp, 3)}


_ANY = (True, False)

FAMILIES: dict[str, Family] = {
    "attention": _with_far(_attention_family(_ALIVE)),
    "attention_plain": _attention_family(("none",)),
    "attention_masked": _attention_family(_ALIVE_MASKED),
    "attention_dead": _attention_family(_DEAD, dead=True),
    "attention_mixed": _mixed_attention_family(),
    "multi_head": _with_sharp(_sequence_family(multi_head_cases, paddings=("none", "none", "right", "left"))),
    "multi_head_smooth": _sequence_family(multi_head_cases),
    "multi_head_free": _sequence_family(multi_head_cases, causal=(False,)),
    "multi_head_padded": _with_sharp(
        _sequence_family(multi_head_cases, paddings=_PADDED, causal=_ANY, without=("T=1",)),
        paddings=_PADDED,
        causal=_ANY,
    ),
    "multi_head_sharp": {
        "sharp": (multi_head_cases(sharp=True, paddings=("none", *_PADDED), causal=_ANY), 20)
    },
    "multi_head_dead": _sequence_family(
        multi_head_cases, paddings=("left", "scattered", "whole"), without=("T=1",)
    ),
    "multi_head_mixed": _sequence_family(multi_head_cases, paddings=PADDINGS, causal=_ANY, further=_FURTHER),
    "block": _sequence_family(block_cases),
    "block_mixed": _sequence_family(block_cases, paddings=PADDINGS, causal=_ANY),
    "block_pre_norm": _sequence_family(
        block_cases, paddings=PADDINGS, causal=_ANY, norm_first=(True,), further=_FURTHER
    ),
    "block_post_norm": _sequence_family(
        block_cases, paddings=PADDINGS, causal=_ANY, norm_first=(False,), further=_FURTHER
    ),
    "block_small": _sequence_family(block_cases, small=True, without=("long",)),  # hidden
}
