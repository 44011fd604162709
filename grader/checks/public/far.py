"""What shows only far out: counters of eight bits, tables that end, chunks of hundreds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from grader import expect
from grader.cases import Case
from grader.submission import Raised, TimedOut

FAR = 300
"""Positions of a sequence that is far longer than those of the cases."""


@contextmanager
def far_out(case: Case) -> Iterator[None]:
    """Tell of this case what fails inside. Ask with ``forgiven=True``: who is too slow is not wrong."""
    told = f"further out: {case.describe()}"
    try:
        yield
    except TimedOut:
        return
    except Raised as error:
        observed = f"{error.where}: {error.sentence}"
        raise expect.CheckFailure("the same for longer sequences", observed, told) from error
    except expect.CheckFailure as failure:
        failure.note = told
        raise
