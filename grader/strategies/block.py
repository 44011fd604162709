"""Cases of a block."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st

from grader.cases.block import BlockCase
from grader.cases.sequence import PADDINGS
from grader.strategies.family import ANY, SEEDS, Family
from grader.strategies.sequence import FURTHER, sequence_family, sequence_sizes


@st.composite
def block_cases(
    draw: Callable[..., Any],
    *,
    coincidence: str = "distinct",
    paddings: tuple[str, ...] = ("none",),
    causal: tuple[bool, ...] = (True,),
    norm_first: tuple[bool, ...] = (True, False),
    small: bool = False,
) -> BlockCase:
    """Draw block cases."""
    # The norms of one or two features are constants, or signs: no property would be left.
    sizes = draw(sequence_sizes(coincidence=coincidence).filter(lambda s: s["n_heads"] * s["d_head"] > 2))
    D = sizes["n_heads"] * sizes["d_head"]
    widths = st.integers(3, 20).filter(lambda size: size not in {*sizes.values(), D})
    widths = {"F=D": st.just(D), "wide": st.integers(65, 70)}.get(coincidence, widths)
    return BlockCase(
        training=draw(st.booleans()),
        seed=draw(SEEDS),
        padding=draw(st.sampled_from(paddings)),
        causal=draw(st.sampled_from(causal)),
        sharp=False,
        d_ff=draw(widths),
        norm_first=draw(st.sampled_from(norm_first)),
        small=small,
        **sizes,
    )


_family = partial(sequence_family, block_cases, own={"F=D": 1, "wide": 1})
"""Here "wide" has many hidden features, too."""

FAMILIES: dict[str, Family] = {
    "block": _family(),
    "block_mixed": _family(paddings=PADDINGS, causal=ANY),
    "block_pre_norm": _family(paddings=PADDINGS, causal=ANY, norm_first=(True,), further=FURTHER),
    "block_post_norm": _family(paddings=PADDINGS, causal=ANY, norm_first=(False,), further=FURTHER),
    "block_small": _family(small=True, without=("long",)),
}
