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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any

from grader.carry import Rung
from grader.cases import Case
from grader.client import PartClient
from grader.expect import CheckFailure
from grader.simplest import simpler, size
from grader.submission import (
    FATAL,
    Died,
    NotImportable,
    OutOfMemory,
    PartMissing,
    StubReached,
    Submission,
    SubmissionError,
    TimedOut,
    WrongParameters,
)
from grader.terms import Outcome, Use

Body = Callable[..., None]

PATIENCE = 2
"""Checks that may hang with the same stand-ins before they are not tried any more."""


@dataclass(frozen=True)
class Check:
    """What a decorator below knows of a check.

    Attributes:
        own_parts: it is about the student's own parts together: no stand-in saves it.
    """

    body: Body
    family: str | None
    look_at: str
    own_parts: bool = False

    @property
    def part(self) -> str:
        """The part that it is a check of: the name of the body's first argument."""
        return self.needs[0]

    @cached_property
    def needs(self) -> list[str]:
        """Names of the body's arguments."""
        return list(inspect.signature(self.body).parameters)

    @property
    def id(self) -> str:
        """`PART.NAME`, as in `assignment.toml`."""
        return f"{self.part}.{self.body.__name__.removeprefix('test_')}"

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


def on_cases(family: str, *, look_at: str, own_parts: bool = False) -> Callable[[Body], Callable[..., None]]:
    """Make a check of a function that takes a part's client and one case of the family.

    Args:
        family: the name of one in `strategies/`.
        look_at: class, method and idea that a student should look at when it fails.
        own_parts: it is about the student's own parts together; a wrong part before this one counts.
    """
    return lambda body: _as_test(Check(body, family, look_at, own_parts))


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


Failure = CheckFailure | SubmissionError


@dataclass(frozen=True)
class Found:
    """How a check failed: on which client and case, and with what."""

    check: Check
    client: PartClient
    case: Case | None
    failure: Failure


@dataclass(frozen=True)
class Carried:
    """A failure that is another part's: which part is at fault, and what came of the check with it."""

    at_fault: str
    outcome: Outcome


@dataclass
class CheckRun:
    """Everything that the checks of one submission share.

    Attributes:
        clients: the submission's parts.
        ladders: for each part its clients with stand-ins for the parts before it.
        references: the reference's parts; empty where only public checks run.
        cases: the cases that decide, by family.
        paths: the file of each part that was found.
        simplify: whether a failed check looks for a simpler case, for the message.
        abreast: how many cases of a check are run side by side.
        keep_errors: let failures and the student's exceptions through as they are, for a debugger.
        failures: how the checks failed that did so by their own part's fault, by id.
        carried: what the last check that ran owes to a wrong part before its own; None if nothing.
    """

    submission: Submission
    clients: Mapping[str, PartClient]
    cases: Mapping[str, Sequence[Case]]
    paths: Mapping[str, str] = field(default_factory=dict)
    references: Mapping[str, PartClient] = field(default_factory=dict)
    ladders: Mapping[str, Sequence[Rung]] = field(default_factory=dict)
    simplify: bool = True
    abreast: int = 1
    keep_errors: bool = False
    carried: Carried | None = None
    failures: dict[str, Found] = field(default_factory=dict)
    _shown: defaultdict[str, dict[Case, None]] = field(default_factory=lambda: defaultdict(dict))
    _hangs: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)

    def run(self, check: Check) -> None:
        """Run one check on every case; the first that fails ends it with a `Verdict`.

        What fails with the student's own earlier parts is run again with stand-ins for them, and
        passes if it does so there.
        """
        __tracebackhide__ = True
        self.carried = None
        found = self._first_failure(check, self.submission, self.clients[check.part])
        if found is not None and isinstance(found.failure, _OF_THE_MOMENT):
            found = self._first_failure(check, self.submission, self.clients[check.part])
        if found is None:
            return
        at_fault, found = self._with_stand_ins(check, found)
        if at_fault is not None:
            self.carried = Carried(at_fault, _outcome(found.failure))
            if not check.own_parts:
                return
        if self.simplify and found.case is not None and _outcome(found.failure) in _SIMPLIFIED:
            found = self._simplest(check, found)
        if at_fault is None:
            self.failures[check.id] = found
        if self.keep_errors:
            raise found.failure
        raise Verdict(_outcome(found.failure), self._lines(check, found.case, found.failure)) from None

    def forbidden_uses(self) -> list[Use]:
        """The forbidden operators found so far, whoever stood in for whom."""
        found = dict.fromkeys(use for one in self._submissions() for use in one.forbidden_uses())
        return sorted(found)

    def close(self) -> None:
        """End the submission, in all the ways that it was run."""
        for one in self._submissions():
            one.close()

    def _submissions(self) -> list[Submission]:
        return [self.submission, *(rung.submission for rungs in self.ladders.values() for rung in rungs)]

    def _first_failure(self, check: Check, submission: Submission, client: PartClient) -> Found | None:
        """How the first case fails, if one does; all of them with the client's inputs of one dtype."""
        dtype = client.dtype
        found = self._first_found(check, submission, client)
        return found if client.dtype is dtype else self._first_found(check, submission, client)

    def _first_found(self, check: Check, submission: Submission, client: PartClient) -> Found | None:
        submission.begin_check()
        cases = self.cases[check.family] if check.family else [None]
        return self._first_of(partial(self._found, check, client, case) for case in cases)

    def _first_of(self, attempts: Iterable[Callable[[], Found | None]]) -> Found | None:
        """What the first of them that finds something has found; some of them abreast."""
        if self.abreast > 1:
            from grader.abreast import first

            return first(attempts, self.abreast)
        return next((found for attempt in attempts if (found := attempt()) is not None), None)

    def _found(self, check: Check, client: PartClient, case: Case | None) -> Found | None:
        failure = self.attempt(check, client, case)
        return None if failure is None else Found(check, client, case, failure)

    def _with_stand_ins(self, check: Check, own: Found) -> tuple[str | None, Found]:
        """Name the earlier part without which the check passes, if there is one, and what to report."""
        if isinstance(own.failure, StubReached) and self._is_own(check, own.failure):
            return None, own
        found = own
        for rung in self.ladders.get(check.part, ()):
            if self._hangs[check.part, rung.replaced] >= PATIENCE:
                continue  # the part that hangs is still among the student's own
            again = self._first_failure(check, rung.submission, rung.client)
            if again is None:
                return rung.replaced[-1], own
            self._hangs[check.part, rung.replaced] += isinstance(again.failure, TimedOut)
            found = again
        # What fails with right parts before it is this part's own mistake, and is told without theirs;
        # unless only the stand-in is called in a way that it does not know.
        mended = isinstance(found.failure, CheckFailure) or not isinstance(own.failure, CheckFailure)
        return None, found if mended and not isinstance(found.failure, FATAL) else own

    def _is_own(self, check: Check, error: SubmissionError) -> bool:
        path = self.paths.get(check.part, self.clients[check.part].part.file)
        return error.where == path or error.where.startswith(f"{path}:")

    def attempt(self, check: Check, client: PartClient, case: Case | None) -> Failure | None:
        """Run a check on one client and case, and return how it fails, if it does."""
        values: dict[str, Any] = {check.part: client, "case": case}
        if check.part in self.references:
            values["reference"] = self.references[check.part]
        try:
            check.body(**{name: values[name] for name in check.needs})
        except (CheckFailure, SubmissionError) as failure:
            return failure
        return None

    def _simplest(self, check: Check, found: Found) -> Found:
        """The same failure on the first simpler case that has it, if there is one."""
        assert check.family is not None  # noqa: S101 - one comes with the other
        assert found.case is not None  # noqa: S101

        def tried(case: Case) -> Found | None:
            again = self._found(check, found.client, case)
            if again is None or isinstance(again.failure, FATAL):
                return again
            return again if _outcome(again.failure) is _outcome(found.failure) else None

        # What shows the mistake in one check of a family often does so in the others, too.
        shown = [case for case in self._shown[check.family] if size(case) < size(found.case)]
        cases = dict.fromkeys(chain(shown, simpler(found.case, self.cases[check.family])))
        again = self._first_of(partial(tried, case) for case in cases)
        if again is None or again.case is None or isinstance(again.failure, FATAL):
            return found
        self._shown[check.family] = dict.fromkeys([again.case, *self._shown[check.family]])
        return again

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
            where = f"the check {check.part}.parameters, which blocks this one"
        lines = {"expected": expected, "observed": observed, "look_at": where}
        if isinstance(failure, CheckFailure) and failure.grid:
            lines["grid"] = failure.grid
        return ({"given": "; ".join(given)} if given else {}) | lines


_OF_THE_MOMENT = (OutOfMemory, Died)
"""What a machine that is short of memory does to right code, too: it is tried once more."""

_SIMPLIFIED = (Outcome.FAILED, Outcome.RAISED, Outcome.BAD_RETURN)
_WHATEVER_THE_CASE = (StubReached, PartMissing, NotImportable, WrongParameters)


def _outcome(failure: Failure) -> Outcome:
    return failure.outcome if isinstance(failure, SubmissionError) else Outcome.FAILED
