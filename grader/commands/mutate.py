"""`mutate`: a tool mutates the reference, and the checks kill what it makes."""

from __future__ import annotations

import argparse

from grader.commands.arguments import EXIT_NOT_PASSED, EXIT_OK, Commands, jobs


def register(commands: Commands) -> None:
    """Tell argparse of it."""
    mutate = commands.add_parser("mutate", help="let a tool mutate the reference, and kill what it makes")
    mutate.add_argument(
        "--jobs", type=int, metavar="N", help="so many at a time (as many as there are cores)"
    )
    mutate.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from grader.mutation import mutate

    found = mutate(jobs=jobs(options))
    print(f"{found.tried} mutants, {len(found.unexplained)} survivors that are not explained")
    for mutation in found.unexplained:
        print(f"  {mutation.part}: {mutation.before}\n  {' ' * len(mutation.part)}  {mutation.after}")
    for mutation in found.killed:
        print(f"  listed as a survivor, but does not survive: {mutation.after}")
    return EXIT_NOT_PASSED if found.unexplained or found.killed else EXIT_OK
