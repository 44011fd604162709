"""How long a submission may take: for a call, for a check, in all.

Time is the worker's own CPU time where the system tells it, so that a busy machine costs no points; a
larger limit of wall time ends what sleeps or waits.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class TimeLimits:
    """Limits in seconds of CPU time; wall time may be `wall_factor` times as long.

    Attributes:
        idle_s: wall time that a call may spend without computing.
        call_s: one call.
        impatient_call_s: one call, once `patience` calls have timed out. What hangs everywhere then
            costs little, and what does not hang is unharmed.
        check_s: all calls of one check.
        submission_s: everything.
        total_wall_s: everything, on the wall; where somebody else would end the run without a result.
    """

    call_s: float = 20.0
    impatient_call_s: float = 2.0
    patience: int = 2
    check_s: float = 60.0
    submission_s: float = 400.0
    idle_s: float = 10.0
    wall_factor: float = 3.0
    total_wall_s: float = math.inf


@dataclass
class _Account:
    """What all workers of one submission share."""

    ends_at: float
    used_s: float = 0.0
    killed: int = 0
    timeouts: int = 0


class Budget:
    """What is left of a submission's time."""

    def __init__(self, limits: TimeLimits) -> None:
        self.limits = limits
        self.timeouts = 0
        wall_s = min(limits.total_wall_s, limits.submission_s * limits.wall_factor)
        self._account = _Account(time.monotonic() + wall_s)
        self._check_started_s = 0.0
        self._check_began_at = time.monotonic()

    def shared(self) -> Budget:
        """The budget of the same submission run in another way: the same time, a patience of its own."""
        other = Budget(self.limits)
        other._account = self._account
        # Where it has hung so far it may hang again: one more call may take its time.
        other.timeouts = min(self._account.timeouts, self.limits.patience - 1)
        return other

    @property
    def used_s(self) -> float:
        """CPU seconds so far, of all that share this."""
        return self._account.used_s

    @property
    def killed(self) -> int:
        """How many workers were ended by SIGKILL, and not by us: by the system, or whoever may."""
        return self._account.killed

    def count_timeout(self) -> None:
        """A call has timed out."""
        self.timeouts += 1
        self._account.timeouts += 1

    def count_killed(self) -> None:
        """One more."""
        self._account.killed += 1

    @property
    def wall_left_s(self) -> float:
        """Until everything must have ended."""
        return self._account.ends_at - time.monotonic()

    @property
    def check_wall_left_s(self) -> float:
        """Until this check must have ended: what sleeps a little in every call takes time, too."""
        ends_at = self._check_began_at + self.limits.check_s * self.limits.wall_factor
        return min(ends_at - time.monotonic(), self.wall_left_s)

    def begin_check(self) -> None:
        """Start the next check's own limit."""
        self._check_started_s = self.used_s
        self._check_began_at = time.monotonic()

    @property
    def exhausted(self) -> bool:
        """Whether the whole submission's time is used up."""
        return self.used_s >= self.limits.submission_s or self.wall_left_s <= 0

    def next_call_s(self) -> float:
        """The CPU time that the next call may take; 0 when the check's or all time is used up."""
        limits = self.limits
        call_s = limits.call_s if self.timeouts < limits.patience else limits.impatient_call_s
        check_s = limits.check_s - (self.used_s - self._check_started_s)
        if self.check_wall_left_s <= 0:
            return 0.0
        return max(0.0, min(call_s, check_s, limits.submission_s - self.used_s))

    def spend(self, stopwatch: Stopwatch) -> None:
        """Book what a call took; while its process is still there to ask."""
        self._account.used_s += stopwatch.taken_s()


IDLE_CPU_S = 0.05
"""Who computes for less than this in `idle_s` does not compute, however busy the machine is."""


class Stopwatch:
    """Measures one call of a worker, in the CPU time of its process and in wall time.

    Args:
        pid: the worker.
        cpu_s: the CPU time that it may take.
        budget: says how much more wall time it may take, and how much of that doing nothing.
        since: the stopwatch of the call before, if the worker had both at once: what it has computed
            since then belongs to this one.
    """

    def __init__(self, pid: int, cpu_s: float, budget: Budget, since: Stopwatch | None = None) -> None:
        self._pid = pid
        self._cpu_s = cpu_s
        self._wall_s = min(cpu_s * budget.limits.wall_factor, budget.check_wall_left_s)
        self._idle_s = budget.limits.idle_s
        self._cpu_start = _cpu_time(pid) if since is None else since._cpu_end
        self._wall_start = time.monotonic()
        self._taken_s = 0.0
        self._worked_at = (self._wall_start, self._cpu_start or 0.0)

    @property
    def _cpu_end(self) -> float | None:
        return None if self._cpu_start is None else self._cpu_start + self._taken_s

    def taken_s(self) -> float:
        """CPU seconds so far; wall seconds where the system does not tell another process' time."""
        if self._cpu_start is None:
            return time.monotonic() - self._wall_start
        now = _cpu_time(self._pid)
        if now is not None:
            self._taken_s = now - self._cpu_start
        return self._taken_s

    def wait_s(self) -> float:
        """How long to wait before looking again; 0 when the time is up."""
        now = time.monotonic()
        left_s = self._wall_s - (now - self._wall_start)
        if self._cpu_start is not None:
            taken_s = self.taken_s()
            if self._cpu_start + taken_s - self._worked_at[1] > IDLE_CPU_S:
                self._worked_at = (now, self._cpu_start + taken_s)
            left_s = min(left_s, self._cpu_s - taken_s, self._worked_at[0] + self._idle_s - now)
        return max(0.0, left_s)


def _cpu_time(pid: int) -> float | None:
    """CPU seconds that a process has used, all threads together, or None."""
    if sys.platform != "linux":
        return None
    # The kernel's clock id of another process, as clock_getcpuclockid(3) computes it.
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None
