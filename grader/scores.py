"""`scores.csv`: a line for every student, and one for whatever else is in the download."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from grader.ingest import Student
from grader.marks import WAITING, Mark, Marks
from grader.text import defused

WHO = ("submission", "name", "email", "sid", "lms_id", "late", "submitted_at")
MISSING, UNMATCHED = "missing", "unmatched"
"""Besides a mark's status: in the gradebook without a submission; in the download without anybody."""

_LATE = {None: "", True: "yes", False: "no"}


def scores_csv(marks: Marks, parts: Sequence[str]) -> str:
    """The file's text; a byte order mark tells spreadsheets that it is UTF-8.

    Args:
        parts: names of the assignment's parts, a column each.
    """
    out = io.StringIO()
    out.write("\N{BYTE ORDER MARK}")
    columns = (*WHO, "total", "max", *parts, "status", "overridden", "source", "note")
    writer = csv.DictWriter(out, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(_rows(marks, parts))
    return out.getvalue()


def _rows(marks: Marks, parts: Sequence[str]) -> Iterator[dict[str, Any]]:
    for mark in marks.marks:
        for student in mark.entry.students or (Student(),):
            yield _who(student) | _what(mark, parts)
    for student in marks.missing:
        yield _who(student) | {"status": MISSING, "note": "in the gradebook, nothing handed in"}
    for path, why in sorted(marks.unmatched.items()):
        yield {"source": defused(path), "status": UNMATCHED, "note": defused(why)}


def _who(student: Student) -> dict[str, Any]:
    said = {"name": student.name, "email": student.email, "sid": student.sid, "lms_id": student.lms_id}
    return {column: defused(text) for column, text in said.items()}


def _what(mark: Mark, parts: Sequence[str]) -> dict[str, Any]:
    about = mark.document.get("extra_data", {})
    found = {part: f"{entry['score']:g}" for part, entry in about.get("parts", {}).items() if part in parts}
    return found | {
        "submission": defused(mark.entry.id),
        "late": _LATE[mark.entry.late],
        "submitted_at": defused(mark.entry.submitted_at),
        "total": "" if (total := total_of(mark)) is None else f"{total:g}",
        "max": f"{about['max_score']:g}" if about else "",
        "status": mark.status,
        "overridden": "; ".join(f"{one.what}: {one.points:g}" for one in mark.overrides),
        "source": defused(mark.entry.source),
        "note": defused("; ".join([*mark.notes, *_reasons(mark.overrides)])),
    }


def _reasons(overrides: Iterable[Any]) -> list[str]:
    return [f"set by hand: {one.what}, {one.reason}" for one in overrides]


def total_of(mark: Mark) -> float | None:
    """The points that stand, or None: the grader's own failure is nobody's zero, unless staff has said."""
    if mark.status == WAITING or not mark.document:
        return None
    about = mark.document["extra_data"]
    if about["grader_error"] and "override" not in about:
        return None
    total: float = mark.document["score"]
    return total


def counts(marks: Marks) -> dict[str, int]:
    """How many submissions there are of each status."""
    found: dict[str, int] = {}
    for mark in marks.marks:
        found[mark.status] = found.get(mark.status, 0) + 1
    return found
