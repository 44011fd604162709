"""The plain way, to compare with: one pytest process, the student's code in it, Hypothesis generating.

python -m tests.bench.fresh_pytest SUBMISSION
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from grader import grading
from grader.assignment import load_assignment
from grader.cases import Case
from grader.check import Check, CheckRun
from grader.client import PartClient
from grader.in_process import InProcessSubmission
from grader.intake import read_submission
from grader.loader import SubmissionModules
from grader.running import run_pytest
from grader.strategies.drawing import families

CASES = 25


class GeneratedRun(CheckRun):
    """Runs a check on cases that Hypothesis generates there and then."""

    def run(self, check: Check) -> None:
        """Run one check as `@given` would."""
        if check.family is None:
            self._must_pass(check, None)
            return
        kinds = families()[check.family].values()
        strategy = st.sampled_from([cases for cases, count in kinds for _ in range(count)]).flatmap(_itself)

        @settings(
            max_examples=CASES,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def on_every_case(case: Case) -> None:
            self._must_pass(check, case)

        on_every_case()

    def _must_pass(self, check: Check, case: Case | None) -> None:
        failure = self.attempt(check, self.clients[check.part], case)
        if failure is not None:
            raise failure


def _itself(cases: st.SearchStrategy[Case]) -> st.SearchStrategy[Case]:
    return cases


def main() -> None:
    """Run all checks on one submission."""
    torch.set_num_threads(1)
    assignment = load_assignment()
    files = read_submission(Path(sys.argv[1]), assignment.files)
    submission = InProcessSubmission(SubmissionModules(files.files, files.parts))
    reference = grading._reference(assignment)
    parts = assignment.parts
    run = GeneratedRun(
        submission,
        clients={name: PartClient(part, submission) for name, part in parts.items()},
        references={name: PartClient(part, reference) for name, part in parts.items()},
        cases={},
    )
    report = run_pytest(run, list(assignment.checks.values()))
    print(report["summary"])


if __name__ == "__main__":
    main()
