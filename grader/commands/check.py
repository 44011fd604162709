"""`check`: the public checks on a student's own files, in the same process."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grader.commands.arguments import (
    EXIT_GRADER,
    EXIT_INTERRUPTED,
    EXIT_NOT_PASSED,
    EXIT_OK,
    Commands,
    chosen,
)
from grader.intake import InputError


def register(commands: Commands) -> None:
    """Tell argparse of it."""
    check = commands.add_parser("check", help="run the public checks on your own files, in seconds")
    check.add_argument(
        "only", nargs="*", metavar="PART", help="only these parts, or checks: block, block.shapes or 3.1"
    )
    check.add_argument("--path", type=Path, default=Path("starter"), help="where the files are (starter)")
    check.add_argument("--prints", action="store_true", help="show all that your code prints, of every call")
    check.add_argument("--pdb", action="store_true", help="then open the debugger where the first one failed")
    check.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    # Importing torch takes a second or two: nobody shall wonder whether anything happens.
    print(f"Checking {options.path} ...", flush=True)

    from grader.assignment import load_assignment

    assignment = load_assignment()
    checks = chosen(options.only, assignment)
    if checks and all(assignment.checks[check].hidden for check in checks):
        raise InputError(f"a public check must be named, got {', '.join(options.only)}")

    from rich.console import Console

    from grader import home, terminal

    try:
        checked = home.check(assignment, options.path, checks, _tell_part, prints=options.prints)
    except KeyboardInterrupt as interrupt:
        print(" at ".join(["grader: interrupted", *map(str, interrupt.args)]), file=sys.stderr)
        return EXIT_INTERRUPTED
    print()
    whole = all(name in assignment.parts for name in options.only)
    waiting = {name: part.hidden_points for name, part in assignment.parts.items() if whole}
    terminal.show(checked.document, Console(highlight=False), hidden_points=waiting)
    if checked.lines_kept_back:
        print(f"\nYour code printed {checked.lines_kept_back:,} lines; --prints shows them as they come.")
    if checked.document["extra_data"]["grader_error"]:
        for check, trace in checked.document["extra_data"]["grader_errors"].items():
            print(f"\n{check}\n{trace}", file=sys.stderr)
        print("grader: its own error, not yours: send this to course staff, please", file=sys.stderr)
        return EXIT_GRADER
    if options.pdb and not checked.debug():
        print("\nThere is no failure in the code of these parts for the debugger to stop at.")
    passed = all(test["extra_data"]["outcome"] == "passed" for test in checked.document["tests"])
    return EXIT_OK if passed else EXIT_NOT_PASSED


def _tell_part(file: str, score: float, max_score: float) -> None:
    print(f"  {file:<14} {score:g} of {max_score:g} points", flush=True)
