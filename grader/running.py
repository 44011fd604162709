"""Run checks with pytest and return what it reports; who answers them is the caller's affair."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from grader.assignment import CheckEntry
from grader.check import CheckRun
from grader.plugin import GradingPlugin

CHECKS = Path(__file__).with_name("checks")

_PYTEST_OPTIONS = [
    f"--rootdir={CHECKS}",
    f"--config-file={CHECKS / 'pytest.ini'}",
    "--noconftest",
    "--assert=plain",
    "--capture=no",
    "--quiet",
    "-p",
    "pytest_jsonreport.plugin",
    "--json-report",
    "--json-report-file=none",
    "--json-report-omit=log",
    "--json-report-omit=collectors",
    *(
        option
        for plugin in (
            "cacheprovider",
            "debugging",
            "doctest",
            "faulthandler",
            "junitxml",
            "logging",
            "pastebin",
            "setuponly",
            "setupplan",
            "stepwise",
            "threadexception",
            "unraisableexception",
        )
        for option in ("-p", f"no:{plugin}")
    ),
]


class GraderError(Exception):
    """The grader itself failed; no word about the submission follows from it."""


def run_pytest(run: CheckRun, checks: Sequence[CheckEntry]) -> dict[str, Any]:
    """Run the checks and return pytest-json-report's report.

    Raises:
        GraderError: pytest could not collect or run them.
        KeyboardInterrupt: whoever sits before it has had enough.
    """
    plugin = GradingPlugin(run)
    outside = _Outside()
    said = io.StringIO()
    targets = [f"{check_file(check)}::test_{check.id.partition('.')[2]}" for check in checks]
    with _plugins_as_named(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = pytest.main([*_PYTEST_OPTIONS, *targets], plugins=[plugin, outside])
    if outside.interrupt is not None:
        raise outside.interrupt
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or plugin.report is None:
        raise GraderError(f"pytest ended with {status}:\n{said.getvalue()[-4000:]}")
    return plugin.report


def check_file(check: CheckEntry) -> Path:
    """Where a check is written."""
    return CHECKS / ("hidden" if check.hidden else "public") / f"test_{check.part}.py"


class _Outside:
    """What of the world around pytest a check shall see: the real output, and Ctrl-C."""

    def __init__(self) -> None:
        self.interrupt: KeyboardInterrupt | None = None
        self._output, self._errors = sys.stdout, sys.stderr

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self) -> Iterator[None]:
        """Only pytest's own words are kept back: where the student's code runs here, it may print."""
        with contextlib.redirect_stdout(self._output), contextlib.redirect_stderr(self._errors):
            return (yield)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Keep it; what pytest raises itself to end a run is a kind of it, and not meant."""
        if type(excinfo.value) is KeyboardInterrupt:
            self.interrupt = excinfo.value


@contextlib.contextmanager
def _plugins_as_named() -> Iterator[None]:
    """Keep pytest from loading whatever else is installed."""
    name = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
