"""How a check is written and run.

    @on_cases("multi_head", look_at="the causal mask in forward")
    def test_future_perturbation(multi_head, case):
        \"\"\"What stands after position t never changes the output at 0..t.\"\"\"
        ...

The first argument is a part's client. `case` is a case of the family; `reference`, in hidden checks, is
the same part's client over the reference. The docstring is the sentence that a student reads.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from grader.cases import Case
from grader.client import PartClient
from grader.expect import CheckFailure
from grader.submission import (
    FATAL,
    NotImportable,
    Outcome,
    PartMissing,
    StubReached,
    Submission,
    SubmissionError,
    WrongParameters,
)

Body = Callable[..., None]

MAX_ATTEMPTS = 40
"""Cases tried to find the simplest one that fails; only for the message."""


@dataclass(frozen=True)
class Check:
    """What a decorator below knows of a check."""

    body: Body
    family: str | None
    look_at: str

    @cached_property
    def needs(self) -> list[str]:
        """Names of the body's arguments."""
        return list(inspect.signature(self.body).parameters)

    @property
    def sentence(self) -> str:
        """The docstring, on one line."""
        return " ".join((inspect.getdoc(self.body) or "").split())


class Verdict(Exception):
    """A check did not pass: the outcome, and the lines of its message."""

    def __init__(self, outcome: Outcome, lines: Mapping[str, str]) -> None:
        super().__init__(outcome.value)
        self.outcome = outcome
        self.lines = dict(lines)


def on_cases(family: str, *, look_at: str) -> Callable[[Body], Callable[..., None]]:
    """Make a check of a function that takes a part's client and one case of the family.

    Args:
        family: a name in `strategies.FAMILIES`.
        look_at: class, method and idea that a student should look at when it fails.
    """
    return lambda body: _as_test(Check(body, family, look_at))


def once(*, look_at: str) -> Callable[[Body], Callable[..., None]]:
    """Make a check of a function that takes only a part's client."""
    return lambda body: _as_test(Check(body, None, look_at))


def _as_test(check: Check) -> Callable[..., None]:
    def test(check_run: CheckRun) -> None:
        __tracebackhide__ = True
        check_run.run(check)

    test.__name__ = check.body.__name__
    test.__doc__ = check.body.__doc__
    test.__module__ = check.body.__module__
    test.check = check  # type: ignore[attr-defined]
    return test


@dataclass
class CheckRun:
    """Everything that the checks of one submission share.

    Attributes:
        clients: the submission's parts.
        references: the reference's parts; empty where only public checks run.
        cases: the cases that decide, by family.
        simplify: whether a failed check looks for a simpler case, for the message.
        keep_errors: let failures and the student's exceptions through as they are, for a debugger.
    """

    submission: Submission
    clients: Mapping[str, PartClient]
    cases: Mapping[str, Sequence[Case]]
    references: Mapping[str, PartClient] = field(default_factory=dict)
    simplify: bool = True
    keep_errors: bool = False
    _simplest_cases: dict[str, list[Case]] = field(default_factory=dict)

    def run(self, check: Check) -> None:
        """Run one check on every case; the first that fails ends it with a `Verdict`."""
        __tracebackhide__ = True
        self.submission.begin_check()
        for case in self.cases[check.family] if check.family else [None]:
            failure = self._attempt(check, case)
            if failure is not None:
                if case is not None and self.simplify and _outcome(failure) in _SIMPLIFIED:
                    case, failure = self._simplest(check, case, failure)
                if self.keep_errors:
                    raise failure
                raise Verdict(_outcome(failure), self._lines(check, case, failure)) from None

    def _attempt(self, check: Check, case: Case | None) -> Failure | None:
        part = check.needs[0]
        values: dict[str, Any] = {part: self.clients[part], "case": case}
        if part in self.references:
            values["reference"] = self.references[part]
        try:
            check.body(**{name: values[name] for name in check.needs})
        except (CheckFailure, SubmissionError) as failure:
            return failure
        return None

    def _simplest(self, check: Check, case: Case, failure: Failure) -> tuple[Case, Failure]:
        """The smallest case found that fails with the same outcome; the one given if none is smaller."""
        from grader.strategies import FAMILIES, search, size

        assert check.family is not None  # noqa: S101 - there are no cases without a family
        outcome = _outcome(failure)
        failures: dict[Case, Failure] = {case: failure}

        def fails(candidate: Case) -> bool:
            found = self._attempt(check, candidate)
            if isinstance(found, FATAL):
                raise StopIteration
            if found is None or _outcome(found) is not outcome:
                return False
            failures[candidate] = found
            return True

        # What was simplest for another check of the family often is so here, too: the same mistake.
        known = self._simplest_cases.setdefault(check.family, [])
        try:
            shared = any(size(candidate) < size(case) and fails(candidate) for candidate in known)
        except StopIteration:
            return case, failure
        if not shared:
            search(FAMILIES[check.family].any_sizes, fails, MAX_ATTEMPTS)
        simplest = min(failures, key=size)
        if simplest not in known:
            known.append(simplest)
        return simplest, failures[simplest]

    def _lines(self, check: Check, case: Case | None, failure: Failure) -> dict[str, str]:
        given = []
        if case is not None and not isinstance(failure, _WHATEVER_THE_CASE):
            given.append(case.describe())
        if isinstance(failure, CheckFailure):
            given += [failure.note] if failure.note else []
            expected, observed, where = failure.expected, failure.observed, check.look_at
        else:
            expected, observed = check.sentence, failure.sentence
            where = failure.where or check.look_at.partition(",")[0]
        if isinstance(failure, WrongParameters):
            part = check.needs[0]
            where = f"the check {part}.parameters, which blocks this one"
        lines = {"expected": expected, "observed": observed, "look_at": where}
        return ({"given": "; ".join(given)} if given else {}) | lines


_SIMPLIFIED = (Outcome.FAILED, Outcome.RAISED, Outcome.BAD_RETURN)
_WHATEVER_THE_CASE = (StubReached, PartMissing, NotImportable, WrongParameters)

Failure = CheckFailure | SubmissionError


def _outcome(failure: Failure) -> Outcome:
    return failure.outcome if isinstance(failure, SubmissionError) else Outcome.FAILED
