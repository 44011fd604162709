"""What grading costs beside the student's own code, in CPU time, one core, one run.

Compares, on a correct submission:
- the student's own code: constructors, forwards and backward passes, timed in the worker of a grade;
- a warm, isolating grader: everything that the grading process and its worker spend in that same grade;
- a fresh `pytest` process that runs the same checks in its own process with generated cases.

    python -m tests.bench.grading [SUBMISSION] [--rounds N]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from grader import adapters
from grader.sandbox import worker
from grader.sandbox.zygote import Zygote
from tests.bench.memory import tree_pss_mb

ROOT = Path(__file__).parent.parent.parent
WRONG = ROOT / "tests" / "samples" / "normalised_residual"


def main() -> None:
    """Measure in turn, a few rounds, and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("submission", nargs="?", type=Path, default=ROOT / "reference")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    worker.Adapter = _Timed  # type: ignore[attr-defined,misc]
    zygote = Zygote.start()
    warm, own, fresh = [], [], []
    from grader.assignment import load_assignment
    from grader.grading import Grader
    from grader.intake import read_submission

    assignment = load_assignment()
    files = read_submission(options.submission, assignment.files)
    grader = Grader(assignment, zygote)
    with _noted() as noted:
        grader.grade(files)
        for _ in range(options.rounds):
            grader.grade(files)  # the fresh process of the round before has cooled everything down
            noted.clear()
            before, began = time.process_time(), time.perf_counter()
            graded = grader.grade(files)
            wall_s = time.perf_counter() - began
            warm.append(time.process_time() - before + noted.worker_s)
            # Of two processes that take turns, the clocks of CPU time tell well what a grade takes, but not
            # what a moment of it takes; that both share one core, the clock on the wall tells.
            own.append(warm[-1] * noted.own_s / wall_s)
            fresh.append(_fresh_pytest_s(options.submission))
    zygote.close()

    print(f"{options.submission}: {graded.document['score']:g} points, {noted.calls} calls")
    _row("student's own code", own, own)
    _row("warm grader, all", warm, own)
    _row("fresh pytest, generated cases", fresh, own)
    beside = [w / o - 1 for w, o in zip(warm, own, strict=True)]
    spread = f"{min(beside):.2f} to {max(beside):.2f}"
    print(f"beside the student's own code, as a ratio to it: {statistics.median(beside):.2f} ({spread})")
    ratios = [w / f for w, f in zip(warm, fresh, strict=True)]
    print(f"warm grader / fresh pytest: {statistics.median(ratios):.2f}")
    for path in (options.submission, WRONG):
        print(f"all processes of one grade of {path.name} together, at most: {_peak_mb(path):.0f} MB (PSS)")


def _row(name: str, seconds: list[float], unit: list[float]) -> None:
    median = statistics.median(seconds)
    spread = f"{min(seconds):.2f} to {max(seconds):.2f}"
    print(f"{name:32} {median:6.2f} s CPU ({spread}), {median / statistics.median(unit):.2f} x own code")


class _Timed(adapters.Adapter):
    """Says with each answer how long the student's classes have run so far."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self._untimed, self._student_code = self._student_code, self._timed
        self._own_s = 0.0

    @contextlib.contextmanager
    def _timed(self, doing: str, *kind: type) -> Iterator[None]:
        with self._untimed(doing, *kind):
            began = time.perf_counter()
            try:
                yield
            finally:
                if not doing.startswith(_NOT_THE_STUDENTS):
                    self._own_s += time.perf_counter() - began

    def answer(self, call):
        answer = super().answer(call)
        answer.facts["own_s"] = self._own_s
        return answer


_NOT_THE_STUDENTS = ("loading", "reading", "setting")
"""What the adapter does with their modules."""


class _Noted:
    """What is known of one grade's worker: its calls, its CPU time, and the wall time of the student's code."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.calls = 0
        self.worker_s = self.own_s = 0.0


@contextlib.contextmanager
def _noted() -> Iterator[_Noted]:
    from grader.sandbox.backend import SandboxSubmission

    noted = _Noted()
    call, end_worker = SandboxSubmission.call, SandboxSubmission._end_worker

    def noted_call(self, asked):
        noted.calls += 1
        answer = call(self, asked)
        noted.own_s = max(noted.own_s, answer.facts["own_s"])
        return answer

    def noted_end(self):
        noted.worker_s += time.clock_gettime((~self._channel.process.pid << 3) | 2)
        return end_worker(self)

    SandboxSubmission.call, SandboxSubmission._end_worker = noted_call, noted_end
    try:
        yield noted
    finally:
        SandboxSubmission.call, SandboxSubmission._end_worker = call, end_worker


def _fresh_pytest_s(submission: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "tests.bench.fresh_pytest", str(submission)]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    if "failed" in said:  # the submission is a right one: what is timed would be failures
        raise RuntimeError(f"the fresh pytest must pass, got {said}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _peak_mb(submission: Path) -> float:
    """The most memory that a grade of its own process takes, its children included."""
    command = [sys.executable, "-m", "grader", "grade", str(submission), "--json", os.devnull]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        most = 0.0
        while process.poll() is None:
            most = max(most, tree_pss_mb(process.pid))
            time.sleep(0.1)
    return most


if __name__ == "__main__":
    main()
