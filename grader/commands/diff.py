"""`diff`: whose score changed between two runs, and why."""

from __future__ import annotations

import argparse
from pathlib import Path

from grader.commands.arguments import EXIT_OK, Commands


def register(commands: Commands) -> None:
    """Tell argparse of it."""
    diff = commands.add_parser(
        "diff", help="compare two runs: whose score changed, because of which checks; overrides aside"
    )
    diff.add_argument("old", type=Path, metavar="OLD", help="what `batch` left in its folder, or one result")
    diff.add_argument("new", type=Path, metavar="NEW")
    diff.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from grader.compare import read_both, told

    for line in told(*read_both(options.old, options.new)):
        print(line)
    return EXIT_OK
