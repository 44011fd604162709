"""`gradescope`: what Gradescope runs in its container."""

from __future__ import annotations

import argparse
from pathlib import Path

from grader.commands.arguments import Commands


def register(commands: Commands) -> None:
    """Tell argparse of it."""
    gradescope = commands.add_parser("gradescope", help="grade as Gradescope asks for it, in its container")
    gradescope.add_argument("--root", type=Path, default=Path("/autograder"), help="(/autograder)")
    gradescope.set_defaults(command=_run)


def _run(options: argparse.Namespace) -> int:
    from grader import gradescope
    from grader.assignment import load_assignment

    return gradescope.run(options.root, load_assignment().gradescope.deadline_s)
