"""How a check is run on its cases."""

from __future__ import annotations

import pytest

from grader.assignment import Assignment
from grader.check import CheckRun, Verdict
from grader.checks.public import test_attention as checks
from grader.client import PartClient
from grader.in_process import InProcessSubmission
from grader.loader import SubmissionModules
from grader.recorded import recorded
from grader.terms import Outcome
from tests.submissions import edited

FORWARD = "        d_head = q.shape[-1]\n"


@pytest.mark.parametrize(("when", "outcome"), [("== 40", None), (">= 40", Outcome.OUT_OF_MEMORY)])
def test_a_lack_of_memory_that_passes_costs_nothing(
    assignment: Assignment, when: str, outcome: Outcome | None
) -> None:
    """A machine may be short of it for a moment: the check is run again, once."""
    count = "import sys; here = sys.modules[__name__]; here.calls = getattr(here, 'calls', 0) + 1"
    code = f"        {count}\n        if here.calls {when}: raise MemoryError\n{FORWARD}"
    found = edited("attention", (FORWARD, code))
    one = InProcessSubmission(SubmissionModules(found.files, found.parts), assignment.classes)
    client = PartClient(assignment.parts["attention"], one)
    run = CheckRun(one, {"attention": client}, recorded())

    verdict = None
    try:
        run.run(checks.test_shapes.check)
    except Verdict as found_wrong:
        verdict = found_wrong.outcome
    one.close()

    assert verdict is outcome
