"""`InProcessSubmission`: the seam over code that runs in this very process.

For students at home, whose prints, tracebacks and debugger are then their own, and for the reference,
which is ours. Never for a grade: what runs here could change what decides.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from grader.adapters import Adapter
from grader.from_scratch.source import uses_in_source
from grader.loader import SubmissionModules
from grader.stand_ins import StandIn
from grader.submission import Answer, Call, TimedOut
from grader.terms import Use


class InProcessSubmission:
    """A submission whose code runs here.

    Args:
        modules: its files.
        classes: the contract's class of each part; None leaves the source unsearched.
        stand_ins: parts that are replaced by right ones.
        call_s: seconds that one call may take; 0 for no limit.
        keep_errors: let the student's own exceptions through, for a debugger.
    """

    def __init__(
        self,
        modules: SubmissionModules,
        classes: dict[str, str] | None = None,
        *,
        stand_ins: Sequence[StandIn] = (),
        call_s: float = 0.0,
        keep_errors: bool = False,
    ) -> None:
        self._modules = modules
        self._adapter = Adapter(
            modules, classes or {}, stand_ins=stand_ins, own_process=True, keep_errors=keep_errors
        )
        self._call_s = call_s
        self._uses = uses_in_source(modules, classes) if classes else []

    def call(self, call: Call) -> Answer:
        """See `Submission.call`."""
        with self._adapter.ready(), _alarm(self._call_s, self._modules):
            return self._adapter.answer(call)

    def begin_check(self) -> None:
        """See `Submission.begin_check`; here every call has its own limit."""

    def forbidden_uses(self) -> list[Use]:
        """See `Submission.forbidden_uses`."""
        uses = {*self._uses, *self._adapter.uses}
        return sorted(uses)

    def close(self) -> None:
        """Nothing is held."""


@contextmanager
def _alarm(seconds: float, modules: SubmissionModules) -> Iterator[None]:
    """Interrupt Python code that runs longer, and say where it was.

    Works where the system has alarms, in the main thread; a loop inside one torch operator is not
    interrupted before it returns.
    """
    main_thread = threading.current_thread() is threading.main_thread()
    if seconds <= 0 or sys.platform == "win32" or not hasattr(signal, "setitimer") or not main_thread:
        yield
        return

    def ring(_signum: int, frame: FrameType | None) -> None:
        where = ""
        while frame is not None and not where:
            path = modules.path_of(frame.f_code.co_filename)
            where = f"{path}:{frame.f_lineno}" if path else ""
            frame = frame.f_back
        raise TimedOut(f"no answer within {seconds:g} s", where)

    before = signal.signal(signal.SIGALRM, ring)
    # Again every second: the first may be swallowed by an `except` of the student's.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
