"""Several submissions at a time: whoever is killed meanwhile, every result is what it would have been."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grader import pool as pools
from grader.grading import Options
from grader.intake import SubmissionFiles
from grader.pool import Job, Pool, PoolError
from tests.conftest import Grade
from tests.submissions import edited, reference, starter, submission

ATTENTION = Options(("attention",))


class Deadly(dict):
    """Files over which the grading process dies, so often as there are marks for it in a folder."""

    def __init__(self, folder: Path, deaths: int) -> None:
        super().__init__({name: text.encode() for name, text in reference().items()})
        self.folder = folder
        for number in range(deaths):
            (folder / f"death-{number}").touch()

    def __reduce__(self) -> Any:
        return Deadly, (self.folder, 0)

    def items(self) -> Any:
        """Asked for by the grader; here it ends."""
        for mark in sorted(self.folder.glob("death-*")):
            mark.unlink()
            os._exit(9)
        return super().items()


class Broken(dict):
    """Files that make the grader raise."""

    def __reduce__(self) -> Any:
        return Broken, ()

    def items(self) -> Any:
        """Asked for by the grader."""
        raise RuntimeError("the grader's own mistake")


def without_time(document: Any) -> Any:
    """A result, timings aside."""
    return document | {"execution_time": 0}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """Two grading processes."""
    with Pool(2) as started:
        yield started


@pytest.fixture(scope="module")
def files() -> dict[str, SubmissionFiles]:
    """A few submissions, right and wrong."""
    return {
        "right": submission(reference()),
        "starter": starter(),
        "wrong": edited("attention", ("softmax(scores, dim=-1)", "softmax(scores, dim=-2)")),
        "again": submission(reference()),
    }


@pytest.fixture(scope="module")
def expected(files: dict[str, SubmissionFiles], grade: Grade) -> dict[str, Any]:
    """What one process makes of each."""
    return {name: without_time(grade(each, "attention")) for name, each in files.items()}


def test_as_one_after_the_other(
    pool: Pool, files: dict[str, SubmissionFiles], expected: dict[str, Any]
) -> None:
    """In order, and the same bytes."""
    found = pool.grade([Job(each, ATTENTION) for each in files.values()])
    assert list(map(without_time, found)) == list(expected.values())


def children(pid: int) -> list[int]:
    """Of a process, as the system knows them."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def grading_process(pool: Pool) -> int:
    """One that is busy."""
    return next(p._process.pid for p in pool._processes if p.busy_with)


def zygote(pool: Pool) -> int:
    """Of a busy one."""
    return children(grading_process(pool))[0]


def worker(pool: Pool) -> int:
    """That runs a student's code at this moment."""
    return children(zygote(pool))[0]


@pytest.mark.parametrize("victim", [grading_process, zygote, worker])
def test_whoever_is_killed(
    pool: Pool, files: dict[str, SubmissionFiles], expected: dict[str, Any], victim: Callable[[Pool], int]
) -> None:
    """From outside, in the middle of its work; the results tell nothing of it."""
    killed = []

    def kill() -> None:
        patience = time.monotonic() + 60
        while not killed and time.monotonic() < patience:
            try:
                pid = victim(pool)
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            except (StopIteration, IndexError, OSError):
                time.sleep(0.01)

    pool.missing_layers()
    killer = threading.Thread(target=kill)
    killer.start()
    found = {
        done.key: done for done in pool.each((name, Job(each, ATTENTION)) for name, each in files.items())
    }
    killer.join()
    assert killed
    assert {name: without_time(done.document) for name, done in found.items()} == expected


def test_over_whom_it_dies_once(pool: Pool, tmp_path: Path, expected: dict[str, Any]) -> None:
    """It is replaced, and the submission graded."""
    right = submission(reference())
    deadly = SubmissionFiles(Deadly(tmp_path, 1), right.parts, {})
    (done,) = pool.each([("deadly", Job(deadly, ATTENTION))])
    assert done.document is not None
    assert done.document["score"] == expected["right"]["score"]


def test_over_whom_it_dies_again(
    pool: Pool, tmp_path: Path, files: dict[str, SubmissionFiles], expected: dict[str, Any]
) -> None:
    """That one has no result, and how it ended is told; the others are graded."""
    deadly = SubmissionFiles(Deadly(tmp_path, 5), files["right"].parts, {})
    jobs = {"deadly": deadly, **files}
    found = {
        done.key: done for done in pool.each((name, Job(each, ATTENTION)) for name, each in jobs.items())
    }
    assert found["deadly"].document is None
    assert found["deadly"].trouble == "the grading process ended over it: exit code 9"
    assert len(list(tmp_path.glob("death-*"))) == 5 - pools.TRIES
    assert {n: without_time(found[n].document) for n in files} == expected


def test_over_whom_the_grader_fails(pool: Pool) -> None:
    """The trace is told; in a run that needs every result, it is an error."""
    broken = SubmissionFiles(Broken(), {}, {})
    (done,) = pool.each([("broken", Job(broken))])
    assert done.document is None
    assert done.trouble.endswith("RuntimeError: the grader's own mistake\n")
    with pytest.raises(PoolError, match="the grader's own mistake"):
        list(pool.grade([Job(broken)]))


def test_where_none_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told, and not tried for ever."""
    monkeypatch.setattr(pools, "_serve", os._exit)
    with Pool(1) as broken, pytest.raises(PoolError, match="no grading process starts"):
        broken.missing_layers()


def test_nothing_is_left(files: dict[str, SubmissionFiles]) -> None:
    """When it is closed in the middle of its work, zygotes and workers end, too."""
    with Pool(1) as started:
        grading = started.each((name, Job(each)) for name, each in files.items())
        next(grading)
        grading_pid = started._processes[0]._process.pid
        pids = [grading_pid, *children(grading_pid)]
        assert len(pids) > 1
        grading.close()
    patience = time.monotonic() + 20
    while any(map(_runs, pids)) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not any(map(_runs, pids))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
