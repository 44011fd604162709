"""What a class got: the results of all submissions, staff's word on top, as scores and reports show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader.ingest import Entry, Student

GRADED, STUDENT_ERROR, GRADER_ERROR, WAITING = "graded", "student error", "grader error", "waiting"
"""Graded, whatever the score; nothing in it can be graded; the grader failed; not yet its turn."""


@dataclass(frozen=True)
class Override:
    """Staff's word on one submission.

    Attributes:
        what: a part, a check's id, or "total".
    """

    submission: str
    what: str
    points: float
    reason: str


@dataclass(frozen=True)
class Mark:
    """One submission and its result.

    Attributes:
        document: the result as in `results/ID.json` with the overrides applied; empty while there is none.
            What an override changed has an `override` of `{"points", "reason", "before"}`: in a check's
            `extra_data`, in a part of `extra_data.parts`, or, for the total, in `extra_data`.
        overrides: those applied.
        notes: of the entry, and what happened while it was graded.
    """

    entry: Entry
    status: str
    document: Mapping[str, Any]
    overrides: tuple[Override, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Marks:
    """A class.

    Attributes:
        title: of the assignment.
        layout: of the download.
        unmatched: what in the download belongs to no submission, with the reason, by path.
        missing: who stands in the gradebook and handed in nothing.
    """

    title: str
    layout: str
    marks: tuple[Mark, ...]
    unmatched: Mapping[str, str]
    missing: tuple[Student, ...] = ()
