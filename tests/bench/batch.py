"""What grading a class costs, in CPU time, all of it in one run on the same submissions.

Compares, on 40 submissions, right and wrong ones:
- `batch` with one grading process, and with two, each pair of processes with a core of its own;
- a fresh `pytest` process per submission that runs the same checks, with generated cases;
- the same checks in one warm process, the student's code in it.

Those that hang are timed apart: they take what the limits give them. `--flat N` repeats the same submissions
until there are N, and compares what the last quarter of them costs with the first.

    python -m tests.bench.batch [--count N] [--flat N]
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from grader.audit import ALTERNATIVES, mutants
from grader.intake import SubmissionFiles
from tests.bench.memory import tree_pss_mb

ROOT = Path(__file__).parent.parent.parent
HANG = "import time\nwhile True:\n    time.process_time()\n"


def main() -> None:
    """Measure, and print figures and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--flat", type=int, default=0, metavar="N")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work, "class")
        submissions = _class(folder, options.count)
        one = _batch(folder, Path(work, "one"), cores[:1])
        warm = _tree_s(lambda: _in_one_process(submissions, cores[:1]))
        fresh = sum(_fresh_s(each, cores[:1]) for each in submissions)
        two = _batch(folder, Path(work, "two"), cores)
        hanging = Path(work, "hanging")
        (hanging / "hangs").mkdir(parents=True)
        (hanging / "hangs" / "attention.py").write_text(HANG)
        hangs = _batch(hanging, Path(work, "hung"), cores[:1])
        print(f"{len(submissions)} submissions; seconds of CPU for each, in all processes")
        count = len(submissions)
        print(f"  batch, one process      {one.cpu_s / count:6.2f}   wall {one.wall_s / count:.2f}")
        print(f"  batch, two processes    {two.cpu_s / count:6.2f}   wall {two.wall_s / count:.2f}")
        print(f"  one process, unisolated {warm / count:6.2f}")
        print(f"  a fresh pytest each     {fresh / count:6.2f}")
        print(f"fresh pytest / batch: {fresh / one.cpu_s:.2f}")
        print(f"batch / unisolated: {one.cpu_s / warm:.2f}")
        if len(cores) > 1:
            print(f"throughput of two processes / of one: {one.wall_s / two.wall_s:.2f}")
            print(f"memory of the second process (PSS): {two.peak_mb - one.peak_mb:.0f} MB")
        print(f"one that hangs when it is imported: {hangs.cpu_s:.1f} s of CPU, start included")
        if options.flat:
            _flat(submissions, options.flat, Path(work), cores)


class _Cost:
    """Of one run of the command, with its start."""

    def __init__(self, wall_s: float, cpu_s: float, peak_mb: float) -> None:
        self.wall_s, self.cpu_s, self.peak_mb = wall_s, cpu_s, peak_mb


def _class(folder: Path, count: int) -> list[Path]:
    """Half of them right, in other styles, half of them wrong; the same ones every time."""
    right = [path for path in sorted(ALTERNATIVES.iterdir()) if path.is_dir()][: count // 2]
    found = [Path(shutil.copytree(path, folder / f"right {path.name}")) for path in right]
    wrong = mutants()
    for mutant in wrong[:: len(wrong) // (count - len(found))][: count - len(found)]:
        found.append(folder / f"wrong {mutant.part} {mutant.slug}")
        _write(found[-1], mutant.files)
    return found


def _write(folder: Path, files: SubmissionFiles) -> None:
    for name, data in files.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def _batch(folder: Path, out: Path, cores: list[int]) -> _Cost:
    command = [sys.executable, "-m", "grader", "batch", str(folder), "--out", str(out)]
    with _pinned(cores):
        before, started = _children_s(), time.monotonic()
        process = subprocess.Popen([*command, "--jobs", str(len(cores))], cwd=ROOT, stdout=subprocess.DEVNULL)
        with _watched(process.pid) as peaks:
            assert process.wait() == 0
        return _Cost(time.monotonic() - started, _children_s() - before, max(peaks, default=0))


@contextmanager
def _pinned(cores: list[int]) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    yield
    os.sched_setaffinity(0, before)


def _children_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


@contextmanager
def _watched(pid: int) -> Iterator[list[float]]:
    """The memory of a process and all that it started, every now and then; less what it has alone."""
    peaks: list[float] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(2):
            peaks.append(tree_pss_mb(pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    yield peaks
    stop.set()
    watcher.join()


def _tree_s(run: Callable[[], None]) -> float:
    before = _children_s()
    run()
    return _children_s() - before


def _fresh_s(submission: Path, cores: list[int]) -> float:
    command = [sys.executable, "-m", "tests.bench.fresh_pytest", str(submission)]
    with _pinned(cores):
        return _tree_s(lambda: subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL))


def _in_one_process(submissions: list[Path], cores: list[int]) -> None:
    command = [sys.executable, "-m", "tests.bench.unisolated", *map(str, submissions)]
    with _pinned(cores):
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def _flat(submissions: list[Path], count: int, work: Path, cores: list[int]) -> None:
    """Grade them again and again, and see from when the results are what each took."""
    folder, out = work / "many", work / "many-out"
    for number in range(count):
        chosen = submissions[number % len(submissions)]
        shutil.copytree(chosen, folder / f"{number:04} {chosen.name}")
    cost = _batch(folder, out, cores)
    written = sorted(path.stat().st_mtime for path in (out / "results").iterdir())
    gaps = [after - before for before, after in itertools.pairwise(written)]
    quarter = len(gaps) // 4
    first, last = (statistics.mean(part) for part in (gaps[:quarter], gaps[-quarter:]))
    print(f"{count} submissions: {cost.cpu_s / count:.2f} s of CPU each, peak {cost.peak_mb:.0f} MB")
    print(f"a submission in the last quarter / in the first: {last / first:.2f}")


if __name__ == "__main__":
    main()
