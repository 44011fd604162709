"""Systematic mutation of the reference: what a tool changes at random, some check must notice.

The mutants come from cosmic-ray's operators, one change each; the grader kills them like any other wrong
submission. A survivor must be listed in `tests/mutants/survivors.toml` with the reason why it is
equivalent to the reference; the audit sees to it that every reason still belongs to a line that exists.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.assignment import Assignment, load_assignment
from grader.grading import REFERENCE, Options
from grader.intake import InputError, SubmissionFiles
from grader.pool import Job, Pool
from grader.toml import read_toml

SURVIVORS = Path(__file__).parent.parent / "tests" / "mutants" / "survivors.toml"


@dataclass(frozen=True)
class Mutation:
    """One change of one part's file, as the lines before and after it."""

    part: str
    before: str
    after: str


@dataclass(frozen=True)
class Survivors:
    """What came of a run.

    Attributes:
        tried: how many mutants there were.
        unexplained: survivors that are not listed.
        killed: listed ones that did not survive, or are no longer made.
    """

    tried: int
    unexplained: Sequence[Mutation]
    killed: Sequence[Mutation]


def explained() -> dict[Mutation, str]:
    """The listed survivors, and why each is equivalent."""
    entries = read_toml(SURVIVORS).get("survivor", ())
    return {Mutation(one["part"], one["before"], one["after"]): one["why"] for one in entries}


def stale(assignment: Assignment) -> list[str]:
    """What is wrong with the list of survivors itself, one line each."""
    found = []
    for mutation, why in explained().items():
        lines = [line.strip() for line in _source(assignment, mutation.part).splitlines()]
        if mutation.before not in lines:
            found.append(f"survivors.toml: {mutation.before!r} is no line of reference/{mutation.part}.py")
        if not why.strip():
            found.append(f"survivors.toml: {mutation.after!r} has no reason")
    return found


def mutate(*, jobs: int) -> Survivors:
    """Make all mutants, grade them, and compare the survivors with the list.

    Raises:
        InputError: cosmic-ray is not installed.
    """
    assignment = load_assignment()
    mutants = dict(_mutants(assignment))
    options = [Options((mutation.part,), simplify=False, recognise=False) for mutation in mutants]
    tasks = [Job(files, option) for files, option in zip(mutants.values(), options, strict=True)]
    with Pool(jobs) as pool:
        documents = list(pool.grade(tasks))
    lived = [
        mutation
        for mutation, document in zip(mutants, documents, strict=True)
        if all(test["extra_data"]["outcome"] == "passed" for test in document["tests"])
    ]
    known = explained()
    return Survivors(
        tried=len(mutants),
        unexplained=[mutation for mutation in lived if mutation not in known],
        killed=[mutation for mutation in known if mutation not in lived],
    )


def _mutants(assignment: Assignment) -> Iterator[tuple[Mutation, SubmissionFiles]]:
    try:
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator, operator_names
    except ImportError:
        raise InputError("mutate needs cosmic-ray: pip install -e '.[mutate]'") from None
    sources = {path: _source(assignment, name) for name, path in assignment.files.items()}
    parts = assignment.files
    # Those that ask for arguments need to be told names; the others try whatever fits.
    kinds = [kind for kind in map(get_operator, operator_names()) if not kind.arguments()]
    for name, path in parts.items():
        for kind in kinds:
            for occurrence in itertools.count():
                mutated = mutate_code(sources[path], kind(), occurrence)
                if mutated is None:
                    break
                change = _change(name, sources[path], mutated)
                if change is not None:
                    data = {one: text.encode() for one, text in (sources | {path: mutated}).items()}
                    yield change, SubmissionFiles(data, parts, {})


def _change(part: str, before: str, after: str) -> Mutation | None:
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    removed = [line[2:].strip() for line in lines if line.startswith("- ")]
    added = [line[2:].strip() for line in lines if line.startswith("+ ")]
    return Mutation(part, " ".join(removed), " ".join(added)) if removed != added else None


def _source(assignment: Assignment, part: str) -> str:
    return (REFERENCE / assignment.parts[part].file).read_text(encoding="utf-8")
