"""A student's own run: the public checks, in this process, so that prints and the debugger are theirs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from grader.assignment import Assignment
from grader.carry import ladders
from grader.check import CheckRun
from grader.client import PartClient
from grader.grading import run_pytest
from grader.in_process import InProcessSubmission
from grader.intake import read_submission
from grader.loader import SubmissionModules
from grader.report import Run, results, rows_of
from grader.stand_ins import StandIn
from grader.strategies import recorded

CALL_S = 20.0
"""Seconds of wall time for one call; a debugger has no limit."""


def check(
    assignment: Assignment, folder: Path, parts: Sequence[str], pytest_options: Sequence[str] = ()
) -> dict[str, Any]:
    """Run the public checks on a folder and return the result.

    Args:
        parts: names of the parts; empty for all.
        pytest_options: further options for pytest; with ``--pdb`` errors are left as they are.

    Raises:
        InputError: the folder holds no part.
    """
    started = time.monotonic()
    torch.set_num_threads(1)
    files = read_submission(folder, assignment.files)
    debugging = "--pdb" in pytest_options

    def in_process(stand_ins: Sequence[StandIn] = ()) -> InProcessSubmission:
        return InProcessSubmission(
            SubmissionModules(files.files, files.parts, display_root=f"{folder.resolve()}/"),
            assignment.classes,
            stand_ins=stand_ins,
            call_s=0 if debugging else CALL_S,
            keep_errors=debugging,
        )

    submission = in_process()
    checks = [
        entry
        for part in assignment.parts
        for entry in assignment.checks_of(part)
        if not entry.hidden and (not parts or part in parts)
    ]
    run = CheckRun(
        submission,
        clients={
            name: PartClient(part, submission, remember=True) for name, part in assignment.parts.items()
        },
        cases=recorded(),
        paths=files.parts,
        ladders={} if debugging else ladders(assignment, submission, in_process),
        simplify=not debugging,
        keep_errors=debugging,
    )
    report = run_pytest(run, checks, pytest_options)
    uses = [use for use in run.forbidden_uses() if use.part in {c.part for c in checks}]
    return results(
        Run(assignment, rows_of(assignment, report, uses, checks), uses),
        execution_time=time.monotonic() - started,
        extra={"isolation": {"backend": "in_process", "layers": {}, "missing": {}}, "cases": "recorded"},
    )
