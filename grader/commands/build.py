"""`build`: what is handed out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grader.commands.arguments import EXIT_NOT_PASSED, EXIT_OK, Commands, tell_progress, writable_folder


def register(commands: Commands) -> None:
    """Tell argparse of it."""
    build = commands.add_parser("build", help="build what is handed out; refuses where the audit fails")
    build.add_argument("what", choices=["gradescope"])
    build.add_argument("--out", type=Path, metavar="FILE", help="(dist/autograder.zip)")
    build.add_argument("--unaudited", action="store_true", help="to try it out: without the audit before")
    build.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from grader import build
    from grader.pool import usable_cores

    out = options.out or Path("dist", "autograder.zip")
    writable_folder(out.parent)
    if not options.unaudited:
        from grader.audit import audit

        # Every mutant must fail what it names; the solution and all alternatives must score full.
        problems = audit(jobs=usable_cores(), whole=30, again=30, tell=tell_progress).problems
        print(file=sys.stderr)
        if problems:
            print(
                f"grader: nothing is built while the audit fails: {len(problems)} problems", file=sys.stderr
            )
            return EXIT_NOT_PASSED
    build.autograder(out)
    print(f"{out}: upload it as the autograder of the assignment")
    return EXIT_OK
