"""A student's own run: the public checks, in this process, so that prints and the debugger are theirs."""

from __future__ import annotations

import io
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from grader.assignment import Assignment, CheckEntry
from grader.carry import ladders
from grader.check import CheckRun, Found
from grader.client import PartClient
from grader.debugger import breakpoints, client_that_asks_anew, stop_at_first_failure
from grader.in_process import InProcessSubmission
from grader.intake import read_submission
from grader.loader import SubmissionModules
from grader.recorded import recorded
from grader.report import Run, results, rows_of
from grader.running import run_pytest
from grader.stand_ins import StandIn
from grader.submission import FATAL, Answer, Call, StubReached, TimedOut
from grader.terms import Outcome

CALL_S = 10.0
"""Seconds of wall time for one call."""

IMPATIENT_CALL_S = 1.0
"""For a call once one has timed out: what hangs in every check then ends soon."""

MAX_PRINTED_LINES = 12
"""Of what a failing case prints, beside its message."""


@dataclass(frozen=True)
class Checked:
    """What came of a run.

    Attributes:
        document: the result, as `report.results` makes it.
    """

    document: dict[str, Any]
    _run: CheckRun
    _modules: SubmissionModules
    _prints: _Prints

    @property
    def lines_kept_back(self) -> int:
        """How many lines the student's code printed that were not let through."""
        return self._prints.lines

    def debug(self) -> bool:
        """Open the debugger where the first check failed; False where that is nowhere in the code."""
        self._prints.shown = True
        return stop_at_first_failure(self._run, self._modules)


class _Prints(io.TextIOBase):
    """Keeps back what the student's code prints in thousands of calls, and counts its lines.

    Args:
        shown: let it through instead.
    """

    def __init__(self, *, shown: bool) -> None:
        self.shown = shown
        self.lines = 0
        self._noted: list[str] = []

    @contextmanager
    def kept_back(self) -> Iterator[None]:
        """Take what is printed inside, unless it is to be shown."""
        if self.shown:
            yield
            return
        with redirect_stdout(self), redirect_stderr(self):
            yield

    def write(self, text: str) -> int:
        """See `TextIOBase`."""
        self.lines += text.count("\n")
        if len(self._noted) < 1000:
            self._noted.append(text)
        return len(text)

    def of(self, run: CheckRun, found: Found) -> str:
        """What the failing case prints when it is run again, the first lines of it."""
        before = self.lines
        self._noted.clear()
        run.attempt(found.check, client_that_asks_anew(found, run), found.case)
        lines = "".join(self._noted).splitlines()
        more = self.lines - before - MAX_PRINTED_LINES
        self.lines = before
        return "\n".join([*lines[:MAX_PRINTED_LINES], *([f"... and {more} more lines"] if more > 0 else [])])


class _AtHome(InProcessSubmission):
    """The student's code, with less patience after it has hung."""

    def __init__(self, prints: _Prints, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._prints = prints

    def call(self, call: Call) -> Answer:
        """See `Submission.call`."""
        try:
            with self._prints.kept_back():
                return super().call(call)
        except TimedOut:
            if not call.forgiven:
                self._call_s = min(self._call_s, IMPATIENT_CALL_S)
            raise


def check(
    assignment: Assignment,
    folder: Path,
    checks: Collection[str] = (),
    on_part: Callable[[str, float, float], None] = lambda _file, _score, _max_score: None,
    *,
    prints: bool = False,
) -> Checked:
    """Run the public checks on a folder.

    Args:
        checks: ids of the checks to run, of which only the public ones are; empty for all.
        on_part: told of each part that is done its file, its points and how many there were to get.
        prints: let through what the code prints. Otherwise messages tell what it prints in their case.

    Raises:
        InputError: the folder holds no part.
        KeyboardInterrupt: with the line of the student's code that was running.
    """
    started = time.monotonic()
    torch.set_num_threads(1)
    files = read_submission(folder, assignment.files)
    # As a path of its own, under which a debugger finds the source.
    modules = partial(SubmissionModules, files.files, files.parts, display_root=f"{folder.resolve()}/")
    kept_back = _Prints(shown=prints)
    run = _check_run(assignment, files.parts, modules, kept_back)
    chosen = {name: _public(assignment, name, checks) for name in assignment.parts}
    chosen = {name: entries for name, entries in chosen.items() if entries}
    tests: list[dict[str, Any]] = []
    with breakpoints(modules()), _saying_where(modules()):
        for name, entries in chosen.items():
            tests += run_pytest(run, entries)["tests"]
            done = _result(assignment, run, tests, entries, {})
            on_part(assignment.parts[name].file, done.score, done.max_score)
        printed = _printed(run, kept_back)
    entries = [entry for of_part in chosen.values() for entry in of_part]
    document = results(
        _result(assignment, run, tests, entries, printed),
        execution_time=time.monotonic() - started,
        extra={"isolation": {"backend": "in_process", "layers": {}, "missing": {}}, "cases": "recorded"},
    )
    return Checked(document, run, modules(), kept_back)


def _printed(run: CheckRun, prints: _Prints) -> dict[str, str]:
    """What the code prints in the cases that failed, by check."""
    if not prints.lines:
        return {}
    silent = (*FATAL, StubReached)
    return {
        check: prints.of(run, found)
        for check, found in run.failures.items()
        if not isinstance(found.failure, silent)
    }


def _public(assignment: Assignment, part: str, only: Collection[str]) -> list[CheckEntry]:
    checks = assignment.checks_of(part)
    return [check for check in checks if not check.hidden and (not only or check.id in only)]


def _check_run(
    assignment: Assignment,
    paths: Mapping[str, str],
    modules: Callable[[], SubmissionModules],
    prints: _Prints,
) -> CheckRun:
    def in_process(stand_ins: Sequence[StandIn] = ()) -> InProcessSubmission:
        return _AtHome(prints, modules(), assignment.classes, stand_ins=stand_ins, call_s=CALL_S)

    own = in_process()
    return CheckRun(
        own,
        clients={name: PartClient(part, own, remember=True) for name, part in assignment.parts.items()},
        cases=recorded(),
        paths=paths,
        ladders=ladders(assignment, own, in_process),
    )


def _result(
    assignment: Assignment,
    run: CheckRun,
    tests: Sequence[Mapping[str, Any]],
    entries: Sequence[CheckEntry],
    printed: Mapping[str, str],
) -> Run:
    uses = [use for use in run.forbidden_uses() if use.part in {entry.part for entry in entries}]
    rows = rows_of(assignment, {"tests": tests}, uses, entries)
    for row in rows:
        if printed.get(row.entry.id) and row.outcome is not Outcome.FORBIDDEN:
            row.lines = dict(row.lines) | {"printed": printed[row.entry.id]}
    return Run(assignment, rows, uses)


@contextmanager
def _saying_where(modules: SubmissionModules) -> Iterator[None]:
    """Let an interrupt say which line of the student's code was running."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        frames = traceback.extract_tb(interrupt.__traceback__)
        own = [(path, frame.lineno) for frame in frames if (path := modules.path_of(frame.filename))]
        raise KeyboardInterrupt(*(f"{path}:{line}" for path, line in own[-1:])) from None
