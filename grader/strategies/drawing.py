"""The cases of a grade, drawn from the families once and recorded.

Those that decide a grade are `cases.json`: the same for every submission, every machine and every version
of Hypothesis, which grading does not even import. `python -m grader record` draws them again after a
family has changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from grader import strategies
from grader.cases import Case
from grader.packages import modules_of
from grader.recorded import CASES_FILE, as_text, recorded
from grader.simplest import size
from grader.strategies.family import Cases, Family

RECORD_SEED = 3


@cache
def families() -> dict[str, Family]:
    """The families of all parts, by name."""
    found: dict[str, Family] = {}
    for module in modules_of(strategies):
        found |= getattr(module, "FAMILIES", {})
    return found


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
        self[name] = draw(families()[name], self._number)
        return self[name]


def record(names: Collection[str] = (), path: Path = CASES_FILE) -> None:
    """Draw these families, all if none is named, and write them beside what is recorded of the others.

    Whatever changes in the source, what Hypothesis draws may change with it: it takes constants from there.
    """
    drawn = {
        name: draw(family, RECORD_SEED) if name in (names or families()) else recorded(path)[name]
        for name, family in families().items()
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
