"""A student's own run: the public checks, in this process, so that prints and the debugger are theirs."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from grader.assignment import Assignment, CheckEntry
from grader.carry import ladders
from grader.check import CheckRun
from grader.client import PartClient
from grader.debugger import breakpoints, stop_at_first_failure
from grader.in_process import InProcessSubmission
from grader.intake import read_submission
from grader.loader import SubmissionModules
from grader.recorded import recorded
from grader.report import Run, results, rows_of
from grader.running import run_pytest
from grader.stand_ins import StandIn
from grader.submission import Answer, Call, TimedOut

CALL_S = 10.0
"""Seconds of wall time for one call."""

IMPATIENT_CALL_S = 1.0
"""For a call once one has timed out: what hangs in every check then ends soon."""


@dataclass(frozen=True)
class Checked:
    """What came of a run.

    Attributes:
        document: the result, as `report.results` makes it.
    """

    document: dict[str, Any]
    _run: CheckRun
    _modules: SubmissionModules

    def debug(self) -> bool:
        """Open the debugger where the first check failed; False where that is nowhere in the code."""
        return stop_at_first_failure(self._run, self._modules)


class _AtHome(InProcessSubmission):
    """The student's code, with less patience after it has hung."""

    def call(self, call: Call) -> Answer:
        """See `Submission.call`."""
        try:
            return super().call(call)
        except TimedOut:
            self._call_s = min(self._call_s, IMPATIENT_CALL_S)
            raise


def check(
    assignment: Assignment,
    folder: Path,
    checks: Collection[str] = (),
    on_part: Callable[[str, float, float], None] = lambda _file, _score, _max_score: None,
) -> Checked:
    """Run the public checks on a folder.

    Args:
        checks: ids of the checks to run, of which only the public ones are; empty for all.
        on_part: told of each part that is done its file, its points and how many there were to get.

    Raises:
        InputError: the folder holds no part.
        KeyboardInterrupt: with the line of the student's code that was running.
    """
    started = time.monotonic()
    torch.set_num_threads(1)
    files = read_submission(folder, assignment.files)
    # As a path of its own, under which a debugger finds the source.
    modules = partial(SubmissionModules, files.files, files.parts, display_root=f"{folder.resolve()}/")
    run = _check_run(assignment, files.parts, modules)
    chosen = {name: _public(assignment, name, checks) for name in assignment.parts}
    chosen = {name: entries for name, entries in chosen.items() if entries}
    tests: list[dict[str, Any]] = []
    with breakpoints(modules()), _saying_where(modules()):
        for name, entries in chosen.items():
            tests += run_pytest(run, entries)["tests"]
            done = _result(assignment, run, tests, entries)
            on_part(assignment.parts[name].file, done.score, done.max_score)
    document = results(
        _result(assignment, run, tests, [entry for entries in chosen.values() for entry in entries]),
        execution_time=time.monotonic() - started,
        extra={"isolation": {"backend": "in_process", "layers": {}, "missing": {}}, "cases": "recorded"},
    )
    return Checked(document, run, modules())


def _public(assignment: Assignment, part: str, only: Collection[str]) -> list[CheckEntry]:
    checks = assignment.checks_of(part)
    return [check for check in checks if not check.hidden and (not only or check.id in only)]


def _check_run(
    assignment: Assignment, paths: Mapping[str, str], modules: Callable[[], SubmissionModules]
) -> CheckRun:
    def in_process(stand_ins: Sequence[StandIn] = ()) -> InProcessSubmission:
        return _AtHome(modules(), assignment.classes, stand_ins=stand_ins, call_s=CALL_S)

    own = in_process()
    return CheckRun(
        own,
        clients={name: PartClient(part, own, remember=True) for name, part in assignment.parts.items()},
        cases=recorded(),
        paths=paths,
        ladders=ladders(assignment, own, in_process),
    )


def _result(
    assignment: Assignment, run: CheckRun, tests: Sequence[Mapping[str, Any]], entries: Sequence[CheckEntry]
) -> Run:
    uses = [use for use in run.forbidden_uses() if use.part in {entry.part for entry in entries}]
    return Run(assignment, rows_of(assignment, {"tests": tests}, uses, entries), uses)


@contextmanager
def _saying_where(modules: SubmissionModules) -> Iterator[None]:
    """Let an interrupt say which line of the student's code was running."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        frames = traceback.extract_tb(interrupt.__traceback__)
        own = [(path, frame.lineno) for frame in frames if (path := modules.path_of(frame.filename))]
        raise KeyboardInterrupt(*(f"{path}:{line}" for path, line in own[-1:])) from None
