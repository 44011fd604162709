"""What a student is about to hand in, looked at as the grader will."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.assignment import Assignment
from grader.home import CALL_S
from grader.in_process import InProcessSubmission
from grader.intake import SubmissionFiles, read_submission
from grader.loader import SubmissionModules
from grader.submission import Call, SubmissionError


@dataclass(frozen=True)
class HandIn:
    """The files, and what is to be said of them.

    Attributes:
        troubles: what costs a whole part: a file that is missing, or does not import.
        warnings: what may be meant.
    """

    files: SubmissionFiles
    troubles: list[str]
    warnings: list[str]


def look_at(assignment: Assignment, folder: Path) -> HandIn:
    """Read the part files and the helpers beside them, and import the parts.

    Raises:
        InputError: the folder holds no part.
    """
    files = read_submission(folder, assignment.files)
    submission = InProcessSubmission(
        SubmissionModules(files.files, files.parts), assignment.classes, call_s=CALL_S
    )
    troubles = []
    for name, part in assignment.parts.items():
        if name not in files.parts:
            troubles.append(f"{part.file} is not in {folder}")
            continue
        try:
            submission.call(Call(part.target, "load"))
        except SubmissionError as error:
            troubles.append(f"{error.where}: {error.sentence}")
    warnings = [f"{path} is left out: {why}" for path, why in files.skipped.items()]
    warnings += [
        f"{path}:{line} is not filled in yet: raise NotImplementedError"
        for path in files.parts.values()
        for line in _stubs(files.files[path])
    ]
    warnings += [
        f"{use.file}:{use.line} uses {use.operator}: {assignment.parts[use.part].file} is not from scratch"
        for use in submission.forbidden_uses()
    ]
    return HandIn(files, troubles, warnings)


def _stubs(source: bytes) -> Iterator[int]:
    """The lines on which NotImplementedError is raised; none where the file does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id == "NotImplementedError":
                yield node.lineno
