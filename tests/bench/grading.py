"""What grading costs beside the student's own code, in CPU time, one core, one run.

Compares, on a correct submission:
- the student's own code: constructors, forwards and backward passes of exactly the calls of a grade;
- a warm, isolating grader: everything that the grading process and its worker spend;
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

    zygote = Zygote.start()
    warm, own, fresh = [], [], []
    from grader.assignment import load_assignment
    from grader.grading import Grader
    from grader.intake import read_submission

    assignment = load_assignment()
    files = read_submission(options.submission, assignment.files)
    grader = Grader(assignment, zygote)
    with _recorded_calls() as (calls, worker_s):
        grader.grade(files)  # warms up; its calls are replayed below
        asked = list(calls)
        for _ in range(options.rounds):
            grader.grade(files)  # the fresh process of the round before has cooled everything down
            worker_s.clear()
            before = time.process_time()
            graded = grader.grade(files)
            warm.append(time.process_time() - before + sum(worker_s))
            own.append(_own_code_s(asked, files))
            fresh.append(_fresh_pytest_s(options.submission))
    zygote.close()

    print(f"{options.submission}: {graded.document['score']:g} points, {len(asked)} calls")
    _row("student's own code", own, own)
    _row("warm grader, all", warm, own)
    _row("fresh pytest, generated cases", fresh, own)
    overhead = statistics.median(w - o for w, o in zip(warm, own, strict=True))
    print(f"beside the student's own code, as a ratio to it: {overhead / statistics.median(own):.2f}")
    ratios = [w / f for w, f in zip(warm, fresh, strict=True)]
    print(f"warm grader / fresh pytest: {statistics.median(ratios):.2f}")
    for path in (options.submission, WRONG):
        print(f"all processes of one grade of {path.name} together, at most: {_peak_mb(path):.0f} MB (PSS)")


def _row(name: str, seconds: list[float], unit: list[float]) -> None:
    median = statistics.median(seconds)
    spread = f"{min(seconds):.2f} to {max(seconds):.2f}"
    print(f"{name:32} {median:6.2f} s CPU ({spread}), {median / statistics.median(unit):.2f} x own code")


@contextlib.contextmanager
def _recorded_calls() -> Iterator[tuple[list, list]]:
    """Note every call that a sandboxed submission gets, and the CPU time of every worker that ends."""
    from grader.sandbox.backend import SandboxSubmission

    calls: list = []
    worker_s: list[float] = []
    call, end_worker = SandboxSubmission.call, SandboxSubmission._end_worker

    def noted_call(self, asked):
        calls.append(asked)
        return call(self, asked)

    def noted_end(self):
        pid = self._channel.process.pid
        worker_s.append(time.clock_gettime((~pid << 3) | 2))
        return end_worker(self)

    SandboxSubmission.call, SandboxSubmission._end_worker = noted_call, noted_end
    try:
        yield calls, worker_s
    finally:
        SandboxSubmission.call, SandboxSubmission._end_worker = call, end_worker


def _own_code_s(calls: list, files) -> float:
    """Replay the calls in this process and time only what runs inside the student's classes."""
    import torch

    from grader import adapters
    from grader.assignment import load_assignment
    from grader.loader import SubmissionModules

    spent = 0.0

    class Timed(adapters.Adapter):
        @contextlib.contextmanager
        def _student_code(self, *arguments, **options):
            nonlocal spent
            with super()._student_code(*arguments, **options):
                before = time.process_time()
                yield
                spent += time.process_time() - before

    adapter = Timed(SubmissionModules(files.files, files.parts), load_assignment().classes)
    adapters.CLOSE_WATCH = 1 << 40  # the function mode is not the student's
    adapter._collect = lambda tensors, *_: dict(tensors)
    torch.set_num_threads(1)
    with adapter.ready():
        for call in calls:
            with contextlib.suppress(Exception):
                adapter.answer(call)
    return spent


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
