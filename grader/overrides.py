"""Staff's word is last: points that they set by hand, on top of every run.

A CSV file with the columns `submission`, `part or check`, `points`, `reason`; a line sets the points of a
part, of a check (by id or number) or of the whole (`total`). Results keep what the grader found; scores and
reports show both.
"""

from __future__ import annotations

import copy
import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from grader.assignment import Assignment
from grader.intake import InputError
from grader.marks import Override
from grader.text import defused, one_line

TOTAL = "total"
MAX_TOLD = 10
"""Lines with something wrong that are told at once."""

COLUMNS = ("submission", "part or check", "points", "reason")
_FIXED = {"submission", "points", "reason"}
_WHAT = ("check", "part")
"""The second column may be called as one likes, or be two, of which one has the word."""


def read_overrides(path: Path, assignment: Assignment, submissions: Collection[str]) -> list[Override]:
    """Read the file; where there is none, nobody has said anything.

    Raises:
        InputError: a line is about no submission, part or check that there is, has no points or no
            reason, or contradicts another.
    """
    try:
        rows = _rows(path)
    except FileNotFoundError:
        return []
    found: dict[tuple[str, str], Override] = {}
    wrong: list[str] = []
    for line, row in rows:
        try:
            override = _override(row, assignment, submissions, f"line {line}")
            if (override.submission, override.what) in found:
                raise InputError(f"line {line}: each must be set once, got {override.what} again")
            found[override.submission, override.what] = override
        except InputError as error:
            wrong.append(str(error))
    if wrong:
        more = f"; and {len(wrong) - MAX_TOLD} more" if len(wrong) > MAX_TOLD else ""
        raise InputError(f"{path}, {'; '.join(wrong[:MAX_TOLD])}{more}")
    return list(found.values())


def _rows(path: Path) -> list[tuple[int, Mapping[str, str]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        delimiter = ";" if ";" in text.partition("\n")[0] else ","
        reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
        header, *lines = [(reader.line_num, row) for row in reader] or [(0, [])]
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} must be a CSV file in UTF-8, got {error}") from error
    columns = [name.strip().lower() for name in header[1]]
    others = set(columns) - _FIXED
    if not set(columns) >= _FIXED or not (len(others) == 1 or others & set(_WHAT)):
        wanted = ", ".join(COLUMNS)
        raise InputError(
            f"{path} must have the columns {wanted}, got {one_line(', '.join(columns)) or 'nothing'}"
        )
    for line, row in lines:
        if any(cell.strip() for cell in row[len(columns) :]):
            raise InputError(f"{path}, line {line}: a line must have {len(columns)} cells, got {len(row)}")
    return [
        (line, dict(zip(columns, (cell.strip() for cell in row), strict=False)))
        for line, row in lines
        if any(cell.strip() for cell in row)
    ]


def _override(
    row: Mapping[str, str], assignment: Assignment, submissions: Collection[str], where: str
) -> Override:
    submission = row.get("submission", "")
    if submission not in submissions:  # as `scores.csv` shows it?
        submission = next((one for one in submissions if defused(one) == submission), submission)
    if submission not in submissions:
        raise InputError(f"{where}: the submission must be one in `scores.csv`, got {submission!r}")
    others = row.keys() - _FIXED
    said = [row[name] for name in (others if len(others) == 1 else _WHAT) if row.get(name)]
    what = _what(said[-1] if len(said) == 1 else "", assignment, where)
    if not what:
        got = " and ".join(said) or "nothing"
        raise InputError(f"{where}: it must name one part, one check, or {TOTAL}, got {got}")
    points = _points(row.get("points", ""), _most(what, assignment), where)
    if not row.get("reason"):
        raise InputError(f"{where}: there must be a reason, got none")
    return Override(submission, what, points, row["reason"])


def _what(said: str, assignment: Assignment, where: str) -> str:
    if f"{said}0" in assignment.by_number:
        raise InputError(f"{where}: a spreadsheet may have made {said} of {said}0; name the check by its id")
    what = assignment.by_number.get(said, said)
    return what if what in assignment.checks or what in assignment.parts or what == TOTAL else ""


def _most(what: str, assignment: Assignment) -> float:
    """The points that there are to get; to the whole, staff may add some."""
    if what == TOTAL:
        return math.inf
    checks = [assignment.checks[what]] if what in assignment.checks else assignment.checks_of(what)
    return sum(check.points for check in checks)


def _points(text: str, most: float, where: str) -> float:
    # `1,000` may be a thousand, or one.
    plain = re.fullmatch(r"\d{1,6}(?:\.\d+|,\d{1,2})?", text)
    points = float(text.replace(",", ".")) if plain else math.nan
    if not 0 <= points <= most:
        upto = "" if most == math.inf else f" to {most:g}"
        raise InputError(f"{where}: points must be a number from 0{upto}, got {text!r}")
    return points


def applied(document: Mapping[str, Any], overrides: Iterable[Override]) -> dict[str, Any]:
    """The result with the overrides in it: a part's word goes over its checks', the total's over all."""
    said = {override.what: override for override in overrides}
    if not said:
        return dict(document)
    changed = copy.deepcopy(dict(document))
    about = changed["extra_data"]
    for test in changed["tests"]:
        own = said.get(test["extra_data"]["check"])
        if own:
            part = about["parts"][test["extra_data"]["part"]]
            part["score"] += own.points - test.get("score", 0)
            changed["score"] += own.points - test.get("score", 0)
            test["extra_data"]["override"] = _noted(own, test.get("score"))
            test["score"] = own.points
    for name, part in about["parts"].items():
        if name in said:
            changed["score"] += said[name].points - part["score"]
            part["override"] = _noted(said[name], part["score"])
            part["score"] = said[name].points
    if TOTAL in said:
        about["override"] = _noted(said[TOTAL], changed["score"])
        changed["score"] = said[TOTAL].points
    return changed


def _noted(override: Override, before: float | None) -> dict[str, Any]:
    return {"points": override.points, "reason": override.reason, "before": before}
