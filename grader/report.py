"""From pytest's report of a run to `results.json`: Gradescope's schema, ours inside `extra_data`.

Every known check has a row, and starts as "not run": what is absent from the report, skipped or lost
is never a pass.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader import __version__
from grader.assignment import Assignment, CheckEntry
from grader.terms import Outcome, Use
from grader.text import clean

if TYPE_CHECKING:
    from grader.misconceptions import Misconception
    from grader.recognise import Recognised

MAX_OUTPUT = 20_000
"""Characters of one check's output; Gradescope cuts at 100,000."""

LABELS = {
    "cause": "cause",
    "given": "given",
    "expected": "expected",
    "observed": "observed",
    "grid": "who sees whom",
    "printed": "printed",
    "look_at": "look at",
}
LABEL_WIDTH = 10

TEMPORARY = ".tmp"
"""How a hidden file ends that is not yet complete; one that stays was left by a process that was killed."""


@dataclass
class Row:
    """One check in the result.

    Attributes:
        lines: of its message, by what they are.
        at_fault: the earlier part whose mistake it is that this check does not pass with it.
        with_own: what came of the check with that part.
        misconception: the slug of the one that explains it.
        cause: what is told of that.
    """

    entry: CheckEntry
    outcome: Outcome = Outcome.NOT_RUN
    lines: Mapping[str, str] = field(default_factory=dict)
    at_fault: str = ""
    with_own: Outcome | None = None
    cause: str = ""
    misconception: str = ""

    @property
    def score(self) -> float:
        """All or nothing."""
        return self.entry.points if self.outcome is Outcome.PASSED else 0


@dataclass
class Run:
    """What one grading run found out, before it is written down."""

    assignment: Assignment
    rows: list[Row]
    uses: Sequence[Use] = ()
    recognised: Sequence[Recognised] = ()

    @property
    def score(self) -> float:
        """Points in all."""
        return sum(row.score for row in self.rows)

    @property
    def max_score(self) -> float:
        """Points there were to get."""
        return sum(row.entry.points for row in self.rows)

    @property
    def grader_error(self) -> bool:
        """Whether the grader itself failed somewhere."""
        return any(row.outcome is Outcome.GRADER_ERROR for row in self.rows)

    def parts(self) -> dict[str, dict[str, float]]:
        """Score and maximum of each part."""
        found: dict[str, dict[str, float]] = {}
        for row in self.rows:
            part = found.setdefault(row.entry.part, {"score": 0, "max_score": 0})
            part["score"] += row.score
            part["max_score"] += row.entry.points
        return found


def rows_of(
    assignment: Assignment,
    report: Mapping[str, Any] | None,
    uses: Sequence[Use],
    checks: Sequence[CheckEntry],
) -> list[Row]:
    """Make the rows of the checks that were asked for out of pytest's report, if there is one."""
    rows = {check.id: Row(check) for check in checks}
    for test in (report or {}).get("tests", ()):
        noted = test.get("metadata", {})
        row = rows.get(noted.get("check", ""))
        if row is None or "outcome" not in noted:
            continue
        outcome = Outcome(noted["outcome"])
        if (outcome is Outcome.PASSED) is not (test.get("outcome") == "passed"):
            outcome = Outcome.GRADER_ERROR
        lines = noted.get("lines") or ({"observed": noted["error"]} if "error" in noted else {})
        row.outcome, row.lines = outcome, lines
        if "carried" in noted:
            row.at_fault = assignment.parts[noted["carried"]["at_fault"]].file
            row.with_own = Outcome(noted["carried"]["outcome"])
    if assignment.from_scratch == "withhold":
        for row in rows.values():
            own = [use for use in uses if use.part == row.entry.part]
            if own and row.outcome is not Outcome.GRADER_ERROR:
                row.outcome, row.lines = Outcome.FORBIDDEN, _forbidden_lines(own)
    return list(rows.values())


def _forbidden_lines(uses: Sequence[Use]) -> dict[str, str]:
    places = "; ".join(f"{use.file}:{use.line} uses {use.operator}" for use in uses[:5])
    return {
        "expected": "attention is written from scratch, without torch's ready-made operators",
        "observed": places,
        "look_at": f"{uses[0].file}:{uses[0].line}; the points of this part are withheld",
    }


def message(row: Row) -> str:
    """The lines of one check's message, as a student reads them."""
    if row.outcome is Outcome.PASSED:
        return _carried(row) if row.at_fault else ""
    if row.outcome is Outcome.NOT_RUN and not row.lines:
        return "not run"
    if row.outcome is Outcome.GRADER_ERROR:
        return "The grader failed here, not your code. Course staff will look at it.\n"
    lines = dict(row.lines)
    if row.cause:
        lines["cause"] = row.cause
    if row.at_fault:
        lines["look_at"] = f"{row.at_fault}: with a right one in its place, this check passes"
    shown = [_line(label, lines[key]) for key, label in LABELS.items() if lines.get(key)]
    if row.outcome is not Outcome.FAILED:
        shown.insert(0, row.outcome.value.replace("_", " "))
    return clean("\n".join(shown), MAX_OUTPUT)


def _line(label: str, text: str) -> str:
    """A label and its text; a text of several lines stands below."""
    if "\n" in text:
        return "\n".join([label, *("  " + line for line in text.splitlines())])
    return f"{label:<{LABEL_WIDTH}}{text}"


def _carried(row: Row) -> str:
    with_own = "" if row.with_own is None else row.with_own.value.replace("_", " ")
    return (
        f"With your {row.at_fault} in use: {with_own}. With a right one in its place this check passes, "
        f"so its points stand.\n{LABELS['look_at']:<{LABEL_WIDTH}}{row.at_fault}"
    )


def results(run: Run, *, execution_time: float, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The whole result as Gradescope's schema wants it."""
    leading = tell_causes(run)
    document: dict[str, Any] = {
        "score": run.score,
        "execution_time": round(execution_time, 3),
        "output": summary(run, leading),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [_test(row, run.assignment) for row in run.rows],
        "extra_data": {
            "assignment": run.assignment.title,
            "max_score": run.max_score,
            "parts": run.parts(),
            "grader": {"version": __version__},
            "grader_error": run.grader_error,
            "recognised": [
                {
                    "misconception": found.misconception.slug,
                    "part": found.misconception.part,
                    "name": found.misconception.name,
                    "says": found.misconception.says,
                    "asks": found.misconception.asks,
                    "checks": _telling_first(found, run.assignment),
                }
                for found in run.recognised
            ],
            "from_scratch": {
                "policy": run.assignment.from_scratch,
                "uses": [
                    {"part": u.part, "file": u.file, "line": u.line, "operator": u.operator} for u in run.uses
                ],
            },
        }
        | dict(extra),
    }
    if run.grader_error:
        document["extra_data"]["grader_errors"] = {
            row.entry.id: row.lines.get("observed", "")
            for row in run.rows
            if row.outcome is Outcome.GRADER_ERROR
        }
    return document


def tell_causes(run: Run) -> list[str]:
    """Write the misconceptions into the rows that they explain; return what leads the report.

    That is, part by part, each mistake once: in full where it is a known one, otherwise by the first
    check that shows it. The rows refer to it by name. What only hidden checks have shown does not lead
    the report: not everybody may see it yet. That there is something is said, for the points tell it.
    """
    leading: list[str] = []
    numbers = {row.entry.id: run.assignment.numbers[row.entry.id] for row in run.rows}
    policy = run.assignment.misconceptions
    for name, part in run.assignment.parts.items():
        of_part: list[str] = []
        for found in run.recognised:
            rows = [row for row in run.rows if row.entry.id in found.checks and row.outcome in _EXPLAINED]
            if found.misconception.part != name or not rows:
                continue
            shown = [row for row in rows if not row.entry.hidden]
            for row in rows:
                row.misconception = found.misconception.slug
                row.cause = _told(found.misconception, policy, briefly=bool(shown))
            if shown and policy != "nothing":
                told = _told(found.misconception, policy)
                of_part.append(f"{part.file}: {told} ({_checks(shown, numbers)})")
        of_part += _unexplained(run, name, numbers)
        leading += of_part or _unseen(run, name)
    return leading


_EXPLAINED = (Outcome.FAILED, Outcome.RAISED, Outcome.BAD_RETURN, Outcome.BLOCKED)


def _told(misconception: Misconception, policy: str, *, briefly: bool = False) -> str:
    if policy == "nothing":
        return ""
    if policy == "question":
        return misconception.asks
    return (
        misconception.name if briefly else f"{misconception.name}. {misconception.says} {misconception.asks}"
    )


def _unexplained(run: Run, part: str, numbers: Mapping[str, str]) -> list[str]:
    """What leads to the part's failures that no misconception explains, if there are any to be seen."""
    file = run.assignment.parts[part].file
    rows = [row for row in _lost(run, part) if not row.entry.hidden and not row.misconception]
    if not rows:
        return []
    first = next((row for row in rows if row.outcome is not Outcome.BLOCKED), rows[0])
    observed = first.lines.get("observed", first.outcome.value.replace("_", " "))
    line = re.match(r"[^:\n]+\.py:\d+", first.lines.get("look_at", ""))
    where = line.group() if line else file
    if first.outcome in _THE_SAME_FOR_ALL:
        about = "" if observed.startswith(where) else f"{where}: "
        return [f"{about}{observed} ({_checks(rows, numbers)})"]
    others = f"; then {_checks(rows[1:], numbers)}" if len(rows) > 1 else ""
    title = f"{numbers[first.entry.id]} {first.entry.title}"
    return [f"{where}: {title}: {observed} ({_points([first])}{others})"]


def _unseen(run: Run, part: str) -> list[str]:
    """How much a part loses where not everybody may see it yet, if that is all it loses."""
    rows = _lost(run, part)
    if not rows or not all(row.entry.hidden for row in rows):
        return []
    when = _SHOWN[run.assignment.hidden_visibility]
    return [f"{run.assignment.parts[part].file}: {_points(rows)} lost in checks that {when}"]


def _lost(run: Run, part: str) -> list[Row]:
    """The rows of a part that cost points by its own fault."""
    return [
        row
        for row in run.rows
        if row.entry.part == part
        and not row.at_fault
        and row.outcome not in (Outcome.PASSED, Outcome.GRADER_ERROR)
    ]


_SHOWN = {
    "hidden": "are not shown",
    "after_due_date": "are shown after the due date",
    "after_published": "are shown when the grades are published",
    "visible": "are not in your copy",
}

_THE_SAME_FOR_ALL = (
    Outcome.NOT_IMPLEMENTED,
    Outcome.MISSING,
    Outcome.NOT_IMPORTABLE,
    Outcome.FORBIDDEN,
    Outcome.NOT_RUN,
)


def _checks(rows: Sequence[Row], numbers: Mapping[str, str]) -> str:
    """Which they are, and the points that they cost: `checks 1.1 to 1.4, 1.7; 7 points`."""
    order = list(numbers.values())
    runs: list[list[str]] = []
    for number in (numbers[row.entry.id] for row in rows):
        follows = runs and order.index(number) == order.index(runs[-1][-1]) + 1
        if follows and number.partition(".")[0] == runs[-1][0].partition(".")[0]:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs]
    return f"{'checks' if len(rows) > 1 else 'check'} {', '.join(shown)}; {_points(rows)}"


def _points(rows: Sequence[Row]) -> str:
    points = sum(row.entry.points for row in rows)
    return f"{points:g} point{'' if points == 1 else 's'}"


def _telling_first(found: Recognised, assignment: Assignment) -> list[str]:
    """The checks that it explains; first a public one that the misconception is known to fail."""
    known = found.misconception.fails
    return sorted(found.checks, key=lambda check: (assignment.checks[check].hidden, check not in known))


def summary(run: Run, leading: Sequence[str]) -> str:
    """What stands above the checks."""
    title = f"{run.assignment.title}: {run.score:g} of {run.max_score:g} points"
    parts = [
        f"{run.assignment.parts[name].title}: {part['score']:g} of {part['max_score']:g}"
        for name, part in run.parts().items()
    ]
    first = ["This result is not final: the grader failed in at least one check."] if run.grader_error else []
    causes = ["", "Look at this first:", *(f"- {cause}" for cause in leading)] if leading else []
    return clean("\n".join([*first, title, *parts, *causes]), MAX_OUTPUT)


def _test(row: Row, assignment: Assignment) -> dict[str, Any]:
    test: dict[str, Any] = {
        "name": f"{assignment.parts[row.entry.part].title}: {row.entry.title}",
        "number": assignment.numbers[row.entry.id],
        "score": row.score,
        "max_score": row.entry.points,
        "status": "passed" if row.outcome is Outcome.PASSED else "failed",
        "output": message(row),
        "visibility": assignment.hidden_visibility if row.entry.hidden else "visible",
        "tags": [row.entry.part],
        "extra_data": {
            "check": row.entry.id,
            "part": row.entry.part,
            "outcome": row.outcome.value,
            "hidden": row.entry.hidden,
        },
    }
    if row.at_fault:
        test["extra_data"]["at_fault"] = row.at_fault
    if row.misconception:
        test["extra_data"]["cause"] = row.misconception
    if row.outcome is Outcome.GRADER_ERROR:
        # Ours, so no score is written: neither a zero nor a gift.
        del test["score"], test["status"]
    return test


def nothing_gradable(assignment: Assignment, why: str) -> dict[str, Any]:
    """The result of a submission in which no part was found: every check is missing."""
    lines = {"observed": clean(why), "look_at": "the names of the files that were handed in"}
    rows = [Row(check, Outcome.MISSING, lines) for check in assignment.checks.values()]
    document = results(Run(assignment, rows), execution_time=0, extra={"nothing_gradable": clean(why)})
    points = document["output"].partition("\n\n")[0]
    return document | {"output": f"Nothing gradable: {clean(why)}\n\n{points}"}


def grader_failed(assignment: Assignment, trouble: str) -> dict[str, Any]:
    """The result of a submission that the grader failed to grade: no check has a score."""
    rows = [Row(check, Outcome.GRADER_ERROR) for check in assignment.checks.values()]
    document = results(Run(assignment, rows), execution_time=0, extra={})
    document["extra_data"]["grader_errors"] = {"run": trouble}
    return document


def to_json(document: Mapping[str, Any]) -> str:
    """The result's text: strict JSON, the same for the same result."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never half of it.

    What is no file but a device or a pipe (`/dev/stdout`) is written into, not replaced.

    Raises:
        OSError: the file cannot be written there; what was there before is unharmed.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8", errors="replace", newline="")
        return
    path = path.resolve()  # of a link, what it leads to
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=TEMPORARY)
    try:
        # Whatever slipped through: a result that cannot be written would be lost.
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
