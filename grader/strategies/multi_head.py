"""Cases of multi-head attention."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st

from grader.cases.multi_head import MultiHeadCase
from grader.cases.sequence import PADDINGS
from grader.strategies.family import ANY, SEEDS, Family
from grader.strategies.sequence import FURTHER, PADDED, sequence_family, sequence_sizes


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
        seed=draw(SEEDS),
        padding=draw(st.sampled_from(paddings)),
        causal=draw(st.sampled_from(causal)),
        sharp=sharp,
        **draw(sequence_sizes(coincidence=coincidence)),
    )


_family = partial(sequence_family, multi_head_cases, own={"D=1": 1})


def _with_sharp(family: Family, **options: Any) -> Family:
    sharp = multi_head_cases(sharp=True, **options)
    return dict(family) | {"sharp": (sharp, 3)}


FAMILIES: dict[str, Family] = {
    "multi_head": _with_sharp(_family(paddings=("none", "none", "right", "left"))),
    "multi_head_smooth": _family(),
    "multi_head_free": _family(causal=(False,)),
    "multi_head_padded": _with_sharp(
        _family(paddings=PADDED, causal=ANY, without=("T=1",)),
        paddings=PADDED,
        causal=ANY,
    ),
    "multi_head_sharp": {"sharp": (multi_head_cases(sharp=True, paddings=("none", *PADDED), causal=ANY), 20)},
    "multi_head_dead": _family(paddings=("left", "scattered", "whole"), without=("T=1",)),
    "multi_head_mixed": _family(paddings=PADDINGS, causal=ANY, further=FURTHER),
}
