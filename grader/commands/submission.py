"""`submission`: the zip to hand in, of files that the grader can import."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grader.commands.arguments import EXIT_INPUT, EXIT_OK, Commands
from grader.intake import InputError
from grader.text import one_line


def register(commands: Commands) -> None:
    """Tell argparse of it."""
    submission = commands.add_parser("submission", help="write the zip to hand in")
    submission.add_argument("--path", type=Path, default=Path("starter"), help="your files (starter)")
    submission.add_argument(
        "--out", type=Path, default=Path("submission.zip"), metavar="FILE", help="(submission.zip)"
    )
    submission.add_argument(
        "--anyway", action="store_true", help="write it though a file is missing or does not import"
    )
    submission.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    print(f"Looking at {options.path} ...", flush=True)

    from grader.assignment import load_assignment
    from grader.hand_in import look_at
    from grader.zips import write_zip

    found = look_at(load_assignment(), options.path)
    for line in [*found.troubles, *found.warnings]:
        print(one_line(line, 1000), file=sys.stderr)
    if found.troubles and not options.anyway:
        print("Nothing was written. To hand it in as it is, add --anyway.", file=sys.stderr)
        return EXIT_INPUT
    try:
        write_zip(options.out, found.files.files)
    except OSError as error:
        raise InputError(f"--out must be a file that can be written, got {options.out}") from error
    print(f"{options.out} holds {', '.join(map(one_line, found.files.files))}. Upload it as it is.")
    return EXIT_OK
