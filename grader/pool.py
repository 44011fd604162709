"""Several submissions at a time, each in one of a few warm grading processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported by the grading processes, after their zygote is forked
    from grader.grading import Grader, Options
    from grader.intake import SubmissionFiles

_grader: Grader | None = None


@dataclass(frozen=True)
class Job:
    """One submission to grade."""

    files: SubmissionFiles
    options: Options


class Pool:
    """A few grading processes, each with its own zygote.

    Args:
        size: how many.
    """

    def __init__(self, size: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._executor = ProcessPoolExecutor(size, mp_context=context, initializer=_start)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_error: object) -> None:
        self._executor.shutdown(cancel_futures=True)

    def grade(self, jobs: Sequence[Job]) -> Iterator[dict[str, Any]]:
        """Grade all, and return the results in the same order, each as soon as it is its turn."""
        return self._executor.map(_grade, jobs)


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start() -> None:
    global _grader
    # The zygote first: nothing of the reference or the checks may be in its memory.
    from grader.sandbox.zygote import Zygote

    zygote = Zygote.start()

    from grader.assignment import load_assignment
    from grader.grading import Grader

    _grader = Grader(load_assignment(), zygote)
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101 - this is a child
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    """End this process when its parent is gone, however that went; the zygote and the workers follow."""
    parent.join()
    os._exit(1)


def _grade(job: Job) -> dict[str, Any]:
    assert _grader is not None  # noqa: S101 - set by the initializer
    return _grader.grade(job.files, job.options).document
