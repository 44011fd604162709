"""A class, graded: each submission's result as it ends, scores and a report; goes on where it was stopped.

Everything that a run knows lies in its folder: `results/ID.json`, made by this grader from these files, is
not made again. So a run that is stopped, however that comes, is gone on with by the same command.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from grader import report
from grader.assignment import Assignment
from grader.fingerprint import fingerprint
from grader.gradebook import Filled, Gradebook, gradescope_rows
from grader.ingest import Entry, Export, Student
from grader.ingest.contents import taken
from grader.intake import InputError, SubmissionFiles
from grader.marks import GRADED, GRADER_ERROR, STUDENT_ERROR, WAITING, Mark, Marks, Override
from grader.overrides import applied
from grader.page import render
from grader.pool import Done, Job, Pool
from grader.progress import Tell
from grader.scores import scores_csv
from grader.stored import read_result
from grader.terms import Outcome
from grader.text import one_line

SCORES_EVERY_S = 2.0
"""`scores.csv` follows the results at this distance."""


_LEFT = f".*{report.TEMPORARY}"


class Busy(InputError):
    """Another run writes to the same folder."""


@dataclass(frozen=True)
class Outputs:
    """What is made of the results besides `scores.csv`.

    Attributes:
        gradebook: to be filled, if staff gave one.
        column: of the gradebook, if it does not say by itself which.
        scale: give the gradebook points as shares of its own maximum.
        anonymous: a report without names.
    """

    gradebook: Gradebook | None = None
    column: str = ""
    scale: bool = False
    anonymous: bool = False


@dataclass
class Batch:
    """One run over a class.

    Args:
        assignment: what is graded.
        export: the download.
        out: the folder for everything that comes out.
        overrides: staff's word.
    """

    assignment: Assignment
    export: Export
    out: Path
    overrides: list[Override] = field(default_factory=list)
    outputs: Outputs = field(default_factory=Outputs)

    def __post_init__(self) -> None:
        self._documents: dict[str, dict[str, Any]] = {}
        self._trouble: dict[str, str] = {}
        self._taken: dict[str, tuple[str, ...]] = {}
        self._written_s = -SCORES_EVERY_S

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Have the folder for this run alone; half-written files of one that was killed are removed.

        Raises:
            Busy: another run has it.
        """
        results = self.out / "results"
        with _written_to(results):
            results.mkdir(parents=True, exist_ok=True)
        with _locked(self.out):
            with _written_to(results):
                for left in (*self.out.glob(_LEFT), *results.glob(_LEFT)):
                    left.unlink()
            yield

    def waiting(self) -> list[Entry]:
        """What is to be graded, in order; what needs no grading has its result after this."""
        found = []
        for entry in self.export.entries:
            try:
                files = entry.read()
            except InputError as error:
                self._found(entry, report.nothing_gradable(self.assignment, str(error)))
                continue
            except (OSError, MemoryError) as error:
                self._failed(entry, f"{entry.source} cannot be read: {error}")
                continue
            self._taken[entry.id] = taken(files, self.assignment.files)
            known = self._stored(entry)
            if known is not None and _same(known, files):
                self._documents[entry.id] = known
            else:
                found.append(entry)
        return found

    def run(self, pool: Pool, waiting: Sequence[Entry], tell: Tell) -> None:
        """Grade all of them, and write each result as it comes."""
        entries = {entry.id: entry for entry in waiting}
        for done in pool.each(self._jobs(waiting)):
            self._take(entries[done.key], done)
            tell(self._mark(entries[done.key]))
            if time.monotonic() - self._written_s > SCORES_EVERY_S:
                self.write_scores()

    def marks(self) -> Marks:
        """How it stands."""
        marks = tuple(map(self._mark, self.export.entries))
        found = Marks(self.assignment.title, self.export.layout, marks, self.export.unmatched)
        book = self._at_first
        if book is None:
            return found
        known = tuple(_introduced(mark, book.students.get(mark.entry.id, ()), found.layout) for mark in marks)
        return replace(found, marks=known, missing=book.missing)

    @cached_property
    def _at_first(self) -> Filled | None:
        """The gradebook before anything is graded: whose rows are whose does not depend on the points."""
        return self.filled()

    def filled(self) -> Filled | None:
        """The gradebook with the scores in it, if there is one."""
        outputs = self.outputs
        if outputs.gradebook is None:
            return None
        return outputs.gradebook.fill(
            [self._mark(entry) for entry in self.export.entries],
            outputs.column,
            outputs.scale,
            layout=self.export.layout,
            title=self.assignment.title,
        )

    def write_scores(self) -> None:
        """Write `scores.csv` as it stands."""
        self._written_s = time.monotonic()
        self._write("scores.csv", scores_csv(self.marks(), list(self.assignment.parts)))

    def write_all(self) -> list[Path]:
        """Write everything that is made of the results; return the files."""
        self.write_scores()
        marks = self.marks()
        filled = self.filled()
        books = []
        if filled is not None and self.outputs.gradebook is not None:
            books.append(self._write(f"gradebook-{self.outputs.gradebook.kind}.csv", filled.text))
        elif marks.layout == "gradescope":
            books.append(self._write("gradescope-scores.csv", gradescope_rows(marks.marks)))
        page = self._write("report.html", render(marks, anonymous=self.outputs.anonymous))
        return [self.out / "scores.csv", *books, page]

    def outdated(self) -> list[Path]:
        """Gradebooks that an earlier run has filled, and this one not."""
        own = f"gradebook-{self.outputs.gradebook.kind}.csv" if self.outputs.gradebook else ""
        return [path for path in sorted(self.out.glob("gradebook-*.csv")) if path.name != own]

    def _jobs(self, entries: Iterable[Entry]) -> Iterator[tuple[str, Job]]:
        """Read again, one by one: a class's files, all at once, may be more than the memory."""
        for entry in entries:
            try:
                yield entry.id, Job(entry.read())
            except (InputError, OSError, MemoryError) as error:
                self._failed(entry, f"{entry.source} changed while it was graded: {error}")

    def _take(self, entry: Entry, done: Done) -> None:
        if done.document is None:
            self._failed(entry, done.trouble)
        elif done.document["extra_data"]["grader_error"]:
            checks = ", ".join(done.document["extra_data"]["grader_errors"])
            self._failed(entry, f"the grader failed in {checks}", done.document)
        else:
            self._found(entry, done.document)

    def _failed(self, entry: Entry, trouble: str, document: dict[str, Any] | None = None) -> None:
        """Keep a good result that there is; the next run tries again."""
        known = self._stored(entry)
        if known is not None and not known["extra_data"]["grader_error"]:
            self._documents[entry.id] = known
            self._trouble[entry.id] = f"{_last_line(trouble)}; the result of an earlier run stands for now"
        else:
            self._trouble[entry.id] = _last_line(trouble)
            self._found(entry, document or report.grader_failed(self.assignment, trouble))

    def _found(self, entry: Entry, document: dict[str, Any]) -> None:
        self._documents[entry.id] = document
        self._write(f"results/{entry.id}.json", report.to_json(document))

    def _stored(self, entry: Entry) -> dict[str, Any] | None:
        """The result that an earlier run has left, if it can be read."""
        with contextlib.suppress(InputError):
            return read_result(self.out / "results" / f"{entry.id}.json")
        return None

    def _mark(self, entry: Entry) -> Mark:
        document = self._documents.get(entry.id)
        if document is None:
            return Mark(entry, WAITING, {}, notes=entry.notes)
        own = tuple(one for one in self.overrides if one.submission == entry.id)
        trouble = self._trouble.get(entry.id)
        notes = [
            *entry.notes,
            *self._taken.get(entry.id, ()),
            *([trouble] if trouble else []),
            *_notes(document),
        ]
        status = GRADER_ERROR if trouble else status_of(document)
        final = applied(document, own)
        if final["score"] > final["extra_data"]["max_score"]:
            notes.append(f"more than {final['extra_data']['max_score']:g} points")
        return Mark(entry, status, final, own, tuple(notes))

    def _write(self, name: str, text: str) -> Path:
        path = self.out / name
        with _written_to(path):
            report.write_atomically(path, text)
        return path


def status_of(document: Mapping[str, Any]) -> str:
    """Whether it was graded; a submission of which nothing imports was not."""
    about = document["extra_data"]
    if about["grader_error"]:
        return GRADER_ERROR
    nothing = {Outcome.MISSING.value, Outcome.NOT_IMPORTABLE.value}
    if all(test["extra_data"]["outcome"] in nothing for test in document["tests"]):
        return STUDENT_ERROR
    return GRADED


def _introduced(mark: Mark, rows: Sequence[Student], layout: str) -> Mark:
    """With what the gradebook knows of its student, and the download does not say."""
    said = mark.entry.students or (Student(),)
    if len(said) != 1 or len(rows) != 1:
        return mark
    (own,), (row,) = said, rows
    names = (row.name, own.name) if layout == "canvas" else (own.name, row.name)  # Canvas writes `smithbob`
    known = Student(
        names[0] or names[1], own.email or row.email, own.sid or row.sid, own.lms_id or row.lms_id
    )
    return replace(mark, entry=replace(mark.entry, students=(known,)))


def _notes(document: Mapping[str, Any]) -> list[str]:
    why = document["extra_data"].get("nothing_gradable")
    if why is None and status_of(document) == STUDENT_ERROR:
        why = "no part can be imported"
    return [f"nothing gradable: {why}"] if why else []


def _last_line(trouble: str) -> str:
    return one_line(trouble.strip().rpartition("\n")[2])


def _same(known: Mapping[str, Any], files: SubmissionFiles) -> bool:
    """Whether this grader made it of these files, and did not fail over it."""
    about = known["extra_data"]
    return (
        not about["grader_error"]
        and about.get("grader", {}).get("fingerprint") == fingerprint()
        and about.get("submission", {}).get("sha256") == files.sha256
    )


@contextlib.contextmanager
def _written_to(path: Path) -> Iterator[None]:
    """Tell in one line what cannot be written: staff can mend that, and go on."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} must be writable, got {error.strerror or error}") from error


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder; the lock goes with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with _written_to(folder / ".lock"):
        lock = open(folder / ".lock", "w")  # noqa: SIM115 - closed below
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Busy(f"only one run may write to a folder at a time, got {folder}") from error
        yield
