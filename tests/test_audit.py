"""The audit sees what it is there to see."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from grader import audit
from grader.assignment import Assignment
from grader.audit import Audit, Mutant, Subject, mutants, subjects
from grader.intake import InputError
from tests.conftest import Grade
from tests.submissions import edited, reference, submission

NO_SCALE = next(mutant for mutant in mutants() if (mutant.part, mutant.slug) == ("attention", "no-scale"))


def found(grade: Grade, assignment: Assignment, subject: Subject) -> list[str]:
    """Grade for real, and return the problems that the audit has with it."""
    document = grade(subject.files, *subject.parts, simplify=False)
    return audit._compare(assignment, subject, document).problems


def of(mutant: Mutant, *parts: str) -> Subject:
    """A mutant as a subject."""
    return Subject(f"{mutant.part}/{mutant.slug}", "mutant", mutant.files, parts or (mutant.part,), mutant)


def test_what_is_as_it_should_be(grade: Grade, assignment: Assignment) -> None:
    """No problem with a mutant that fails where it says, in all parts."""
    assert found(grade, assignment, of(NO_SCALE, *assignment.parts)) == []


def test_a_surviving_mutant(grade: Grade, assignment: Assignment) -> None:
    """A check that a mutant names and that passes."""
    claims = dataclasses.replace(NO_SCALE, fails=("attention.shapes",))
    assert found(grade, assignment, of(claims)) == ["must fail attention.shapes"]


def test_a_mutant_that_names_nothing(grade: Grade, assignment: Assignment) -> None:
    """Naming no check is no way to pass."""
    assert found(grade, assignment, of(dataclasses.replace(NO_SCALE, fails=())))


def test_a_misconception_under_another_name(grade: Grade, assignment: Assignment) -> None:
    """It must be recognised as itself."""
    (problem,) = found(grade, assignment, of(dataclasses.replace(NO_SCALE, misconception="mask-ignored")))
    assert problem == "must be recognised as mask-ignored, got no-scale"


def test_a_charge_in_another_part(grade: Grade, assignment: Assignment) -> None:
    """Two wrong files in what should be a mutant of one."""
    wrong = edited("multi_head", (".triu(1)", ".triu(2)"))
    subject = Subject("attention/no-scale", "mutant", wrong, tuple(assignment.parts), NO_SCALE)
    problems = " ".join(found(grade, assignment, subject))
    assert "must fail attention.scale" in problems
    assert "is charged in other parts: multi_head.future_perturbation" in problems


@pytest.mark.parametrize("kind", ["reference", "alternative"])
def test_a_correct_one_that_loses_points(grade: Grade, assignment: Assignment, kind: str) -> None:
    """Nothing may be lost."""
    (problem,) = found(grade, assignment, Subject("x", kind, NO_SCALE.files, ("attention",)))
    assert problem.startswith("correct, but loses attention.scale, attention.torch_agrees")


def test_a_starter_that_is_not_untouched(grade: Grade, assignment: Assignment) -> None:
    """Every row says "not implemented"."""
    (problem,) = found(grade, assignment, Subject("x", "starter", submission(reference()), ("attention",)))
    assert problem == "every row must be not_implemented, got passed"


def test_a_second_time(grade: Grade) -> None:
    """Only times may differ."""
    document = grade(NO_SCALE.files, "attention", simplify=False)
    later = document | {"execution_time": 1e3}
    assert audit._without_times(document) == audit._without_times(later)
    other: dict[str, Any] = json.loads(json.dumps(document))
    other["tests"][3]["output"] = "something else"
    assert audit._without_times(document) != audit._without_times(other)
    assert audit._first_difference(other, document).startswith("attention.repeatable: 'something else'")


def test_the_matrix(assignment: Assignment) -> None:
    """Who catches whom, and who alone."""
    subject = of(NO_SCALE)
    one = audit.Finding(subject, ["attention.scale", "multi_head.together"])
    both = audit.Finding(subject, ["attention.scale", "attention.torch_agrees"], ["a problem"])
    matrix = Audit(assignment, [one, both])
    assert matrix.caught_by()["attention.scale"] == ["attention/no-scale"] * 2
    assert matrix.caught_by()["multi_head.together"] == []
    assert matrix.caught_alone_by()["attention.scale"] == ["attention/no-scale"]
    lines = "\n".join(matrix.lines())
    assert "mutant attention/no-scale: a problem" in lines
    assert "attention.torch_agrees" in lines.partition("catch none alone:")[2]
    assert json.loads(json.dumps(matrix.to_json()))["problems"] == matrix.problems


def test_everything_is_a_subject(assignment: Assignment) -> None:
    """Reference, starter, alternatives, mutants; each name once."""
    names = [subject.name for subject in subjects(assignment)]
    assert len(set(names)) == len(names)
    assert {"reference", "starter", "loop-queries", "attention/no-scale", "block/another-eps-2"} <= {*names}


def test_an_unknown_subject() -> None:
    """Is refused before anything is graded."""
    with pytest.raises(InputError, match="--only must name a subject"):
        audit.audit(jobs=1, only=["no-such"])


def test_the_command(tmp_path: Path) -> None:
    """In a process of its own, with a pool: exit code, matrix, JSON."""
    import subprocess
    import sys

    out = tmp_path / "audit.json"
    command = [sys.executable, "-m", "grader", "audit", "--jobs", "2", "--json", str(out)]
    done = subprocess.run(
        [*command, "--only", "attention/no-scale", "--only", "starter"],
        capture_output=True,
        text=True,
        cwd=audit.ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("no problems\n")
    assert json.loads(out.read_text())["caught_by"]["attention.scale"] == ["attention/no-scale"]
