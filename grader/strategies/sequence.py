"""What the families of whole sequences have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from grader.strategies.family import LENGTHS, Cases, Family, distinct


@st.composite
def sequence_sizes(draw: Callable[..., Any], *, coincidence: str = "distinct") -> dict[str, int]:
    """Draw B, T, n_heads and d_head, pairwise distinct but for the coincidence."""
    length = coincidence if coincidence in LENGTHS else "short"
    several = st.integers(2, 4 if length == "short" else 3)
    ranges = {
        "B": several,
        "T": LENGTHS[length],
        "n_heads": several,
        "d_head": st.integers(2, 6),
    }
    values = draw(st.tuples(*ranges.values()).filter(distinct))
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
PADDED = ("right", "left", "scattered")
FURTHER = {"wide": 1, "many sequences": 1, "64": 1, "B=D": 1}
"""Kinds for what is compared with the reference."""


def sequence_family(
    cases: Callable[..., Cases],
    *,
    own: Mapping[str, int],
    without: tuple[str, ...] = (),
    further: Mapping[str, int] = {},
    **options: Any,
) -> Family:
    """A family of sequences.

    Args:
        own: kinds of coincidences that only this part has, and how many cases of each.
        without: kinds that are left out.
        further: kinds for what is compared with the reference.
        options: what else the strategy takes.
    """
    kinds = {
        name: (cases(coincidence=name, **options), count)
        for name, count in (_COINCIDENCES | dict(own) | dict(further)).items()
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
                kinds[f"H=1, {told}"] = (cases(coincidence="H=1", **(lone | {"paddings": PADDED})), 1)
        if "none" in options["paddings"]:
            kinds["B=T=1"] = (cases(coincidence="B=T=1", **(options | {"paddings": ("none",)})), 1)
    return kinds
