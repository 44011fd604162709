"""Run a check on several cases abreast, so that their questions travel in one batch.

A check is written as if it were alone: it asks, gets its answer, goes on. Here each case has a stack of
its own, a greenlet: where one asks, the next one starts, and when all of them wait, all questions are
sent. A worker that shares a core with the grader is then woken once for many questions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import chain, islice, repeat
from typing import Generic, Protocol, TypeVar

from greenlet import getcurrent, greenlet

from grader.submission import Answer, Call, SubmissionError

Found = TypeVar("Found")
Answers = Generator[Answer | SubmissionError, None, None]


class Asked(Protocol):
    """Who answers several questions at once."""

    def answers(self, calls: Sequence[Call]) -> Answers:
        """Answer in order, one at least; those after the last answer must be asked again."""
        ...


def ask(asked: Asked, call: Call) -> Answer:
    """Ask one question: with those of the other cases inside of `first`, at once elsewhere.

    Raises:
        SubmissionError: there is no answer.
    """
    here = getcurrent()
    if isinstance(here, _Case):
        answer = here.wait_for_answer(asked, call)
    else:
        with contextlib.closing(asked.answers([call])) as answers:
            answer = next(answers)
    if isinstance(answer, SubmissionError):
        raise answer
    return answer


def first(cases: Iterable[Callable[[], Found | None]], width: int) -> Found | None:
    """Return what the first of the cases that finds something has found.

    The very first runs alone, since wrong code mostly fails in it; then so many as `width` at a time.
    """
    left = iter(cases)
    for size in chain([1], repeat(width)):
        group = list(islice(left, size))
        if not group:
            return None
        found = _first_of_group(group)
        if found is not None:
            return found
    return None


def _first_of_group(group: Sequence[Callable[[], Found | None]]) -> Found | None:
    running: list[_Case[Found]] = []
    try:
        for body in group:
            running.append(_Case(body))
            running[-1].resume()
            if running[-1].decides:
                break
        while waiting := [case for case in running if not case.dead]:
            asked = waiting[0].asked
            batch = [case for case in waiting if case.asked is asked]
            with contextlib.closing(asked.answers([case.call for case in batch])) as answers:
                for case, answer in zip(batch, answers, strict=False):
                    case.resume(answer)
                    if case.decides:  # what comes after it decides nothing any more
                        end = running.index(case) + 1
                        _end(running[end:])
                        del running[end:]
                        break
        return running[-1].outcome()
    finally:
        _end(running)


def _end(cases: Iterable[_Case[Found]]) -> None:
    for case in cases:
        if not case.dead:
            case.throw()


class _Case(greenlet, Generic[Found]):
    """One case on a stack of its own."""

    asked: Asked
    call: Call

    def __init__(self, body: Callable[[], Found | None]) -> None:
        super().__init__()
        self._found: Found | None = None
        self._error: Exception | None = None
        self._body = body

    def run(self) -> None:
        try:
            self._found = self._body()
        except Exception as error:
            self._error = error  # for its turn: a case before it may have found something

    @property
    def decides(self) -> bool:
        """Whether no case after it counts."""
        return self._found is not None or self._error is not None

    def outcome(self) -> Found | None:
        """What it has found, once it has ended."""
        if self._error is not None:
            raise self._error
        return self._found

    def resume(self, answer: Answer | SubmissionError | None = None) -> None:
        """Go on with the answer, up to the next question or the end."""
        self.switch(*([] if answer is None else [answer]))

    def wait_for_answer(self, asked: Asked, call: Call) -> Answer | SubmissionError:
        """Leave a question and come back with its answer; only on this very stack."""
        self.asked, self.call = asked, call
        assert self.parent is not None  # noqa: S101 - only the main stack has none
        answer: Answer | SubmissionError = self.parent.switch()
        return answer
