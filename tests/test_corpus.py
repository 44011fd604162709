"""Whole submissions: correct ones get every point, the starter none. `make audit` grades all there are."""

from __future__ import annotations

import pytest

from grader.assignment import Assignment
from grader.audit import ALTERNATIVES, alternatives, mutants
from grader.intake import read_submission
from grader.misconceptions import misconceptions_about
from tests.conftest import Grade, outcomes
from tests.submissions import ROOT, starter

UNLIKE_THE_REFERENCE = (
    "everything-in-one-file",
    "named-like-torch",
    "online-softmax-blocks",
    "parameter-dicts",
)


@pytest.mark.parametrize("seed", [None, 1])
def test_the_reference_gets_every_point(grade: Grade, assignment: Assignment, seed: int | None) -> None:
    """The solution scores full, also under cases drawn afresh."""
    files = read_submission(ROOT / "reference", assignment.files)
    assert grade(files, seed=seed)["score"] == 100


def test_the_starter_gets_nothing(grade: Grade, assignment: Assignment) -> None:
    """Every row of the untouched stubs says "not implemented"."""
    document = grade(starter())
    assert document["score"] == 0
    assert outcomes(document) == dict.fromkeys(assignment.checks, "not_implemented")


@pytest.mark.parametrize("name", UNLIKE_THE_REFERENCE)
def test_an_alternative_gets_every_point(grade: Grade, assignment: Assignment, name: str) -> None:
    """Correct code gets all points, however it is written, also under cases drawn afresh."""
    document = grade(read_submission(ALTERNATIVES / name, assignment.files), seed=2)
    lost = {k: v for k, v in outcomes(document).items() if v != "passed"}
    assert not lost


def test_the_corpus_is_well_formed(assignment: Assignment) -> None:
    """Names are unique, checks exist, and every edit finds its place."""
    found = mutants()
    names = [(mutant.part, mutant.slug) for mutant in found]
    assert len(set(names)) == len(names) > 300
    assert len(alternatives()) > 40
    for mutant in found:
        assert mutant.fails
        assert all(assignment.checks[check].part == mutant.part for check in mutant.fails)
        assert mutant.files.parts.keys() == assignment.parts.keys()


def test_misconceptions_are_well_told(assignment: Assignment) -> None:
    """A name, one sentence that does not claim to know, one question."""
    known = [one for part in assignment.parts for one in misconceptions_about(part)]
    assert len(known) > 100
    for one in known:
        assert not one.name.endswith((".", "?"))
        assert one.says.endswith(".")
        assert "seem" in one.says
        assert one.asks.endswith("?")
