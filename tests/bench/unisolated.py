"""The same checks on the same cases in one warm process, the students' code in it: no isolation, no messages.

python -m tests.bench.unisolated SUBMISSION...
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from grader import grading
from grader.assignment import load_assignment
from grader.check import CheckRun
from grader.client import PartClient
from grader.in_process import InProcessSubmission
from grader.intake import read_submission
from grader.loader import SubmissionModules
from grader.memo import Memo
from grader.recorded import recorded
from grader.running import run_pytest


def main() -> None:
    """Run all checks on each."""
    torch.set_num_threads(1)
    assignment = load_assignment()
    parts = assignment.parts
    reference = Memo(grading._reference(assignment))
    for path in sys.argv[1:]:
        files = read_submission(Path(path), assignment.files)
        submission = InProcessSubmission(SubmissionModules(files.files, files.parts))
        run = CheckRun(
            submission,
            clients={name: PartClient(part, submission, remember=True) for name, part in parts.items()},
            references={name: PartClient(part, reference) for name, part in parts.items()},
            cases=recorded(),
            simplify=False,
        )
        report = run_pytest(run, list(assignment.checks.values()))
        print(path, report["summary"])


if __name__ == "__main__":
    main()
