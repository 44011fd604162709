"""Whatever comes out of a student's code, as the outcome that it is."""

from __future__ import annotations

import builtins
import dis
import re
import traceback

from grader.loader import SubmissionModules
from grader.submission import OutOfMemory, Raised, StubReached, SubmissionError

MAX_TEXT = 500
"""Characters of a student's error message that are kept."""

_RAISE = dis.opmap["RAISE_VARARGS"]
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")


class StudentCode:
    """Stands around a student's code: ``with student_code("importing attention.py"): import_it()``.

    Args:
        modules: the submission, to say in which line of it an error arose.
        own_process: the student sits before this process: Ctrl-C is theirs, not the code's.
        keep_errors: let the student's exceptions through as they are, for a debugger.
    """

    def __init__(self, modules: SubmissionModules, *, own_process: bool, keep_errors: bool) -> None:
        self._modules = modules
        self._own_process = own_process
        self._keep_errors = keep_errors

    def __call__(self, doing: str, kind: type[SubmissionError] = Raised) -> _Inside:
        """Turn what is raised inside into a `SubmissionError`, of this kind if it is nothing special."""
        return _Inside(self, doing, kind)

    def passes(self, error: BaseException) -> bool:
        """Whether an exception goes through as it is: an outcome already, Ctrl-C, or for a debugger."""
        if isinstance(error, KeyboardInterrupt):
            return self._own_process
        return isinstance(error, SubmissionError) or (self._keep_errors and not is_stub(error))

    def outcome(
        self, error: BaseException, doing: str, kind: type[SubmissionError] = Raised
    ) -> SubmissionError:
        """What an exception means that was raised while doing something."""
        where = self._where(error)
        if is_stub(error):
            return StubReached(f"{doing} is not implemented yet", where)
        if _is_out_of_memory(error):
            return OutOfMemory(f"{doing} asked for more memory than there is", where)
        return kind(f"{doing} raised {_describe(error)}", where)

    def _where(self, error: BaseException) -> str:
        if isinstance(error, SyntaxError) and error.filename is not None:
            path = self._modules.path_of(error.filename)
            if path is not None:
                return f"{path}:{error.lineno}"
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            path = self._modules.path_of(frame.filename)
            if path is not None:
                return f"{path}:{frame.lineno}"
        return ""


class _Inside:
    """A class, not a generator, since it is entered for every forward."""

    def __init__(self, student_code: StudentCode, doing: str, kind: type[SubmissionError]) -> None:
        self._student_code, self._doing, self._kind = student_code, doing, kind

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None and not self._student_code.passes(error):
            raise self._student_code.outcome(error, self._doing, self._kind) from error


def is_stub(error: BaseException) -> bool:
    """Whether a `raise NotImplementedError` was reached; torch's operators have their own."""
    innermost = error.__traceback__
    if not isinstance(error, NotImplementedError) or innermost is None:
        return False
    while innermost.tb_next is not None:
        innermost = innermost.tb_next
    return innermost.tb_frame.f_code.co_code[innermost.tb_lasti] == _RAISE


def _is_out_of_memory(error: BaseException) -> bool:
    # Torch has names of its own for it, and another one where it goes backward.
    said = _message(error)
    return isinstance(error, MemoryError) or "can't allocate memory" in said or "bad_alloc" in said


def _describe(error: BaseException) -> str:
    kind, message = cut_to_size(type(error).__name__), cut_to_size(_message(error))
    if isinstance(error, SyntaxError) and error.lineno is not None:
        line = f", in `{error.text.strip()}`" if isinstance(error.text, str) and error.text.strip() else ""
        message = cut_to_size(f"{error.msg}{line}")
    return f"{kind}: {message}" if message else kind


def _message(error: BaseException) -> str:
    try:
        return builtins.str(error)
    except BaseException:  # a hostile __str__ may raise anything
        return "(its message could not be read)"


def cut_to_size(message: str) -> str:
    """Cut a student's text to size and take out what differs from run to run."""
    return _ADDRESS.sub("0x...", message[: 4 * MAX_TEXT])[:MAX_TEXT]
