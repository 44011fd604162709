"""What the families of all parts are made of."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from grader.cases import Case

Cases = st.SearchStrategy[Case]

Family = Mapping[str, tuple[Cases, int]]
"""The cases that a group of checks is run on: a strategy and a number for each kind of coincidence."""

SEEDS = st.integers(0, 2**16)
ANY = (True, False)

LENGTHS = {
    "short": st.integers(2, 9),
    "64": st.sampled_from((32, 64)),
    "long": st.integers(67, 80),
}
"""Of T_q, T_k and T."""


def distinct(sizes: tuple[int, ...]) -> bool:
    """Whether no two sizes are equal."""
    return len(set(sizes)) == len(sizes)
