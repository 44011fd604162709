"""Several submissions at a time, each in one of a few warm grading processes.

A grading process that dies, however that comes, is replaced, and its submission graded once more.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported by the grading processes, after their zygote is forked
    from grader.grading import Grader, Options
    from grader.intake import SubmissionFiles
    from grader.sandbox.zygote import Zygote

TRIES = 2
"""How often a submission is graded whose grading process dies."""

KILLED_TRIES = 4
"""How often a submission is graded whose processes are killed by who knows whom."""

PATIENCE_S = 3600.0
"""On the wall; no submission has so much time, so a grading process that takes longer is stuck."""

_SPAWN = multiprocessing.get_context("spawn")


class PoolError(Exception):
    """No grading process starts; nothing can be graded."""


@dataclass(frozen=True)
class Job:
    """One submission to grade; without options, all of it."""

    files: SubmissionFiles
    options: Options | None = None


@dataclass(frozen=True)
class Done:
    """What came of a job: a result, or the grader's trouble."""

    key: str
    document: dict[str, Any] | None
    trouble: str = ""


class Pool:
    """A few grading processes, each with its own zygote.

    Args:
        size: how many.
    """

    def __init__(self, size: int) -> None:
        self._processes = [_GradingProcess() for _ in range(size)]
        self._failed_starts = 0

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all of them, and with them their zygotes and workers; who is at work is not waited for."""
        for process in self._processes:
            process.pipe.close()
        for process in self._processes:
            process.end()

    def missing_layers(self) -> dict[str, str]:
        """The layers that a worker should have around it and has not; waits for a process to know."""
        while True:
            for process in self._processes:
                if process.missing_layers is not None:
                    return process.missing_layers
            self._hear({}, deque())

    def grade(self, jobs: Sequence[Job]) -> Iterator[dict[str, Any]]:
        """Grade all, and return the results in the same order, each as soon as it is its turn.

        Raises:
            PoolError: the grader failed over one of them.
        """
        found: dict[str, dict[str, Any]] = {}
        turn = 0
        for done in self.each((str(number), job) for number, job in enumerate(jobs)):
            if done.document is None:
                raise PoolError(done.trouble)
            found[done.key] = done.document
            while str(turn) in found:
                yield found.pop(str(turn))
                turn += 1

    def each(self, jobs: Iterable[tuple[str, Job]]) -> Iterator[Done]:
        """Grade all, and return what came of each, as it comes.

        Args:
            jobs: with a key each, all different; taken one by one, as there is room.
        """
        coming, again = iter(jobs), deque[tuple[str, Job]]()
        tries: Counter[str] = Counter()
        more = True
        while more or again or any(process.busy_with for process in self._processes):
            for process in self._processes:
                if process.idle and (given := again.popleft() if again else next(coming, None)):
                    tries[given[0]] += 1
                    process.give(*given)
                elif process.idle:
                    more = False
            if any(not process.idle for process in self._processes):
                yield from self._hear(tries, again)

    def _hear(self, tries: Mapping[str, int], again: deque[tuple[str, Job]]) -> list[Done]:
        """Wait until a process says something, or dies; what failed goes to `again`, or has been tried."""
        heard = wait([process.pipe for process in self._processes], timeout=10)
        found = []
        for number, process in enumerate(self._processes):
            given = process.busy_with
            done = process.hear() if process.pipe in heard else None
            if process.lost or process.stuck:
                self._processes[number], ending = self._replacement(process)
                done = Done(given[0], None, f"the grading process ended over it: {ending}") if given else None
            if given and done and done.document is None and tries[given[0]] < TRIES:
                again.append(given)
            elif done:
                found.append(done)
        return found

    def _replacement(self, process: _GradingProcess) -> tuple[_GradingProcess, str]:
        ending = process.end()
        self._failed_starts = self._failed_starts + 1 if process.missing_layers is None else 0
        if self._failed_starts > 3 * len(self._processes):
            raise PoolError(f"no grading process starts ({ending})")
        return _GradingProcess(), ending


@dataclass
class _GradingProcess:
    """The pool's hold on one.

    Attributes:
        missing_layers: None until it is ready.
        busy_with: the job that it has, with its key.
        lost: it has gone, or says what cannot be read.
    """

    missing_layers: dict[str, str] | None = None
    busy_with: tuple[str, Job] | None = None
    lost: bool = False
    _since: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def idle(self) -> bool:
        return self.missing_layers is not None and self.busy_with is None

    @property
    def stuck(self) -> bool:
        waiting = self.busy_with is not None or self.missing_layers is None
        return waiting and time.monotonic() - self._since > PATIENCE_S

    def give(self, key: str, job: Job) -> None:
        """Let it grade; if it is gone already, `hear` will tell."""
        self.busy_with, self._since = (key, job), time.monotonic()
        try:
            self.pipe.send(job)
        except OSError:
            self.lost = True

    def hear(self) -> Done | None:
        """What it has to say."""
        try:
            kind, said = self.pipe.recv()
        except (EOFError, OSError):
            self.lost = True
            return None
        if kind == "ready":
            self.missing_layers = said
            return None
        assert self.busy_with is not None  # noqa: S101 - it only answers
        (key, _job), self.busy_with = self.busy_with, None
        return Done(key, said) if kind == "done" else Done(key, None, said)

    def end(self) -> str:
        """Kill it, and return how it ended."""
        self._process.join(0 if self.busy_with and not self.lost else 2)
        ending = f"exit code {self._process.exitcode}" if self.lost else f"no word for {PATIENCE_S:g} s"
        self._process.kill()
        self._process.join()
        self.pipe.close()
        return ending


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# --- in the grading process ---------------------------------------------------------------------------


def _serve(pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asked
    # The zygote first: nothing of the reference or the checks may be in its memory.
    from grader.sandbox.zygote import Zygote

    zygote = Zygote.start()
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101 - this is a child
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()

    from grader.assignment import load_assignment
    from grader.grading import Grader

    grader = Grader(load_assignment(), zygote)
    pipe.send(("ready", grader.missing_layers()))
    while True:
        try:
            job: Job = pipe.recv()
        except EOFError:
            zygote.close()
            return
        answer = _graded(grader, job)
        _stop_without(zygote)
        pipe.send(answer)


def _graded(grader: Grader, job: Job) -> tuple[str, Any]:
    try:
        before: Any = None
        for _ in range(KILLED_TRIES):
            graded = grader.grade(job.files, job.options)
            untimed = graded.document | {"execution_time": 0}
            # By the submission, or by somebody else? What it does itself it does again.
            if not graded.killed or untimed == before:
                return "done", graded.document
            before = untimed
        return "failed", "its processes were killed, again and again in other places: by the system?"
    except Exception:
        return "failed", traceback.format_exc(limit=-5)


def _stop_without(zygote: Zygote) -> None:
    """A result that was made while the zygote went is none; the pool grades again, elsewhere."""
    if zygote.gone():
        os._exit(1)


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    """End this process when its parent is gone, however that went; the zygote and the workers follow."""
    parent.join()
    os._exit(1)
