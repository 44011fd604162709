"""A run as a whole: what is the grader's fault is nobody's zero, and a lost report is no pass."""

from __future__ import annotations

from typing import Any

import pytest

from grader import running
from grader.assignment import Assignment
from grader.grading import Grader, Options
from grader.report import Run, results, rows_of, to_json
from grader.running import GraderError
from grader.sandbox.zygote import Zygote
from grader.submission import Raised
from grader.terms import Outcome
from tests.conftest import Grade, outcomes
from tests.submissions import edited, reference, starter, submission


@pytest.fixture
def own_grader(assignment: Assignment, zygote: Zygote) -> Grader:
    """A grader to break."""
    return Grader(assignment, zygote)


def test_a_fault_of_the_reference_is_the_graders(own_grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is neither a zero nor a pass, and the result is not final."""

    def fails(*_: object) -> None:
        raise Raised("out of order")

    monkeypatch.setattr(own_grader._reference._submission, "call", fails)
    document = own_grader.grade(submission(reference()), Options(["attention"])).document

    found = outcomes(document)
    assert found["attention.reference_output"] == "grader_error"
    assert found["attention.scale"] == "passed"
    assert document["score"] == 18
    assert document["output"].startswith("This result is not final")
    assert document["extra_data"]["grader_error"] is True
    assert "out of order" in document["extra_data"]["grader_errors"]["attention.reference_output"]
    broken = [test for test in document["tests"] if test["extra_data"]["outcome"] == "grader_error"]
    assert all("score" not in test and "status" not in test for test in broken)
    assert "not your code" in broken[0]["output"]


def test_a_broken_check_is_the_graders_fault(own_grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception of our own in a check."""
    from grader import expect

    def broken(*_: object, **__: object) -> None:
        raise IndexError("oops")

    monkeypatch.setattr(expect, "at_least_zero", broken)
    found = outcomes(own_grader.grade(submission(reference()), Options(["attention"])).document)
    assert found["attention.distribution"] == "grader_error"


def test_a_zygote_that_is_gone_is_the_graders_fault(assignment: Assignment) -> None:
    """No row of a submission that was never run is a failure of its."""
    zygote = Zygote.start_by_exec()
    zygote.close()
    document = Grader(assignment, zygote).grade(submission(reference()), Options(["block"])).document
    assert set(outcomes(document).values()) == {"grader_error"}


def test_pytest_that_cannot_run_is_an_error(monkeypatch: pytest.MonkeyPatch, own_grader: Grader) -> None:
    """Not a result."""
    monkeypatch.setattr(running, "check_file", lambda _: running.CHECKS / "nowhere.py")
    with pytest.raises(GraderError):
        own_grader.grade(starter())


@pytest.mark.parametrize(
    ("test", "outcome"),
    [
        (None, Outcome.NOT_RUN),
        ({"outcome": "passed"}, Outcome.NOT_RUN),
        ({"outcome": "skipped", "metadata": {"check": "attention.scale"}}, Outcome.NOT_RUN),
        (
            {"outcome": "failed", "metadata": {"check": "attention.scale", "outcome": "passed"}},
            Outcome.GRADER_ERROR,
        ),
        (
            {"outcome": "passed", "metadata": {"check": "attention.scale", "outcome": "failed"}},
            Outcome.GRADER_ERROR,
        ),
        (
            {"outcome": "passed", "metadata": {"check": "attention.scale", "outcome": "passed"}},
            Outcome.PASSED,
        ),
        (
            {"outcome": "failed", "metadata": {"check": "attention.scale", "outcome": "raised"}},
            Outcome.RAISED,
        ),
    ],
)
def test_only_a_pass_that_both_sides_report_is_a_pass(
    assignment: Assignment, test: dict[str, Any] | None, outcome: Outcome
) -> None:
    """Absence, skip and disagreement are none."""
    checks = assignment.checks_of("attention")
    rows = {row.entry.id: row for row in rows_of(assignment, {"tests": [test] if test else []}, [], checks)}
    assert rows.pop("attention.scale").outcome is outcome
    assert {row.outcome for row in rows.values()} == {Outcome.NOT_RUN}
    assert rows_of(assignment, None, [], checks)[0].outcome is Outcome.NOT_RUN


def test_every_check_has_a_row_in_every_result(assignment: Assignment) -> None:
    """Also when nothing ran."""
    rows = rows_of(assignment, None, [], list(assignment.checks.values()))
    document = results(Run(assignment, rows), execution_time=0, extra={})
    assert [test["extra_data"]["check"] for test in document["tests"]] == list(assignment.checks)
    assert document["score"] == 0
    assert document["extra_data"]["parts"]["multi_head"] == {"score": 0, "max_score": 40}


def test_a_file_name_that_is_no_text_is_shown_safely(own_grader: Grader) -> None:
    """Names come from the file system: any bytes, control characters and all."""
    files = submission(reference() | {"b\udcff\x1b[31m.py": "x = 1"})
    document = own_grader.grade(files, Options(["attention"])).document
    assert document["score"] == 30
    assert to_json(document).encode()
    assert "b\ufffd\ufffd[31m.py" in document["extra_data"]["submission"]["files"]


@pytest.mark.parametrize("when", ["True", "mask is not None"])
def test_code_that_knows_float32_only(grade: Grade, when: str) -> None:
    """It loses the check of its dtype and no other, whether it shows in the first case or in a later one."""
    line = f"        if {when}: k = k @ torch.eye(k.shape[-1])\n"
    first = "        d_head = q.shape[-1]\n"
    found = outcomes(grade(edited("attention", (first, line + first)), "attention"))
    assert {check for check, outcome in found.items() if outcome != "passed"} == {"attention.dtype"}
