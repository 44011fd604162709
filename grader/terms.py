"""What is spoken of everywhere, and needs no torch: outcomes, targets, forbidden uses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(str, Enum):
    """What became of a check; the values stand in the JSON."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_IMPLEMENTED = "not_implemented"
    MISSING = "missing"
    NOT_IMPORTABLE = "not_importable"
    RAISED = "raised"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    DIED = "died"
    BAD_RETURN = "bad_return"
    FORBIDDEN = "forbidden"
    BLOCKED = "blocked"
    NOT_RUN = "not_run"
    GRADER_ERROR = "grader_error"


@dataclass(frozen=True)
class Target:
    """Which class of the submission is meant, and how it is called.

    Attributes:
        config: names of the constructor's arguments, in order.
        inputs: names of the tensors that `forward` must be given, in order.
        options: names of its further arguments, in order.
        outputs: names of what it returns, in order.
    """

    part: str
    class_name: str
    config: tuple[str, ...]
    inputs: tuple[str, ...]
    options: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, order=True)
class Use:
    """A forbidden operator in the student's code: who is charged, where it stands, what it is."""

    part: str
    file: str
    line: int
    operator: str
