"""Submissions to test with: the reference, the starter, and variants of the reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from grader.assignment import load_assignment
from grader.intake import SubmissionFiles, read_submission
from grader.loader import find_parts

ROOT = Path(__file__).parent.parent


def submission(files: Mapping[str, str | bytes]) -> SubmissionFiles:
    """A submission of these files."""
    data = {p: text.encode() if isinstance(text, str) else text for p, text in files.items()}
    return SubmissionFiles(dict(sorted(data.items())), find_parts(list(data), load_assignment().files), {})


def reference() -> dict[str, str]:
    """The reference's files, as a submission would hold them."""
    return {f"{part}.py": (ROOT / "reference" / f"{part}.py").read_text() for part in load_assignment().parts}


def edited(part: str, *edits: tuple[str, str], **files: str) -> SubmissionFiles:
    """The reference with some text of one part replaced, and further files."""
    found = reference()
    source = found[f"{part}.py"]
    for old, new in edits:
        assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {part}.py"
        source = source.replace(old, new)
    return submission(found | {f"{part}.py": source} | files)


def with_part(part: str, source: str) -> SubmissionFiles:
    """The reference with one part's file replaced."""
    return submission(reference() | {f"{part}.py": source})


def starter() -> SubmissionFiles:
    """The stubs as students get them."""
    return read_submission(ROOT / "starter", load_assignment().files)
