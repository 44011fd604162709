"""The seam between the checks and a student's code: one question, one answer, plain data only.

A check asks through `Submission.call`. Who stands behind it, the sandbox, the student's own process or
the reference, cannot be told from the answer.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import torch

from grader.terms import Outcome, Target, Use

Tensors = Mapping[str, torch.Tensor]


def in_dtype(tensors: Tensors, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """The same tensors, the floating ones among them in `dtype`."""
    return {n: t.to(dtype) if t.is_floating_point() else t for n, t in tensors.items()}


@dataclass(frozen=True)
class Run:
    """One forward.

    Attributes:
        tensors: its tensors by name; for ``gradients``, ``grad.NAME`` is what comes back into the
            output NAME.
        arguments: further keyword arguments.
    """

    tensors: Tensors
    arguments: Mapping[str, bool | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """One question. Nothing is kept between two calls: configuration and weights travel with each.

    Attributes:
        operation: ``load``, ``construct``, ``parameters``, ``forward`` or ``gradients``.
        config: the constructor's arguments by name.
        weights: parameters to load by name; None keeps the student's own initialisation.
        weights_name: equal names mean equal weights, which then need not be sent again; None for none.
        weights_required: answer with `WrongParameters` when `weights` do not fit. Otherwise the
            student's own initialisation, drawn under `seed`, stays.
        runs: the forwards, all on one instance, in this order.
        depth: how many instances are chained, each fed with the output of the one before; their
            weights are named ``0.NAME``, ``1.NAME``, ...
        input_gradients: of ``gradients``: the inputs, too, ask for theirs.
        neighbours: configurations of further instances, built and set to zero after this one; and this
            one has then been called before, in float32, with the weights that it was made with.
        strided: inputs lie in memory as heads do that were split off and transposed.
        busy: of ``gradients``: another forward and its way back come between the forward and its own.
        elsewhere: raise where tensors meet that would be on two devices if module and inputs had been
            moved to another one.
        forgiven: a time-out, which is soon, is held against nobody.
        by_position: hand arguments over by position, as far as they are the first ones, not by name.
    """

    target: Target
    operation: str
    config: Mapping[str, int | bool] = field(default_factory=dict)
    weights: Tensors | None = None
    weights_name: Hashable = None
    weights_required: bool = False
    runs: Sequence[Run] = ()
    training: bool = False
    dtype: torch.dtype = torch.float64
    seed: int = 0
    depth: int = 1
    by_position: bool = False
    input_gradients: bool = True
    neighbours: Sequence[Mapping[str, int | bool]] = ()
    strided: bool = False
    elsewhere: bool = False
    busy: bool = False
    forgiven: bool = False


@dataclass(frozen=True)
class Answer:
    """The tensors of every run, by output name, and what can be said in JSON.

    Of ``forward`` the facts tell whether the call's weights were ``loaded``, and for each run which
    arguments were ``changed`` in place; of ``gradients``, which outputs had a gradient to take: ``heads``.
    """

    runs: list[dict[str, torch.Tensor]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


class Submission(Protocol):
    """A student's code, or the reference, as the checks see it."""

    def call(self, call: Call) -> Answer:
        """Answer, or raise the `SubmissionError` that says why there is no answer."""
        ...

    def begin_check(self) -> None:
        """A new check begins: its own time limit starts."""
        ...

    def forbidden_uses(self) -> list[Use]:
        """The forbidden operators found so far, in the source and at run time."""
        ...

    def close(self) -> None:
        """Give back what the submission holds; it answers nothing afterwards."""
        ...


class SubmissionError(Exception):
    """The student's code gave no answer. The class is the outcome, the message is for the student.

    Attributes:
        where: ``file:line`` in the submission, or an empty string.
    """

    outcome: ClassVar[Outcome]

    def __init__(self, sentence: str, where: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.where = where


class StubReached(SubmissionError):
    """`NotImplementedError` came out of the student's code."""

    outcome = Outcome.NOT_IMPLEMENTED


class PartMissing(SubmissionError):
    """The part's file, or the class that it should define, is not there."""

    outcome = Outcome.MISSING


class NotImportable(SubmissionError):
    """The part's file does not parse, or raises while it is imported."""

    outcome = Outcome.NOT_IMPORTABLE


class Raised(SubmissionError):
    """The student's code raised."""

    outcome = Outcome.RAISED


class TimedOut(SubmissionError):
    """The student's code used up its time."""

    outcome = Outcome.TIMED_OUT


class OutOfMemory(SubmissionError):
    """The student's code asked for more memory than it may have."""

    outcome = Outcome.OUT_OF_MEMORY


class Died(SubmissionError):
    """The worker's process ended, or answered with something that is no answer."""

    outcome = Outcome.DIED


class BadReturn(SubmissionError):
    """What came back is not what the contract returns: no tensor, or one that cannot be read."""

    outcome = Outcome.BAD_RETURN


class WrongParameters(SubmissionError):
    """The weights could not be loaded: names or shapes of the parameters differ."""

    outcome = Outcome.BLOCKED


class OutOfTime(SubmissionError):
    """The whole submission's time is used up; nothing was asked."""

    outcome = Outcome.NOT_RUN


ERRORS: dict[str, type[SubmissionError]] = {
    error.__name__: error
    for error in (
        StubReached,
        PartMissing,
        NotImportable,
        Raised,
        TimedOut,
        OutOfMemory,
        Died,
        BadReturn,
        WrongParameters,
        OutOfTime,
    )
}
FATAL = (TimedOut, Died, OutOfTime)
"""After one of these the worker is gone; the rest of the check is not tried again."""
