"""Cases that run abreast find what they would find one after the other, with fewer interruptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from grader.abreast import Answers, ask, first
from grader.submission import Answer, Call, Died, Raised
from grader.terms import Target

TARGET = Target("attention", "Attention", (), (), (), ())


def call(number: int) -> Call:
    """A question that can be told from others."""
    return Call(TARGET, "forward", seed=number)


class Echo:
    """Answers with the number of the question; raises for some, and is gone after others.

    Attributes:
        batches: the numbers of the questions that came together.
        dropped: how many answers nobody has taken.
    """

    def __init__(self, *, raises: Sequence[int] = (), dies: Sequence[int] = ()) -> None:
        self.batches: list[list[int]] = []
        self.dropped = 0
        self._raises = raises
        self._dies = dies

    def answers(self, calls: Sequence[Call]) -> Answers:
        """See `abreast.Asked`."""
        numbers = [call.seed for call in calls]
        self.batches.append(numbers)
        left = len(calls)
        try:
            for number in numbers:
                left -= 1
                if number in self._dies:
                    left = 0
                    yield Died(f"at {number}")
                    return
                yield Raised(f"at {number}") if number in self._raises else Answer(facts={"number": number})
        finally:
            self.dropped += left


def asking(echo: Echo, *numbers: int, finds: object = None) -> Callable[[], object]:
    """A case that asks these questions and then finds something, or nothing."""

    def case() -> object:
        for number in numbers:
            assert ask(echo, call(number)).facts == {"number": number}
        return finds

    return case


def test_questions_travel_together_after_the_first_case() -> None:
    """The first case is alone; of the others, every group's questions are one batch, round by round."""
    echo = Echo()
    assert first([asking(echo, n, 10 + n) for n in range(6)], 3) is None
    assert echo.batches == [[0], [10], [1, 2, 3], [11, 12, 13], [4, 5], [14, 15]]


def test_what_counts_is_the_first_in_order_not_in_time() -> None:
    """A later case that finds something sooner does not win, and what comes after it is not asked on."""
    echo = Echo()
    cases = [
        asking(echo, 0),
        asking(echo, 1, 11, finds="slow"),
        asking(echo, 2, finds="quick"),
        asking(echo, 3, 13),
    ]
    assert first(cases, 3) == "slow"
    assert echo.batches == [[0], [1, 2, 3], [11]]
    assert echo.dropped == 1


def test_cases_after_one_that_found_something_are_not_begun() -> None:
    """What finds something without a question ends its group at once."""
    echo = Echo()
    begun = []
    cases = [asking(echo, 0), lambda: "found", lambda: begun.append(1)]
    assert first(cases, 3) == "found"
    assert begun == []


def test_questions_behind_a_death_are_asked_again() -> None:
    """Where the worker is gone after an answer, those who got none ask its successor."""
    echo = Echo(dies=[2])

    def survives() -> None:
        with pytest.raises(Died, match="at 2"):
            ask(echo, call(2))

    assert first([asking(echo, 0), asking(echo, 1), survives, asking(echo, 3)], 3) is None
    assert echo.batches == [[0], [1, 2, 3], [3]]


def test_an_error_reaches_the_case_that_asked() -> None:
    """One case's error is not another's."""
    echo = Echo(raises=[2])

    def fails() -> str:
        with pytest.raises(Raised, match="at 2") as caught:
            ask(echo, call(2))
        return str(caught.value)

    assert first([asking(echo, 0), asking(echo, 1), fails, asking(echo, 3)], 3) == "at 2"


def test_what_nobody_expected_comes_out_and_all_cases_end() -> None:
    """An error of the check's own is raised; the others, in the middle of a question, are unwound."""
    echo = Echo()
    unwound = []

    def waits() -> None:
        try:
            ask(echo, call(1))
            ask(echo, call(11))
        finally:
            unwound.append("waits")

    def breaks() -> None:
        ask(echo, call(2))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        first([asking(echo, 0), asking(echo, 3, 13), breaks, waits], 3)
    assert unwound == ["waits"]


def test_what_nobody_expected_waits_for_its_turn() -> None:
    """An error in a later case does not hide what an earlier one finds with its second question."""
    echo = Echo()

    def breaks() -> None:
        ask(echo, call(2))
        raise ZeroDivisionError

    assert first([asking(echo, 0), asking(echo, 1, 11, finds="found"), breaks], 3) == "found"


def test_alone_a_question_is_asked_at_once() -> None:
    """Outside of `first` there is nobody to wait for."""
    echo = Echo(raises=[8])
    assert ask(echo, call(7)).facts == {"number": 7}
    with pytest.raises(Raised):
        ask(echo, call(8))
    assert echo.batches == [[7], [8]]
