"""Error carried forward: a later part graded with right ones in place of those that it builds on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grader.assignment import Assignment
from grader.client import PartClient
from grader.stand_ins import StandIn, stand_in
from grader.submission import Answer, BadReturn, Call, PartMissing, Submission, SubmissionError
from grader.terms import Target, Use

Make = Callable[[Sequence[StandIn]], Submission]


@dataclass(frozen=True)
class Rung:
    """A part's client with some of the parts before it replaced.

    Attributes:
        replaced: names of the parts that are replaced, those that others build on first.
    """

    replaced: tuple[str, ...]
    submission: Submission
    client: PartClient


def ladders(assignment: Assignment, own: Submission, make: Make) -> dict[str, list[Rung]]:
    """For each part its rungs: one part before it replaced, then two, up to all of them.

    The first rung on which a check passes tells which part is at fault: the last one replaced.

    Args:
        own: the submission with the student's own parts.
        make: makes the same submission with these stand-ins; asked only when a rung is used.
    """
    targets = {name: part.target for name, part in assignment.parts.items()}
    found: dict[str, list[Rung]] = {}
    for name, part in assignment.parts.items():
        before = assignment.before(name)
        found[name] = []
        for end in range(1, len(before) + 1):
            replaced = tuple(before[:end])
            submission = _WithStandIns(own, [targets[one] for one in replaced], make)
            found[name].append(Rung(replaced, submission, PartClient(part, submission, remember=True)))
    return found


class _WithStandIns:
    """A submission that is made when it is first asked: most are never needed."""

    def __init__(self, own: Submission, replaced: Sequence[Target], make: Make) -> None:
        self._own = own
        self._replaced = replaced
        self._make = make
        self._made: Submission | None = None

    def call(self, call: Call) -> Answer:
        """See `Submission.call`."""
        return self._submission().call(call)

    def begin_check(self) -> None:
        """See `Submission.begin_check`."""
        self._submission().begin_check()

    def forbidden_uses(self) -> list[Use]:
        """See `Submission.forbidden_uses`."""
        return [] if self._made is None else self._made.forbidden_uses()

    def close(self) -> None:
        """See `Submission.close`."""
        if self._made is not None:
            self._made.close()

    def _submission(self) -> Submission:
        if self._made is None:
            self._made = self._make([self._stand_in(target) for target in self._replaced])
        return self._made

    def _stand_in(self, target: Target) -> StandIn:
        return stand_in(target, alone=not self._imports(target))

    def _imports(self, target: Target) -> bool:
        """Whether the student's file can be imported, whatever stands in it."""
        try:
            self._own.call(Call(target, "load"))
        except (PartMissing, BadReturn):
            return True
        except SubmissionError:
            return False
        return True
