"""`build`: what is handed out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grader.commands.arguments import EXIT_NOT_PASSED, EXIT_OK, Commands, tell_progress, writable_folder

_OUT = {"gradescope": Path("dist", "autograder.zip"), "handout": Path("dist", "hw3-handout.zip")}
_TODO = {"gradescope": "upload it as the autograder of the assignment", "handout": "give it to the students"}


def register(commands: Commands) -> None:
    """Tell argparse of it."""
    build = commands.add_parser("build", help="build what is handed out; refuses where the audit fails")
    build.add_argument("what", choices=list(_OUT))
    build.add_argument("--out", type=Path, metavar="FILE", help=f"({', '.join(map(str, _OUT.values()))})")
    build.add_argument("--unaudited", action="store_true", help="to try it out: without the audit before")
    build.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from grader import build

    out = options.out or _OUT[options.what]
    writable_folder(out.parent)
    if not options.unaudited and (problems := _audit()):
        print(f"grader: nothing is built while the audit fails: {problems} problems", file=sys.stderr)
        return EXIT_NOT_PASSED
    {"gradescope": build.autograder, "handout": build.handout}[options.what](out)
    print(f"{out}: {_TODO[options.what]}")
    return EXIT_OK


def _audit() -> int:
    """How many problems there are: wrong submissions that pass, right ones that do not score full."""
    from grader.audit import audit
    from grader.pool import usable_cores

    problems = audit(jobs=usable_cores(), whole=30, again=30, tell=tell_progress).problems
    print(file=sys.stderr)
    return len(problems)
