"""Python's debugger, in the student's own code and nowhere in the grader's."""

from __future__ import annotations

import contextlib
import pdb
import signal
import sys
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, TextIO

from grader.check import CheckRun, Found
from grader.client import PartClient
from grader.expect import CheckFailure
from grader.loader import SubmissionModules
from grader.terms import Outcome

_NOT_STEPPED_INTO = ("torch", "torch.*", "grader.*", "contextlib", "importlib.*", "pluggy.*", "_pytest.*")

_COMMANDS = "n next line, s step into, p NAME print, c continue to the next call, q quit"


class _Debugger(pdb.Pdb):
    """Shows the student's frames only; no time limit runs while it waits, and to quit it ends the run.

    Args:
        about: said when it stops for the first time.
        output: where it talks to; None for stdout.
    """

    def __init__(self, modules: SubmissionModules, about: str = "", output: TextIO | None = None) -> None:
        super().__init__(skip=_NOT_STEPPED_INTO)
        self.stdout = output or self.stdout
        self.stopped = False
        self._modules = modules
        self._about = about

    def interaction(self, *where: Any) -> None:
        """Wait for commands."""
        _stop_the_clock()
        if self._about and not self.stopped:
            self.message(self._about)
        self.stopped = True
        with contextlib.redirect_stdout(self.stdout):
            super().interaction(*where)
        if self.quitting:
            raise KeyboardInterrupt

    def get_stack(
        self, f: FrameType | None, t: TracebackType | None
    ) -> tuple[list[tuple[FrameType, int]], int]:
        """The stack as `where` shows it."""
        stack, _ = super().get_stack(f, t)
        own = [entry for entry in stack if entry[0] is f or self.is_own(entry[0])]
        return own or stack, len(own or stack) - 1

    def is_own(self, frame: FrameType) -> bool:
        """Whether it runs the student's code."""
        return self._modules.path_of(frame.f_code.co_filename) is not None


@contextlib.contextmanager
def breakpoints(modules: SubmissionModules) -> Iterator[None]:
    """Let `breakpoint()` and `pdb.set_trace()` in the student's code work as they should."""
    output = sys.stdout  # that of the student's code may be kept back when it stops

    def stop(*_arguments: object, **_options: object) -> None:
        _Debugger(modules, output=output).set_trace(sys._getframe(1))

    before = sys.breakpointhook, pdb.set_trace
    sys.breakpointhook = pdb.set_trace = stop
    try:
        yield
    finally:
        sys.breakpointhook, pdb.set_trace = before


def stop_at_first_failure(run: CheckRun, modules: SubmissionModules) -> bool:
    """Stop where the first check that failed does so, if that is in the student's code.

    Where the code raised, that is the line that did; where it returned wrong values, the beginning of
    `forward`, in a second run of the check on the case that the message tells.
    """
    with contextlib.suppress(KeyboardInterrupt):
        return any(_stop(found, run, modules) for found in run.failures.values())
    return True


def _stop(found: Found, run: CheckRun, modules: SubmissionModules) -> bool:
    if isinstance(found.failure, CheckFailure):
        return any(_stop_in(method, found, run, modules) for method in ("forward", "__init__"))
    if found.failure.outcome is Outcome.NOT_IMPLEMENTED:
        return False
    debugger = _Debugger(modules, _about(found))
    trace = (found.failure.__cause__ or found.failure).__traceback__
    if not any(debugger.is_own(frame) for frame, _ in debugger.get_stack(None, trace)[0]):
        return False
    debugger.reset()
    debugger.interaction(None, trace)
    return True


def _stop_in(method: str, found: Found, run: CheckRun, modules: SubmissionModules) -> bool:
    """Run the check again and stop whenever it comes to a method of the part's class."""
    place = _place_of(method, found, modules)
    if place is None:
        return False
    debugger = _Debugger(modules, _about(found))
    debugger.reset()
    debugger.set_break(*place, funcname=method)
    debugger.botframe = sys._getframe()  # else it would stop at once
    debugger.set_continue()
    again = client_that_asks_anew(found, run)
    sys.settrace(debugger.trace_dispatch)
    try:
        run.attempt(found.check, again, found.case)
    finally:
        sys.settrace(None)
        debugger.clear_all_breaks()
    return debugger.stopped


def _place_of(method: str, found: Found, modules: SubmissionModules) -> tuple[str, int] | None:
    """File and first line of a method of the part's class, if the student wrote it."""
    target = found.client.part.target
    with modules.installed():
        part = modules.import_part(target.part)
        code = getattr(getattr(getattr(part, target.class_name), method), "__code__", None)
    if code is None or modules.path_of(code.co_filename) is None:
        return None
    return code.co_filename, code.co_firstlineno


def client_that_asks_anew(found: Found, run: CheckRun) -> PartClient:
    """A client of the submission on which a check failed that remembers no answers."""
    rungs = run.ladders.get(found.check.part, ())
    submission = next((rung.submission for rung in rungs if rung.client is found.client), run.submission)
    client = PartClient(found.client.part, submission)
    client.dtype = found.client.dtype
    return client


def _about(found: Found) -> str:
    """What to say first: the check, and the case on which it failed."""
    given = "" if found.case is None else f", given {found.case.describe()}"
    return f"\nThe debugger, at the first failure: {found.check.id}{given}\n{_COMMANDS}\n"


def _stop_the_clock() -> None:
    if sys.platform != "win32" and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
