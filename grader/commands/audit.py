"""`audit`: the grader graded."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grader.commands.arguments import (
    EXIT_NOT_PASSED,
    EXIT_OK,
    Commands,
    jobs,
    positive,
    tell_progress,
    writable,
)


def register(commands: Commands) -> None:
    """Tell argparse of it."""
    audit = commands.add_parser("audit", help="grade the grader: all known right and wrong submissions")
    audit.add_argument("--json", type=Path, metavar="FILE", help="write the whole matrix there")
    audit.add_argument("--jobs", type=int, metavar="N", help="so many at a time (as many as there are cores)")
    audit.add_argument(
        "--again", type=int, default=1, metavar="N", help="grade every N-th a second time (1: all of them)"
    )
    audit.add_argument(
        "--whole",
        type=int,
        default=1,
        metavar="N",
        help="grade every N-th mutant in all its parts, of the others what they name (1: all)",
    )
    audit.add_argument("--only", action="append", default=[], metavar="NAME", help="only this subject")
    audit.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    if options.json is not None:
        writable(options.json)

    from grader import report
    from grader.audit import audit

    found = audit(
        jobs=jobs(options),
        again=positive("again", options.again),
        whole=positive("whole", options.whole),
        only=options.only,
        tell=tell_progress,
    )
    print(file=sys.stderr)
    for line in found.lines():
        print(line)
    if options.json is not None:
        report.write_atomically(options.json, report.to_json(found.to_json()))
    return EXIT_NOT_PASSED if found.problems else EXIT_OK
