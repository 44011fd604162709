"""`grade`: one submission, every check, in a sandbox."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grader.commands.arguments import EXIT_GRADER, EXIT_OK, Commands, chosen, writable
from grader.intake import InputError, read_submission


def register(commands: Commands) -> None:
    """Tell argparse of it."""
    grade = commands.add_parser("grade", help="grade one submission, every check, in a sandbox")
    grade.add_argument("path", type=Path, metavar="PATH", help="a folder or a zip")
    grade.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    grade.add_argument(
        "--part", action="append", default=[], help="only this part, or this check; again for more"
    )
    grade.add_argument("--seed", type=int, metavar="N", help="draw the cases afresh, for audits")
    grade.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    if not options.path.exists():
        raise InputError(f"the submission must be a folder or a zip file, got {options.path} (no such path)")
    if options.json is not None:
        writable(options.json)

    # The zygote is forked before anything is read that a submission must not find in its memory.
    from grader.sandbox.zygote import Zygote

    zygote = Zygote.start()
    try:
        from grader.assignment import load_assignment

        assignment = load_assignment()
        checks = chosen(options.part, assignment)
        files = read_submission(options.path, assignment.files)

        from rich.console import Console

        from grader import report, terminal
        from grader.grading import Grader, Options

        graded = Grader(assignment, zygote).grade(files, Options(seed=options.seed, checks=checks))
    finally:
        zygote.close()
    if options.json is not None:
        report.write_atomically(options.json, report.to_json(graded.document))
    console = Console(highlight=False)
    terminal.show(graded.document, console)
    terminal.show_printed(graded.printed, console)
    if options.json is not None:
        console.print(f"\nThe result is in {options.json}.", style="dim")
    for layer, todo in graded.document["extra_data"]["isolation"]["missing"].items():
        print(f"grader: the submission was not held by {layer}: {todo}", file=sys.stderr)
    if graded.document["extra_data"]["grader_error"]:
        print("grader: a check failed by the grader's own fault; see grader_errors", file=sys.stderr)
        return EXIT_GRADER
    return EXIT_OK
