"""`record`: draw the cases of all families again."""

from __future__ import annotations

import argparse

from grader.commands.arguments import EXIT_OK, Commands


def register(commands: Commands) -> None:
    """Tell argparse of it."""
    record = commands.add_parser("record", help="draw the cases of all families again")
    record.set_defaults(command=_run)


def _run(_options: argparse.Namespace) -> int:
    from grader import recorded, strategies

    strategies.record()
    print(f"recorded {recorded.CASES_FILE}")
    return EXIT_OK
