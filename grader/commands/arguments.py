"""What several commands ask of their arguments."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grader.intake import InputError

if TYPE_CHECKING:
    from grader.assignment import Assignment

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = object

EXIT_OK, EXIT_NOT_PASSED, EXIT_INPUT, EXIT_GRADER, EXIT_REFUSED, EXIT_INTERRUPTED = 0, 1, 2, 3, 4, 130


def jobs(options: argparse.Namespace) -> int:
    """How many at a time: as asked for, or as many as there are cores."""
    from grader.pool import usable_cores

    return usable_cores() if options.jobs is None else positive("jobs", options.jobs)


def positive(name: str, value: int) -> int:
    """Refuse what is less than one."""
    if value < 1:
        raise InputError(f"--{name} must be at least 1, got {value}")
    return value


def chosen(given: Sequence[str], assignment: Assignment) -> list[str]:
    """The ids of the checks that are asked for, by part, id or number; none if nothing is.

    Raises:
        InputError: there is no such part or check.
    """
    found: dict[str, None] = {}
    for name in given:
        check_id = assignment.by_number.get(name, name)
        if name in assignment.parts:
            found |= dict.fromkeys(check.id for check in assignment.checks_of(name))
        elif check_id in assignment.checks:
            found[check_id] = None
        else:
            parts = ", ".join(assignment.parts)
            raise InputError(f"a part must be one of {parts}, a check is named by id or number, got {name}")
    return list(found)


def writable_folder(folder: Path) -> None:
    """Make a folder, or refuse it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder must be writable, got {folder} ({error.strerror})") from error


def writable(path: Path) -> None:
    """Refuse an output that cannot be written before any work is done for it."""
    folder = path.parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"--json must be a file in a folder that can be written, got {path}")


def say(text: str) -> None:
    """Print a line; where nobody reads any more, the work goes on."""
    try:
        print(text, flush=True)
    except OSError:
        nobody_reads()


def nobody_reads() -> None:
    """Let what is still printed go nowhere, also at the very end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell_progress(done: int, all_of_them: int, problems: Sequence[str]) -> None:
    """Write over the line with how far it is; problems stay."""
    for problem in problems:
        print(f"\r{problem}", file=sys.stderr)
    print(f"\r{done} of {all_of_them}", end="", file=sys.stderr, flush=True)
