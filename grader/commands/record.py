"""`record`: draw the cases of families again."""

from __future__ import annotations

import argparse

from grader.commands.arguments import EXIT_OK, Commands
from grader.intake import InputError


def register(commands: Commands) -> None:
    """Tell argparse of it."""
    record = commands.add_parser("record", help="draw the cases of families again")
    record.add_argument("families", nargs="*", metavar="FAMILY", help="which ones; by default all")
    record.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from grader.recorded import CASES_FILE
    from grader.strategies.drawing import families, record

    unknown = sorted(set(options.families) - set(families()))
    if unknown:
        known = ", ".join(families())
        raise InputError(f"FAMILY: must be one of {known}; got {', '.join(unknown)}")
    record(options.families)
    print(f"recorded {CASES_FILE}")
    return EXIT_OK
