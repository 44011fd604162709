"""`scores.csv`: who got what, and what else was in the download."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from grader import report
from grader.assignment import Assignment
from grader.ingest import Entry, Student
from grader.marks import GRADED, GRADER_ERROR, STUDENT_ERROR, WAITING, Mark, Marks, Override
from grader.overrides import applied
from grader.scores import counts, scores_csv
from grader.text import defused

ANN = Student("Ann Ångström", "ann@x.org", "00123", "7")


def entry(name: str, *students: Student, **more: Any) -> Entry:
    """One that is never read."""
    return Entry(name, f"{name}.zip", students, read=lambda: pytest.fail("read"), **more)


def marks(*found: Mark, **more: Any) -> Marks:
    """A class."""
    return Marks("HW3", "folders", found, **({"unmatched": {}} | more))


def rows(found: Marks) -> list[dict[str, str]]:
    """The file as a spreadsheet reads it."""
    text = scores_csv(found, ["attention", "multi_head", "block"])
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text[1:])))


@pytest.fixture
def zero(assignment: Assignment) -> dict[str, Any]:
    """A result of 0 points."""
    return report.nothing_gradable(assignment, "a PDF")


def test_who_and_what(zero: dict[str, Any]) -> None:
    """A number keeps its zeros, a name its letters."""
    (row,) = rows(marks(Mark(entry("ann", ANN, late=True, submitted_at="2026-01-02"), GRADED, zero)))
    assert row == {
        "submission": "ann",
        "name": "Ann Ångström",
        "email": "ann@x.org",
        "sid": "00123",
        "lms_id": "7",
        "late": "yes",
        "submitted_at": "2026-01-02",
        "total": "0",
        "max": "100",
        "attention": "0",
        "multi_head": "0",
        "block": "0",
        "status": "graded",
        "overridden": "",
        "source": "ann.zip",
        "note": "",
    }


def test_everybody_of_a_group(zero: dict[str, Any]) -> None:
    """A row each; a submission of nobody that is known has one, too."""
    found = rows(
        marks(Mark(entry("g", ANN, Student("Bob")), GRADED, zero), Mark(entry("lost"), STUDENT_ERROR, zero))
    )
    assert [(row["submission"], row["name"]) for row in found] == [
        ("g", "Ann Ångström"),
        ("g", "Bob"),
        ("lost", ""),
    ]


def test_a_graders_error_is_no_zero(assignment: Assignment) -> None:
    """No total, unless staff has said one; nor is there one before its turn."""
    failed = report.grader_failed(assignment, "no memory")
    said = Override("a", "total", 50, "seen by hand")
    found = rows(
        marks(
            Mark(entry("a"), GRADER_ERROR, failed),
            Mark(entry("b"), GRADER_ERROR, applied(failed, [said]), (said,)),
            Mark(entry("c"), WAITING, {}),
        )
    )
    assert [row["total"] for row in found] == ["", "50", ""]
    assert found[1]["overridden"] == "total: 50"
    assert "set by hand: total, seen by hand" in found[1]["note"]


def test_nothing_is_lost() -> None:
    """Who handed in nothing, and what is nobody's, have rows with the reason."""
    found = rows(marks(unmatched={"notes.txt": "belongs to no submission"}, missing=(ANN,)))
    assert [(row["status"], row["name"], row["source"]) for row in found] == [
        ("missing", "Ann Ångström", ""),
        ("unmatched", "", "notes.txt"),
    ]
    assert found[1]["note"] == "belongs to no submission"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", " =", "\uff1d"])
def test_no_cell_is_a_formula(zero: dict[str, Any], start: str) -> None:
    """Whatever students call themselves and their files."""
    bad = f'{start}HYPERLINK("http://x")'
    student = Student(bad, bad, bad, bad)
    mark = Mark(entry(bad, student, submitted_at=bad, notes=(bad,)), GRADED, zero, notes=(bad,))
    for row in rows(marks(mark, unmatched={bad: bad}, missing=(student,))):
        for column, cell in row.items():
            assert not cell.startswith(tuple("=+-@\t\r\uff1d")), column


def test_no_cell_begins_in_the_middle_of_another() -> None:
    """Where lists are separated by semicolons, a spreadsheet takes them for the end of a cell."""
    assert defused("x;=1+1;y") == "x;'=1+1;y"
    assert defused('x; "@SUM(A1)') == "x; \"'@SUM(A1)"
    assert defused("a; b, c: d=e") == "a; b, c: d=e"


def test_counts(zero: dict[str, Any]) -> None:
    """By status."""
    found = marks(
        Mark(entry("a"), GRADED, zero), Mark(entry("b"), GRADED, zero), Mark(entry("c"), WAITING, {})
    )
    assert counts(found) == {"graded": 2, "waiting": 1}
