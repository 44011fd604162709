"""The grader graded: is every correct submission worth all its points, and every wrong one caught?

Grades the reference, the untouched starter, every mutant (`tests/mutants`, and all variants of
`grader/misconceptions`) and every alternative (`tests/alternatives`), compares with what is known of
each, then grades them again and compares the results. Runs in a clone of the project, where these are.
"""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from grader import mutation
from grader.assignment import Assignment, load_assignment
from grader.grading import REFERENCE, Options
from grader.intake import InputError, SubmissionFiles, read_submission
from grader.loader import find_parts
from grader.misconceptions import Edits, edited, misconceptions_about, read_edits
from grader.pool import Job, Pool
from grader.toml import read_toml

ROOT = Path(__file__).parent.parent
STARTER = ROOT / "starter"
MUTANTS = ROOT / "tests" / "mutants"
TOGETHER = ".together"
"""How the checks end that are about all of a student's parts; a mistake in an earlier one counts there."""

ALTERNATIVES = ROOT / "tests" / "alternatives"


@dataclass(frozen=True)
class Mutant:
    """A wrong submission, one idea away from the reference.

    Attributes:
        fails: ids of checks that must fail; others of its part may.
        misconception: the slug of the one that must be recognised, if it is a known one.
    """

    slug: str
    part: str
    idea: str
    fails: tuple[str, ...]
    edits: Edits
    misconception: str = ""

    @property
    def files(self) -> SubmissionFiles:
        """The reference with the idea in it."""
        return with_edits(self.part, self.edits)


@dataclass(frozen=True)
class Subject:
    """A submission whose deserts are known.

    Attributes:
        kind: ``reference``, ``starter``, ``mutant`` or ``alternative``.
        parts: the parts to grade; those that it cannot touch are left out.
        briefly: of a mutant, only the checks that it names.
    """

    name: str
    kind: str
    files: SubmissionFiles
    parts: tuple[str, ...]
    mutant: Mutant | None = None
    briefly: bool = False

    @property
    def job(self) -> Job:
        """What is graded of it."""
        if self.briefly and self.mutant is not None:
            brief = Options((self.mutant.part,), simplify=False, checks=self.mutant.fails, recognise=False)
            return Job(self.files, brief)
        return Job(self.files, Options(self.parts, simplify=False))


@dataclass
class Finding:
    """What came of one subject.

    Attributes:
        failed: the checks that did not pass.
        problems: where that is not what it deserves.
    """

    subject: Subject
    failed: list[str]
    problems: list[str] = field(default_factory=list)


def with_edits(part: str, edits: Edits) -> SubmissionFiles:
    """The reference, with some text of one part replaced."""
    assignment = load_assignment()
    files = {name: (REFERENCE / name).read_text(encoding="utf-8") for name in assignment.files.values()}
    name = assignment.parts[part].file
    files[name] = edited(files[name], edits)
    data = {path: text.encode() for path, text in sorted(files.items())}
    return SubmissionFiles(data, find_parts(list(data), assignment.files), {})


def mutants() -> list[Mutant]:
    """All of `tests/mutants`, then the variants of all misconceptions."""
    found = []
    for path in sorted(MUTANTS.glob("*.toml")):
        for entry in read_toml(path).get("mutant", ()):
            found.append(_mutant(path.stem, entry))
    for part in load_assignment().parts:
        for misconception in misconceptions_about(part):
            for number, variant in enumerate(misconception.variants):
                slug = misconception.slug + (f"-{number + 1}" if number else "")
                found.append(
                    Mutant(slug, part, variant.idea, misconception.fails, variant.edits, misconception.slug)
                )
    return found


def _mutant(part: str, entry: Mapping[str, Any]) -> Mutant:
    return Mutant(
        entry["slug"],
        part,
        entry["idea"],
        tuple(entry["fails"]),
        read_edits(entry["edits"]),
        entry.get("misconception", ""),
    )


def alternatives() -> list[Path]:
    """Folders of correct submissions, each written in another way."""
    return sorted(path for path in ALTERNATIVES.iterdir() if path.is_dir())


def subjects(assignment: Assignment) -> Iterator[Subject]:
    """All that is audited, what takes long first."""
    everything = tuple(assignment.parts)
    for folder in alternatives():
        yield Subject(folder.name, "alternative", read_submission(folder, assignment.files), everything)
    yield Subject("reference", "reference", read_submission(REFERENCE, assignment.files), everything)
    yield Subject("starter", "starter", read_submission(STARTER, assignment.files), everything)
    for mutant in mutants():
        # Files that do not import the wrong one are the reference's, and are graded there.
        touched = [name for name in assignment.parts if mutant.part in [name, *assignment.before(name)]]
        yield Subject(f"{mutant.part}/{mutant.slug}", "mutant", mutant.files, tuple(touched), mutant)


def audit(
    *,
    jobs: int,
    again: int = 1,
    whole: int = 1,
    only: Sequence[str] = (),
    tell: Callable[[int, int, Sequence[str]], None] = lambda _done, _all, _problems: None,
) -> Audit:
    """Grade everything and compare.

    Args:
        jobs: how many are graded at a time.
        again: every so many-th subject is graded a second time; 1 for all.
        whole: every so many-th mutant is graded in all its parts, and must be recognised; of the others
            only the checks that they name. 1 for all.
        only: names of the subjects to audit; empty for all.
        tell: called after each with how many are done, how many there are, and what is wrong with this one.

    Raises:
        InputError: `only` names what is not there.
    """
    assignment = load_assignment()
    known = list(subjects(assignment))
    for name in only:
        if name not in {one.name for one in known}:
            raise InputError(f"--only must name a subject of the audit, got {name}")
    chosen = [one for one in known if not only or one.name in only]
    chosen = [
        replace(one, briefly=one.mutant is not None and position % whole > 0)
        for position, one in enumerate(chosen)
    ]
    # The second time in reverse order: nothing may depend on what was graded before.
    rounds = [*chosen, *reversed(chosen[::again])]
    tasks = [one.job for one in rounds]
    first: dict[str, dict[str, Any]] = {}
    found = []
    with Pool(jobs) as pool:
        for done, (subject, document) in enumerate(zip(rounds, pool.grade(tasks), strict=True), start=1):
            problems: list[str] = []
            if subject.name not in first:
                first[subject.name] = document
                found.append(_compare(assignment, subject, document))
                problems = found[-1].problems
            elif _without_times(document) != _without_times(first[subject.name]):
                problems = [f"graded again: {_first_difference(document, first[subject.name])}"]
                next(one for one in found if one.subject is subject).problems.extend(problems)
            tell(done, len(rounds), [f"{subject.name}: {problem}" for problem in problems])
    return Audit(assignment, found, mutation.stale(assignment))


def _compare(assignment: Assignment, subject: Subject, document: Mapping[str, Any]) -> Finding:
    outcomes = {test["extra_data"]["check"]: test["extra_data"]["outcome"] for test in document["tests"]}
    failed = [check for check, outcome in outcomes.items() if outcome != "passed"]
    finding = Finding(subject, failed)
    say = finding.problems.append
    for check in failed:
        if outcomes[check] == "grader_error":
            say(f"grader error in {check}: {document['extra_data']['grader_errors'][check][-300:]}")
    if subject.kind in ("reference", "alternative") and failed:
        say(f"correct, but loses {_list(failed)}")
    if subject.kind == "starter":
        others = sorted({outcome for outcome in outcomes.values() if outcome != "not_implemented"})
        if others:
            say(f"every row must be not_implemented, got {_list(others)}")
    if subject.mutant is not None:
        _compare_mutant(assignment, subject, document, finding)
    return finding


def _compare_mutant(
    assignment: Assignment, subject: Subject, document: Mapping[str, Any], finding: Finding
) -> None:
    mutant, failed = subject.mutant, finding.failed
    assert mutant is not None  # noqa: S101 - only called for one
    survived = [check for check in mutant.fails if check not in failed]
    if survived or not mutant.fails:
        finding.problems.append(f"must fail {_list(survived) or 'some check, but names none'}")
    strangers = [
        check
        for check in failed
        if assignment.checks[check].part != mutant.part and not check.endswith(TOGETHER)
    ]
    if strangers:
        finding.problems.append(f"is charged in other parts: {_list(strangers)}")
    named = [entry["misconception"] for entry in document["extra_data"]["recognised"]]
    wanted = [mutant.misconception] if mutant.misconception and not subject.briefly else []
    if wanted and named != wanted:
        finding.problems.append(f"must be recognised as {wanted[0]}, got {_list(named) or 'nothing'}")


def _without_times(document: Mapping[str, Any]) -> dict[str, Any]:
    plain = copy.deepcopy(dict(document))
    plain.pop("execution_time", None)
    return plain


def _first_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    for test, before in zip(one["tests"], other["tests"], strict=True):
        if test != before:
            return f"{test['extra_data']['check']}: {test['output']!r}, before {before['output']!r}"
    return f"score {one['score']:g}, before {other['score']:g}; something beside the checks differs"


@dataclass(frozen=True)
class Audit:
    """What an audit found."""

    assignment: Assignment
    findings: Sequence[Finding]
    stale: Sequence[str] = ()

    @property
    def problems(self) -> list[str]:
        """All that is not as it should be, one line each."""
        return [*self.stale] + [
            f"{one.subject.kind} {one.subject.name}: {problem}"
            for one in self.findings
            for problem in one.problems
        ]

    def caught_by(self) -> dict[str, list[str]]:
        """For each check the mutants of its part that it catches; of what was graded briefly, no word."""
        found: dict[str, list[str]] = defaultdict(list)
        for check, entry in self.assignment.checks.items():
            for one in self._mutants():
                if check in one.failed and one.subject.mutant.part == entry.part:
                    found[check].append(one.subject.name)
        return {check: found[check] for check in self.assignment.checks}

    def caught_alone_by(self) -> dict[str, list[str]]:
        """For each check the mutants that no other check of their part catches."""
        found: dict[str, list[str]] = {check: [] for check in self.assignment.checks}
        for one in self._mutants():
            own = [c for c in one.failed if self.assignment.checks[c].part == one.subject.mutant.part]
            if len(own) == 1:
                found[own[0]].append(one.subject.name)
        return found

    def _mutants(self) -> Iterator[Any]:
        return (one for one in self.findings if one.subject.mutant is not None and not one.subject.briefly)

    def lines(self) -> Iterator[str]:
        """The matrix, read by checks, and the problems."""
        kinds = Counter(one.subject.kind for one in self.findings)
        counted = [f"{count} {kind}s" if count > 1 else kind for kind, count in kinds.items()]
        yield f"audited: {', '.join(counted)}"
        yield "checks, how many mutants of their part each catches, and those that it alone catches:"
        alone = self.caught_alone_by()
        for check, caught in self.caught_by().items():
            yield f"  {check:45} {len(caught):4}  {', '.join(alone[check])}"
        idle = [check for check, names in alone.items() if not names]
        yield f"checks that catch none alone: {_list(idle, limit=len(idle)) or 'none'}"
        if self.problems:
            yield f"{len(self.problems)} problems:"
            yield from (f"  {problem}" for problem in self.problems)
        else:
            yield "no problems"

    def to_json(self) -> dict[str, Any]:
        """The whole matrix as data."""
        return {
            "problems": self.problems,
            "subjects": [
                {
                    "name": one.subject.name,
                    "kind": one.subject.kind,
                    "part": one.subject.mutant.part if one.subject.mutant else None,
                    "idea": one.subject.mutant.idea if one.subject.mutant else None,
                    "failed": one.failed,
                    "problems": one.problems,
                }
                for one in self.findings
            ],
            "caught_by": self.caught_by(),
            "caught_alone_by": self.caught_alone_by(),
        }


def _list(names: Iterable[str], limit: int = 8) -> str:
    names = list(names)
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
