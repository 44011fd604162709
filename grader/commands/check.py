"""`check`: the public checks on a student's own files, in the same process."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grader.commands.arguments import EXIT_GRADER, EXIT_NOT_PASSED, EXIT_OK, Commands, known_parts


def register(commands: Commands) -> None:
    """Tell argparse of it."""
    check = commands.add_parser("check", help="run the public checks on your own files, in seconds")
    check.add_argument("part", nargs="*", metavar="PART", help="only these parts")
    check.add_argument("--path", type=Path, default=Path("starter"), help="where the files are (starter)")
    check.add_argument("--pdb", action="store_true", help="stop in the debugger where it fails")
    check.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from grader.assignment import load_assignment

    assignment = load_assignment()
    known_parts(options.part, list(assignment.parts))

    from rich.console import Console

    from grader import home, terminal

    document = home.check(assignment, options.path, options.part, ["--pdb"] if options.pdb else [])
    parts = options.part or list(assignment.parts)
    waiting = sum(c.points for part in parts for c in assignment.checks_of(part) if c.hidden)
    terminal.show(document, Console(highlight=False), hidden_points=waiting)
    if document["extra_data"]["grader_error"]:
        for check, trace in document["extra_data"]["grader_errors"].items():
            print(f"\n{check}\n{trace}", file=sys.stderr)
        return EXIT_GRADER
    passed = all(test["extra_data"]["outcome"] == "passed" for test in document["tests"])
    return EXIT_OK if passed else EXIT_NOT_PASSED
