"""Whole submissions: correct ones get every point, wrong ones lose points where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.assignment import Assignment
from grader.intake import read_submission
from tests.conftest import Grade, outcomes
from tests.submissions import ROOT, Mutant, alternatives, mutants, starter


def test_the_reference_gets_every_point(grade: Grade, assignment: Assignment) -> None:
    """The solution scores full, also under cases drawn afresh."""
    files = read_submission(ROOT / "reference", assignment.files)
    assert grade(files)["score"] == 100
    assert grade(files, seed=1)["score"] == 100


def test_the_starter_gets_nothing(grade: Grade, assignment: Assignment) -> None:
    """Every row of the untouched stubs says "not implemented"."""
    document = grade(starter())
    assert document["score"] == 0
    assert outcomes(document) == dict.fromkeys(assignment.checks, "not_implemented")


@pytest.mark.parametrize("folder", alternatives(), ids=lambda path: path.name)
def test_an_alternative_gets_every_point(grade: Grade, assignment: Assignment, folder: Path) -> None:
    """Correct code gets all points, however it is written."""
    document = grade(read_submission(folder, assignment.files))
    lost = {k: v for k, v in outcomes(document).items() if v != "passed"}
    assert not lost
    assert document["score"] == 100


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.slug)
def test_a_mutant_fails_the_checks_that_it_names(grade: Grade, mutant: Mutant) -> None:
    """A wrong idea loses the points of the checks that are there to see it."""
    document = grade(mutant.files, mutant.part, simplify=False, checks=mutant.fails)
    found = outcomes(document)
    survived = [check for check in mutant.fails if found[check] == "passed"]
    assert mutant.fails
    assert not survived
    assert "grader_error" not in found.values()
