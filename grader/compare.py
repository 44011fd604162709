"""Two runs over the same class compared: whose score changed, by how much, because of which checks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.intake import InputError
from grader.stored import read_result
from grader.text import one_line

GONE = "not there"


@dataclass(frozen=True)
class Result:
    """What is compared of one result.

    Attributes:
        total: None after a grader error, which says nothing.
        checks: points and outcome by check id.
    """

    total: float | None
    checks: Mapping[str, tuple[float, str]]


@dataclass(frozen=True)
class Change:
    """One submission whose result is another now.

    Attributes:
        before: None where it was not there.
        checks: those that changed, with what they were and what they are.
    """

    submission: str
    before: Result | None
    after: Result | None
    checks: Mapping[str, tuple[str, str]]

    @property
    def told(self) -> bool:
        """Whether its total is another, or an outcome; what only has other numbers is counted by check."""
        outcomes = [
            {check: outcome for check, (_, outcome) in result.checks.items()} if result else None
            for result in (self.before, self.after)
        ]
        return self.difference != 0 or outcomes[0] != outcomes[1]

    @property
    def difference(self) -> float | None:
        """In points, where both have a total."""
        before, after = (result.total if result else None for result in (self.before, self.after))
        return None if before is None or after is None else round(after - before, 6)


def read_both(old: Path, new: Path) -> tuple[dict[str, Result], dict[str, Result]]:
    """Read what two batches left, their folders or the `results` in them, or two results; by submission.

    Raises:
        InputError: one has none, or one that is no result; or one is a file, and the other is not.
    """
    if os.path.isfile(old) != os.path.isfile(new):
        raise InputError(f"both must be folders, or both results, got {old} and {new}")
    return _read(old), _read(new)


def _read(path: Path) -> dict[str, Result]:
    if os.path.isfile(path):
        return {"": _result(path)}  # compared with another, whatever they are called
    folder = path / "results" if os.path.isdir(path / "results") else path
    files = sorted(file for file in folder.glob("*.json") if not file.name.startswith("."))
    if not files:
        raise InputError(f"a run's folder must have results in it, got {path}")
    return {file.stem: _result(file) for file in files}


def _result(file: Path) -> Result:
    document = read_result(file)
    total = None if document["extra_data"]["grader_error"] else float(document["score"])
    return Result(total, {test["extra_data"]["check"]: _of(test) for test in document["tests"]})


def _of(test: Mapping[str, Any]) -> tuple[float, str]:
    return float(test.get("score", 0)), str(test["extra_data"]["outcome"])


def changes(old: Mapping[str, Result], new: Mapping[str, Result]) -> list[Change]:
    """Those that differ, in total or in a check; the largest difference first."""
    found = []
    for submission in sorted({*old, *new}):
        before, after = old.get(submission), new.get(submission)
        if before != after:
            found.append(Change(submission, before, after, _checks(before, after)))
    return sorted(found, key=lambda change: -abs(change.difference or 0))


def _checks(before: Result | None, after: Result | None) -> dict[str, tuple[str, str]]:
    if before is None or after is None:
        return {}
    found = {}
    for check in dict.fromkeys([*before.checks, *after.checks]):
        was, now = before.checks.get(check), after.checks.get(check)
        if was != now:
            found[check] = (_shown(was), _shown(now))
    return found


def _shown(check: tuple[float, str] | None) -> str:
    return GONE if check is None else f"{check[0]:g} {check[1].replace('_', ' ')}"


def told(old: Mapping[str, Result], new: Mapping[str, Result]) -> Iterator[str]:
    """The comparison in lines: a summary, the checks by how many they changed, then each submission."""
    found = changes(old, new)
    moved = [change for change in found if change.before and change.after and change.difference != 0]
    yield f"{len(old)} results before, {len(new)} now; {len(moved)} scores changed"
    by_check = Counter(check for change in found for check in change.checks)
    for check, count in by_check.most_common():
        yield f"  {check}: {count} submission{'' if count == 1 else 's'}"
    for change in found:
        if change.told:
            yield from _one(change)


def _one(change: Change) -> Iterator[str]:
    before, after = _total(change.before), _total(change.after)
    difference = change.difference
    by = f" ({difference:+g})" if difference else ""
    yield f"{one_line(change.submission)}: {before} -> {after}{by}".removeprefix(": ")
    for check, (was, now) in change.checks.items():
        yield f"    {check}: {was} -> {now}"


def _total(result: Result | None) -> str:
    if result is None:
        return GONE
    return "grader error" if result.total is None else f"{result.total:g}"
