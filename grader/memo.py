"""Remember the reference's answers, so that a class of submissions asks for each only once."""

from __future__ import annotations

import hashlib
import json

from grader.sandbox.protocol import pack_call
from grader.submission import Answer, Call, Submission, SubmissionError
from grader.terms import Use
from grader.wire import tensor_bytes


class ReferenceFailed(Exception):
    """The reference gave no answer: the grader's own fault, whatever the submission is like."""


class Memo:
    """A submission that answers a call that it has answered before from memory.

    Right for code that we know to be a function of its arguments: the reference, never a student's.
    """

    def __init__(self, submission: Submission) -> None:
        self._submission = submission
        self._answers: dict[bytes, Answer] = {}

    def call(self, call: Call) -> Answer:
        """See `Submission.call`."""
        key = _key(call)
        if key not in self._answers:
            try:
                self._answers[key] = self._submission.call(call)
            except SubmissionError as error:
                raise ReferenceFailed(f"{call.target.class_name}: {error}") from error
        return self._answers[key]

    def begin_check(self) -> None:
        """See `Submission.begin_check`."""

    def forbidden_uses(self) -> list[Use]:
        """See `Submission.forbidden_uses`."""
        return []

    def close(self) -> None:
        """Forget all answers."""
        self._answers.clear()
        self._submission.close()


def _key(call: Call) -> bytes:
    head, tensors = pack_call(call, send=call.weights_name is None)
    named = json.dumps(head, sort_keys=True) + repr(call.weights_name)
    digest = hashlib.blake2b(named.encode(), digest_size=16)
    for name, tensor in tensors.items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor_bytes(tensor))
    return digest.digest()
