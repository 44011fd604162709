"""The pytest side of a grading run: hands the checks what they run on, and notes what became of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from grader.check import CheckRun, Verdict
from grader.terms import Outcome

TRACEBACK_CHARACTERS = 4000


class GradingPlugin:
    """One run of the checks over one submission.

    Attributes:
        report: pytest-json-report's report, once the run has ended; each test carries, under
            ``metadata``, the check's id, its outcome and the lines of its message.
    """

    def __init__(self, run: CheckRun, on_finished: Callable[[str], None] | None = None) -> None:
        self._run = run
        self._on_finished = on_finished
        self.report: dict[str, Any] | None = None

    @pytest.fixture
    def check_run(self) -> CheckRun:
        """What every check asks for."""
        return self._run

    def pytest_json_runtest_metadata(self, item: pytest.Item, call: pytest.CallInfo[None]) -> dict[str, Any]:
        """Note the outcome under the check's id; what is neither a pass nor a verdict is our fault."""
        noted: dict[str, Any] = {"check": check_id(item)}
        if call.excinfo is None:
            if call.when == "call":
                noted["outcome"] = Outcome.PASSED.value
                noted |= self._carried()
        elif isinstance(call.excinfo.value, Verdict):
            verdict = call.excinfo.value
            noted |= {"outcome": verdict.outcome.value, "lines": verdict.lines} | self._carried()
        else:
            trace = str(call.excinfo.getrepr(style="short", funcargs=False))
            noted |= {
                "outcome": Outcome.GRADER_ERROR.value,
                "error": trace[-TRACEBACK_CHARACTERS:],
            }
        return noted

    def _carried(self) -> dict[str, Any]:
        carried = self._run.carried
        if carried is None:
            return {}
        return {"carried": {"at_fault": carried.at_fault, "outcome": carried.outcome.value}}

    def pytest_json_modifyreport(self, json_report: dict[str, Any]) -> None:
        """Keep the report; it is never written to a file."""
        self.report = json_report


def check_id(item: pytest.Item) -> str:
    """`PART.NAME` of `checks/…/test_PART.py::test_NAME`."""
    part = item.path.stem.removeprefix("test_")
    return f"{part}.{item.name.removeprefix('test_')}"
