"""How far a batch is: rate, time left, counts by status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from grader.commands.arguments import say
from grader.marks import GRADED, Mark
from grader.scores import total_of
from grader.text import one_line

Tell = Callable[[Mark], None]
"""Is told of each submission as it ends."""


@contextmanager
def lines(count: int) -> Iterator[Tell]:
    """A line for each submission."""
    done = 0

    def tell(mark: Mark) -> None:
        nonlocal done
        done += 1
        say(f"{done}/{count} {_told(mark)}")

    yield tell


@contextmanager
def bar(count: int) -> Iterator[Tell]:
    """A bar at the bottom; only what was not graded stays above it."""
    seen: Counter[str] = Counter()
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[seen]}"),
    )
    with Progress(*columns, console=Console(highlight=False)) as progress:
        task = progress.add_task("", total=count, rate="", seen="")

        def tell(mark: Mark) -> None:
            seen[mark.status] += 1
            if mark.status != GRADED:
                progress.console.print(_told(mark), markup=False)
            speed = progress.tasks[task].speed
            rate = f"{60 * speed:.0f} a minute," if speed else ""
            counts = ", ".join(f"{number} {status}" for status, number in sorted(seen.items()))
            progress.update(task, advance=1, rate=rate, seen=counts)

        yield tell


def _told(mark: Mark) -> str:
    total = total_of(mark)
    points = "" if total is None else f" {total:g}"
    notes = f": {'; '.join(mark.notes)}" if mark.notes and mark.status != GRADED else ""
    return one_line(f"{mark.entry.id}{points} {mark.status}{notes}")
