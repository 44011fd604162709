"""The assignment and the checks say the same."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

from grader.assignment import Assignment, AssignmentError, load_assignment
from grader.check import Check
from grader.running import check_file
from grader.strategies.drawing import families


def test_the_points_add_up(assignment: Assignment) -> None:
    """100 points: attention 30, multi_head 40, block 30; 60 of them public."""
    by_part = {p: sum(c.points for c in assignment.checks_of(p)) for p in assignment.parts}
    assert by_part == {"attention": 30, "multi_head": 40, "block": 30}
    assert sum(c.points for c in assignment.checks.values() if not c.hidden) == 60


def test_every_check_has_its_line_and_every_line_its_check(assignment: Assignment) -> None:
    """What is in the assignment is written, and what is written is in the assignment, in this order."""
    written = [
        f"{part}.{name}"
        for part in assignment.parts
        for kind in ("public", "hidden")
        for name in _checks(kind, part)
    ]
    assert list(assignment.checks) == written


def test_every_check_says_what_it_checks(assignment: Assignment) -> None:
    """A sentence for the student, a known family, a place to look at; its file is where it is said to be."""
    for entry in assignment.checks.values():
        check = _checks("hidden" if entry.hidden else "public", entry.part)[entry.id.partition(".")[2]]
        assert check.sentence.endswith(".")
        assert check.family is None or check.family in families()
        assert check.look_at.startswith(assignment.parts[entry.part].file)
        assert check_file(entry).is_file()


def test_public_checks_need_no_reference(assignment: Assignment) -> None:
    """They ship with the handout, where there is none."""
    for part in assignment.parts:
        for check in _checks("public", part).values():
            assert "reference" not in check.needs


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("points = 6", "points = -6", "must not be negative, got -6"),
        ('from_scratch = "withhold"', 'from_scratch = "ignore"', "must be one of withhold, flag, got ignore"),
        ("class = ", "klass = ", "class"),
        ("[parts.block]", "[parts.block", "Expected"),
    ],
)
def test_a_mistake_in_the_assignment_is_an_error(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    """Name, rule, got."""
    from grader.assignment import ASSIGNMENT_FILE

    path = tmp_path / "assignment.toml"
    path.write_text(ASSIGNMENT_FILE.read_text().replace(old, new))
    with pytest.raises(AssignmentError, match=complaint):
        load_assignment.__wrapped__(path)


def _checks(kind: str, part: str) -> dict[str, Check]:
    module = importlib.import_module(f"grader.checks.{kind}.test_{part}")
    return {
        name.removeprefix("test_"): function.check
        for name, function in vars(module).items()
        if name.startswith("test_") and inspect.isfunction(function)
    }
