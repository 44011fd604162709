"""Submissions to test with: the reference, the starter, and variants of the reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

from grader.assignment import load_assignment
from grader.intake import SubmissionFiles, read_submission
from grader.loader import find_parts

ROOT = Path(__file__).parent.parent
MUTANTS = ROOT / "tests" / "mutants"
ALTERNATIVES = ROOT / "tests" / "alternatives"


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


@dataclass(frozen=True)
class Mutant:
    """A wrong submission, one idea away from the reference."""

    slug: str
    part: str
    idea: str
    fails: tuple[str, ...]
    edits: tuple[tuple[str, str], ...]

    @property
    def files(self) -> SubmissionFiles:
        """The reference with the idea in it."""
        return edited(self.part, *self.edits)


def mutants() -> list[Mutant]:
    """All of `tests/mutants`."""
    return [
        _mutant(path.stem, entry)
        for path in sorted(MUTANTS.glob("*.toml"))
        for entry in tomllib.loads(path.read_text())["mutant"]
    ]


def _mutant(part: str, entry: Mapping[str, Any]) -> Mutant:
    edits = tuple((edit["find"], edit["replace"]) for edit in entry["edits"])
    return Mutant(entry["slug"], part, entry["idea"], tuple(entry["fails"]), edits)


def alternatives() -> list[Path]:
    """Folders of correct submissions written in other ways."""
    return sorted(path for path in ALTERNATIVES.iterdir() if path.is_dir())
