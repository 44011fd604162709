"""On which case a failure is shown: the simplest that fails in the same way, not the one that met it.

A mistake mostly shows in a family's plainest case of the smallest sizes already. What is tried is fixed,
so that a message is the same wherever and after whatever it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from itertools import chain, islice

from grader.cases import Case

_SEEDS = 8
"""By their remainders seeds decide how arguments are handed over, see `Case.by_position` and `inputs`."""


def size(case: Case) -> int:
    """The sum of all sizes, and the number of leading dimensions."""
    values = asdict(case)
    lead: tuple[int, ...] = values.get("lead", ())
    return len(lead) + sum(v for n, v in values.items() if type(v) is int and n != "seed")


def simpler(case: Case, family: Sequence[Case]) -> list[Case]:
    """Smaller cases to try in turn.

    Those of the family's kinds that are as plain as the case's own, in eval mode; then those of its own
    kind and mode, with the arguments handed over as it does.
    """
    kinds = {_oddity(each): each for each in family}
    plain = [kinds[oddity] for oddity in sorted(kinds) if oddity <= _oddity(case)]
    tried = chain(*(_small(replace(each, training=False, seed=0)) for each in plain), _small(case))
    return [each for each in dict.fromkeys(tried) if size(each) < size(case)]


@lru_cache(maxsize=1024)
def _small(case: Case) -> Sequence[Case]:
    """The case in its small sizes, under the first seed that has something masked, if there is one."""
    found = []
    first = case.seed % _SEEDS
    seeds = range(first, first + 10 * _SEEDS, _SEEDS)
    for sizes in case.small_sizes:
        resized = (replace(case, seed=seed, **sizes) for seed in seeds)
        found += list(islice((each for each in resized if each.shows_its_mask), 1))
    return found


def _oddity(case: Case) -> tuple[int, ...]:
    """How far it is, in masks and switches, from what a student would try first."""
    return tuple(
        case.kinds[name].index(value) if isinstance(value, str) else int(value != (name in case.usual))
        for name, value in asdict(case).items()
        if isinstance(value, (str, bool)) and name != "training"
    )
