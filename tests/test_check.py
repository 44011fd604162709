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
from grader.submission import Answer, Call, WrongParameters
from grader.terms import Outcome
from tests.submissions import edited, reference, submission

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


_RENAMED = {name: source.replace("self.proj", "self.out") for name, source in reference().items()}


class _Counting(InProcessSubmission):
    calls = 0

    def call(self, call: Call) -> Answer:
        self.calls += 1
        return super().call(call)


@pytest.mark.parametrize("fits", [True, False])
def test_what_two_checks_ask_alike_is_asked_once(assignment: Assignment, fits: bool) -> None:
    """An answer without the case's weights is none to a question that needs them."""
    found = submission(reference() if fits else _RENAMED)
    one = _Counting(SubmissionModules(found.files, found.parts), assignment.classes)
    client = PartClient(assignment.parts["multi_head"], one, remember=True)
    case = recorded()["multi_head"][-1]
    inputs = {"x": case.inputs["x"]}
    first = client.forward(case, **inputs)
    assert client.forward(case, **inputs) is first
    if fits:
        assert client.forward(case, **inputs, weights=case.weights) is first
    else:
        with pytest.raises(WrongParameters):
            client.forward(case, **inputs, weights=case.weights)
    assert one.calls == 1 + (not fits)
    one.close()


@pytest.mark.parametrize(
    ("code", "which"),
    [
        ("q = q * 2 if self.training else q", "train mode"),
        ("q = q * self.__dict__.setdefault('first', float(q.sum()))", "of another instance"),
    ],
    ids=["mode", "past"],
)
def test_what_makes_a_second_instance_differ_is_told(assignment: Assignment, code: str, which: str) -> None:
    """The mode if it alone does; otherwise what was called and made before."""
    found = edited("attention", (FORWARD, f"        {code}\n{FORWARD}"))
    one = InProcessSubmission(SubmissionModules(found.files, found.parts), assignment.classes)
    client = PartClient(assignment.parts["attention"], one)
    run = CheckRun(one, {"attention": client}, recorded())

    with pytest.raises(Verdict):
        run.run(checks.test_repeatable.check)
    one.close()

    assert which in run.failures["attention.repeatable"].failure.observed
