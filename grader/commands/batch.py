"""`batch`: a class, from what the LMS gives to what the gradebook takes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from grader.commands.arguments import (
    EXIT_GRADER,
    EXIT_OK,
    EXIT_REFUSED,
    Commands,
    jobs,
    say,
    writable_folder,
)
from grader.intake import InputError

if TYPE_CHECKING:
    from grader.batch import Batch
    from grader.ingest import Entry
    from grader.marks import Marks
    from grader.progress import Tell

NAMED = 10
"""So many of a kind are named in the terminal; the report has all."""


def register(commands: Commands) -> None:
    """Tell argparse of it."""
    batch = commands.add_parser("batch", help="grade a class: a download from Gradescope, Canvas, Moodle, …")
    batch.add_argument("path", type=Path, metavar="PATH", help="the download, a folder or a zip")
    batch.add_argument("--out", type=Path, metavar="DIR", required=True, help="where everything goes")
    batch.add_argument("--jobs", type=int, metavar="N", help="so many at a time (as many as there are cores)")
    batch.add_argument("--layout", default="", help="whose download it is, if that is not recognised")
    batch.add_argument("--gradebook", type=Path, metavar="FILE", help="an exported gradebook, to be filled")
    batch.add_argument("--column", default="", help="the gradebook's column, if that is not clear")
    batch.add_argument(
        "--scale", action="store_true", help="points in the gradebook as shares of its maximum"
    )
    batch.add_argument(
        "--overrides", type=Path, metavar="FILE", help="points set by hand (DIR/overrides.csv)"
    )
    batch.add_argument("--anonymous", action="store_true", help="a report without names")
    batch.add_argument(
        "--allow-weak-isolation",
        action="store_true",
        help="grade though a layer around the submissions is missing",
    )
    batch.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from grader.assignment import load_assignment
    from grader.batch import Batch, Outputs
    from grader.gradebook import read_gradebook
    from grader.ingest import read_export
    from grader.overrides import read_overrides

    assignment = load_assignment()
    size = jobs(options)
    export = read_export(options.path, assignment.files, options.layout)
    say(f"{options.path}: {len(export.entries)} submissions, layout {export.layout}")
    _outside(options.out, options.path)
    writable_folder(options.out)
    said = options.overrides or options.out / "overrides.csv"
    if options.overrides is not None and not os.path.isfile(said):
        raise InputError(f"--overrides must be a file, got {said} (no such file)")
    overrides = read_overrides(said, assignment, {entry.id for entry in export.entries})
    book = read_gradebook(options.gradebook) if options.gradebook else None
    outputs = Outputs(book, options.column, options.scale, options.anonymous)
    batch = Batch(assignment, export, options.out, overrides, outputs)
    with batch.opened():
        batch.marks()  # a gradebook that does not fit is told before the work, not after
        return _graded(batch, size, options.allow_weak_isolation)


def _outside(out: Path, download: Path) -> None:
    """What comes out would be taken for a submission by the next run."""
    if download.is_dir() and out.resolve().is_relative_to(download.resolve()):
        raise InputError(f"--out must be a folder outside of the download, got {out} in {download}")


def _graded(batch: Batch, size: int, weak_is_allowed: bool) -> int:
    from grader.marks import GRADER_ERROR
    from grader.pool import PoolError

    waiting = batch.waiting()
    known = len(batch.export.entries) - len(waiting)
    if known:
        need = "needs no grading: its result is" if known == 1 else "need no grading: their results are"
        say(f"{known} {need} there, or nothing can be graded")
    try:
        if waiting and not _grade(batch, waiting, min(size, len(waiting)), weak_is_allowed):
            return EXIT_REFUSED
    except KeyboardInterrupt:
        batch.write_scores()
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        raise
    except PoolError as error:
        batch.write_scores()
        print(f"grader: {error}", file=sys.stderr)
        return EXIT_GRADER
    files = [str(path) for path in batch.write_all()]
    if batch.outputs.anonymous:
        files[-1] += " (without names; run again without --anonymous for your own)"
    files += [f"{path} is of an earlier run: give --gradebook to fill it again" for path in batch.outdated()]
    marks = batch.marks()
    _tell_what_stands_out(batch, marks)
    say("\n" + "\n".join(files))
    return EXIT_GRADER if any(mark.status == GRADER_ERROR for mark in marks.marks) else EXIT_OK


def _grade(batch: Batch, waiting: list[Entry], size: int, weak_is_allowed: bool) -> bool:
    """Grade what waits; False where it would run without a layer that it needs."""
    from grader.pool import Pool

    with Pool(size) as pool:
        missing = pool.missing_layers()
        for layer, todo in missing.items():
            print(f"grader: submissions are not held by {layer}: {todo}", file=sys.stderr)
        if missing and not weak_is_allowed:
            print("grader: nothing was graded; see --allow-weak-isolation", file=sys.stderr)
            return False
        with _progress(len(waiting)) as tell:
            batch.run(pool, waiting, tell)
    return True


@contextmanager
def _progress(count: int) -> Iterator[Tell]:
    """A bar where there is a terminal, a line for each submission where not."""
    from grader.progress import bar, lines

    with (bar if sys.stdout.isatty() else lines)(count) as tell:
        yield tell


def _tell_what_stands_out(batch: Batch, marks: Marks) -> None:
    from grader.marks import GRADED
    from grader.scores import counts
    from grader.text import one_line

    told = [f"{count} {status}" for status, count in sorted(counts(marks).items())]
    say("\n" + ", ".join(told))
    lines = [
        f"{mark.entry.id}: {mark.status}; {'; '.join(mark.notes)}"
        for mark in marks.marks
        if mark.status != GRADED and "override" not in mark.document.get("extra_data", {})
    ]
    lines += [f"{path}: taken for nobody's; {why}" for path, why in sorted(marks.unmatched.items())]
    lines += [
        f"{s.name or s.email or s.lms_id or s.sid}: in the gradebook, nothing handed in"
        for s in marks.missing
    ]
    filled = batch.filled()
    if filled is not None:
        lines += [f"{entry}: not in the gradebook's file; {why}" for entry, why in filled.unmatched]
        lines += filled.notes
    if batch.overrides:
        say(f"  points set by hand: {len(batch.overrides)}, see scores.csv")
    for line in lines[:NAMED]:
        say(f"  {one_line(line)}")
    if len(lines) > NAMED:
        say(f"  and {len(lines) - NAMED} more: see the report")
