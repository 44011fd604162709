"""What many tests share: one warm grader, on a zygote that knows nothing of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from grader.assignment import Assignment, load_assignment
from grader.grading import Grader, Options
from grader.intake import SubmissionFiles
from grader.sandbox.zygote import Zygote


@pytest.fixture(scope="session")
def assignment() -> Assignment:
    """The assignment as it is shipped."""
    return load_assignment()


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """A zygote in a process of its own."""
    started = Zygote.start_by_exec()
    yield started
    started.close()


@pytest.fixture(scope="session")
def grader(assignment: Assignment, zygote: Zygote) -> Grader:
    """A grader that has graded nothing yet."""
    return Grader(assignment, zygote)


Grade = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def grade(grader: Grader) -> Grade:
    """Grade a submission and return its result."""

    def graded(files: SubmissionFiles, *parts: str, **options: Any) -> dict[str, Any]:
        return grader.grade(files, Options(parts, **options)).document

    return graded


def outcomes(document: dict[str, Any]) -> dict[str, str]:
    """Outcome by check id."""
    return {test["extra_data"]["check"]: test["extra_data"]["outcome"] for test in document["tests"]}


def output(document: dict[str, Any], check: str) -> str:
    """The message of one check."""
    return next(t["output"] for t in document["tests"] if t["extra_data"]["check"] == check)
