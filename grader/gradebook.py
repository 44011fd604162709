"""Fill the gradebook that staff exported from their learning management system with a class's points.

Where the formats are written down: Canvas' `lib/gradebook_exporter.rb`, Moodle's
`mod/assign/feedback/offline/importgradeslib.php`, `gh classroom`; Gradescope documents none.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.ingest import Student
from grader.intake import InputError
from grader.marks import GRADED, STUDENT_ERROR, Mark
from grader.rawcsv import Table, parse
from grader.roster import Row, match
from grader.text import defused, one_line

MAX_BYTES = 64 << 20
_TEST_STUDENT = "Student, Test"  # Canvas' own, which no one is
_GROUP = "looks like a group's: its other members are not known from a Canvas download; enter theirs by hand"


@dataclass(frozen=True)
class Kind:
    """The columns of one system's gradebook; "" for one that it has not.

    Attributes:
        needed: columns that only it has all of.
        lms_id: what the system itself calls the student.
        names: those that make up the name.
        ids: student number, login and address.
        submission: names what was handed in, alone or with others.
        points: where they go; Canvas' columns are called as its assignments are.
        possible: how many there were to get.
    """

    name: str
    needed: tuple[str, ...]
    lms_id: str
    names: tuple[str, ...]
    email: str
    sid: str
    ids: tuple[str, ...] = ()
    submission: str = ""
    points: str = ""
    possible: str = ""


KINDS = (
    Kind(
        "canvas",
        ("ID", "SIS Login ID", "Section"),
        lms_id="ID",
        names=("FirstName", "Student", "LastName"),
        email="",
        sid="SIS User ID",
        ids=("SIS Login ID", "Integration ID"),
    ),
    Kind(
        "moodle",
        ("Identifier", "Grade"),
        lms_id="Identifier",
        names=("Full name",),
        email="Email address",
        sid="ID number",
        ids=("Username",),
        submission="Group",
        points="Grade",
        possible="Maximum Grade",
    ),
    Kind(
        "gradescope",
        ("Email", "Total Score", "Max Points"),
        lms_id="",
        names=("First Name", "Name", "Last Name"),
        email="Email",
        sid="SID",
        submission="Submission ID",
        points="Total Score",
        possible="Max Points",
    ),
    Kind(
        "classroom",
        ("github_username", "points_awarded"),
        lms_id="github_username",
        names=(),
        email="",
        sid="roster_identifier",
        submission="student_repository_name",
        points="points_awarded",
        possible="points_available",
    ),
)


@dataclass(frozen=True)
class Filled:
    """A gradebook with points in it.

    Attributes:
        text: the file to upload: all but the points as it was, line ends and byte order mark included.
        missing: who stands in it and is nowhere in the download.
        unmatched: submissions that have no row, or none for one of their students, by id, with the reason.
        notes: what else staff should know.
        students: whose rows are a submission's, by its id, as the gradebook has them.
    """

    text: str
    missing: tuple[Student, ...]
    unmatched: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    students: Mapping[str, tuple[Student, ...]] = field(default_factory=dict)


def read_gradebook(path: Path) -> Gradebook:
    """Read a gradebook, whosever it is.

    Raises:
        InputError: not there, not CSV in UTF-8, or columns that no known gradebook has.
    """
    text = _text_of(path)
    for delimiter in ",;\t":
        table = parse(text, delimiter)
        for kind in KINDS if table.rows else ():
            if all(_column(table, name) is not None for name in kind.needed):
                return Gradebook(kind, table)
    known = "; ".join(f"{kind.name}: {', '.join(kind.needed)}" for kind in KINDS)
    seen = one_line(text.lstrip("\ufeff").partition("\n")[0], 200) or "nothing"
    raise InputError(f"a gradebook must have the columns of one of [{known}], got {path} with {seen}")


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError(f"a gradebook must have at most {MAX_BYTES} bytes, got {path} with more")
        return data.decode()
    except OSError as error:
        raise InputError(f"a gradebook must be readable, got {path} ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"a gradebook must be CSV in UTF-8, got {path} ({error.reason})") from error


def _column(table: Table, name: str) -> int | None:
    """Where a column is, whatever its case."""
    header = [table.get(0, column).strip().casefold() for column in range(len(table.rows[0]))]
    return header.index(name.casefold()) if name.casefold() in header else None


@dataclass(frozen=True)
class _Target:
    """Where points go.

    Attributes:
        possible: the column of how many there were to get, if it is one.
        possible_row: the row of how many there were to get, if it is one.
        comma: whether the file writes 0,5 for a half.
    """

    points: int
    possible: int | None = None
    possible_row: int | None = None
    comma: bool = False


@dataclass
class _Filling:
    """A gradebook while points are entered."""

    table: Table
    scale: bool
    target: _Target
    notes: list[str] = field(default_factory=list)

    def possible(self, row: int) -> float | None:
        """How many points there are to get in a row."""
        if self.target.possible_row is not None:
            return number(self.table.get(self.target.possible_row, self.target.points))
        return None if self.target.possible is None else number(self.table.get(row, self.target.possible))

    def write(self, row: int, column: int, points: float) -> None:
        """Enter a number."""
        text = shown(points)
        self.table.set(row, column, text.replace(".", ",") if self.target.comma else text)


class Gradebook:
    """A gradebook as staff exported it; `read_gradebook` makes it."""

    def __init__(self, kind: Kind, table: Table) -> None:
        self._kind = kind
        self._table = table
        self._places = {name: _column(table, name) for name in _all_columns(kind)}
        self._rows = [row for row in map(self._row, range(1, len(table.rows))) if row]

    @property
    def kind(self) -> str:
        """Whose it is."""
        return self._kind.name

    @property
    def students(self) -> tuple[Student, ...]:
        """Who stands in it, without Canvas' test student."""
        return tuple(row.student for row in self._rows if row.student.name != _TEST_STUDENT)

    def fill(
        self,
        marks: Sequence[Mark],
        column: str = "",
        scale: bool = False,
        *,
        layout: str = "",
        title: str = "",
    ) -> Filled:
        """Enter the points of a class.

        Args:
            column: of the assignment in Canvas' gradebook: its title, with the number or without.
            scale: enter points as shares of those that the gradebook has.
            layout: of the download: one system's numbers mean nothing in another one's gradebook.
            title: of the assignment; may tell which column it is.

        Raises:
            InputError: it is not clear which column to fill.
        """
        filling = _Filling(self._table.copy(), scale, self._target(column, title))
        matched = match(self._rows, [mark.entry for mark in marks], self.kind, layout)
        by_id = {mark.entry.id: mark for mark in marks}
        students: dict[str, tuple[Student, ...]] = {}
        for row in self._rows:
            if row.number in matched.owners:
                owner = matched.owners[row.number].id
                students[owner] = (*students.get(owner, ()), row.student)
                self._enter(filling, row, by_id[owner])
        filling.notes += [f"{entry}: {_GROUP}" for entry in matched.groups]
        missing = [row.student for row in self._rows if row.number not in matched.claimed]
        return Filled(
            filling.table.text,
            tuple(student for student in missing if student.name != _TEST_STUDENT),
            tuple(sorted((entry, one_line(reason)) for entry, reason in matched.unmatched)),
            tuple(dict.fromkeys(map(one_line, filling.notes))),
            students,
        )

    def _row(self, row: int) -> Row | None:
        """The student in a row, or None if it is about something else."""
        kind = self._kind
        lms_id = self._get(row, kind.lms_id)
        if kind.name == "moodle":
            lms_id = "".join(re.findall(r"\d+$", lms_id))  # `Participant 12`
        email, sid = self._get(row, kind.email), self._get(row, kind.sid)
        name = " ".join(filter(None, (self._get(row, column) for column in kind.names)))
        if not (lms_id or email or sid):  # Canvas' "Points Possible", and an empty line
            return None
        ids = (email, sid, *(self._get(row, column) for column in kind.ids))
        return Row(row, Student(name, email, sid, lms_id), ids, self._get(row, kind.submission))

    def _get(self, row: int, name: str) -> str:
        place = self._places.get(name)
        return "" if place is None else self._table.get(row, place).strip()

    def _target(self, column: str, title: str) -> _Target:
        if self._kind.points:
            target = _Target(self._named(self._kind.points, column), self._places[self._kind.possible])
        else:
            target = self._canvas_target(column, title)
        cells = [self._table.get(row, target.points) for row in range(1, len(self._table.rows))]
        if target.possible is not None:
            cells += [self._table.get(row, target.possible) for row in range(1, len(self._table.rows))]
        comma = any(re.fullmatch(r"-?\d+,\d+", cell.strip()) for cell in cells)
        return _Target(target.points, target.possible, target.possible_row, comma)

    def _named(self, name: str, column: str) -> int:
        place = self._places[name]
        if place is None or column.strip().casefold() not in ("", name.casefold()):
            raise InputError(f"the column of a {self.kind} gradebook must be {name}, got {column}")
        return place

    def _canvas_target(self, column: str, title: str) -> _Target:
        possible_row = self._possible_row()
        candidates = dict(self._assignments(possible_row))
        chosen = _named_so(candidates, column) if column else _titled_so(candidates, title)
        if len(chosen) != 1:
            listed = ", ".join(one_line(name, 100) for name in candidates) or "none"
            told = f", and {one_line(title, 100)!r} fits {len(chosen)} of them" if title else ""
            got = f"got {column!r}" if column else f"got no name of one{told} (--column names it)"
            raise InputError(f"the gradebook's column must be one of: {listed}; {got}")
        return _Target(candidates[chosen[0]], possible_row=possible_row)

    def _possible_row(self) -> int | None:
        rows = range(1, len(self._table.rows))
        return next((row for row in rows if self._table.get(row, 0).strip() == "Points Possible"), None)

    def _assignments(self, possible_row: int | None) -> Iterator[tuple[str, int]]:
        """Canvas' columns of an assignment each: `Title (123)`."""
        for column in range(len(self._table.rows[0])):
            name = self._table.get(0, column).strip()
            possible = "" if possible_row is None else self._table.get(possible_row, column)
            if re.fullmatch(r".*\(\d+\)", name, re.DOTALL) and "read only" not in possible:
                yield name, column

    def _enter(self, filling: _Filling, row: Row, mark: Mark) -> None:
        """Enter one submission's points in one row, or note why not."""
        points, maximum = _points(mark)
        left = self._left(row.number, filling.target, mark, points)
        if left or points is None:
            filling.notes.append(f"{mark.entry.id}: not entered: {left}")
            return
        possible = filling.possible(row.number)
        if filling.scale:
            if not possible or not maximum:
                filling.notes.append(f"{mark.entry.id}: not entered: no number of points to scale to")
                return
            points *= possible / maximum
        elif filling.target.possible is not None and self.kind != "moodle" and maximum is not None:
            filling.write(row.number, filling.target.possible, maximum)
        elif possible is not None and maximum is not None and possible != maximum:
            filling.notes.append(
                f"the gradebook has {shown(possible)} points possible, the assignment {shown(maximum)}"
            )
        filling.write(row.number, filling.target.points, points)

    def _left(self, row: int, target: _Target, mark: Mark, points: float | None) -> str:
        """Why a cell stays as it is; "" if it does not."""
        if _not_final(mark):
            return mark.status
        if points is None:
            return "there is no score"
        if self._get(row, "Grade can be changed").casefold() == "no":
            return "the gradebook says that the grade cannot be changed"
        excused = self._table.get(row, target.points).strip().upper() in ("EX", "N/A")
        return f"the gradebook has {self._table.get(row, target.points).strip()}" if excused else ""


def _all_columns(kind: Kind) -> tuple[str, ...]:
    fixed = (kind.lms_id, kind.email, kind.sid, kind.submission, kind.points, kind.possible)
    return (*fixed, *kind.names, *kind.ids, "Grade can be changed")


def _points(mark: Mark) -> tuple[float | None, float | None]:
    """What a submission got, and what there was to get."""
    extra = mark.document.get("extra_data")
    return _finite(mark.document.get("score")), _finite(extra.get("max_score") if extra else None)


def _not_final(mark: Mark) -> bool:
    """Whether its points say nothing yet; staff's word on the total does, whatever the grader came to."""
    return mark.status not in (GRADED, STUDENT_ERROR) and "override" not in mark.document.get(
        "extra_data", {}
    )


def _finite(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None  # type: ignore[arg-type]


def _named_so(candidates: dict[str, int], column: str) -> list[str]:
    """Columns of this title, with its number or not."""
    wanted = column.strip().casefold()
    exact = [name for name in candidates if name.casefold() == wanted]
    return exact or [name for name in candidates if _title(name).casefold() == wanted]


def _titled_so(candidates: dict[str, int], title: str) -> list[str]:
    """Those that are called as the assignment is, or begin as it does; without a title, the only column."""
    if not title:
        return list(candidates)
    wanted = _beginnings(title)
    whole = [name for name in candidates if wanted and _beginnings(_title(name))[-1:] == wanted[-1:]]
    return whole or [
        name
        for name in candidates
        if (told := _beginnings(_title(name))) and wanted and (told[-1] in wanted or wanted[-1] in told)
    ]


def _beginnings(title: str) -> list[str]:
    """The title's first word, first two words, ..., without what is between words."""
    words = re.findall(r"[^\W_]+", title.casefold())
    return ["".join(words[: count + 1]) for count in range(len(words))]


def _title(name: str) -> str:
    return re.sub(r"\s*\(\d+\)$", "", name)


def number(text: str) -> float | None:
    """The number that a cell holds, with a decimal point or comma."""
    text = text.strip().replace(",", ".") if "." not in text else text.strip().replace(",", "")
    return float(text) if re.fullmatch(r"-?\d+(\.\d*)?", text) else None


def shown(points: float) -> str:
    """A number with no more decimals than it needs."""
    text = f"{points:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


# --- without a gradebook --------------------------------------------------------------------------

GRADESCOPE_COLUMNS = (
    *("First Name", "Last Name", "SID", "Email", "Sections", "Total Score", "Max Points", "Status"),
    *("Submission ID", "Submission Time", "Lateness (H:M:S)", "View Count", "Submission Count"),
)


def gradescope_rows(marks: Sequence[Mark]) -> str:
    """The points as CSV with the columns of Gradescope's scores, one row per student."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(GRADESCOPE_COLUMNS)
    for mark in marks:
        for student in mark.entry.students or (Student(mark.entry.id),):
            writer.writerow(map(defused, _gradescope_row(mark, student)))
    return buffer.getvalue()


def _gradescope_row(mark: Mark, student: Student) -> tuple[str, ...]:
    first, _, last = student.name.rpartition(" ")
    points, maximum = _points(mark) if not _not_final(mark) else (None, None)
    score, possible = ("" if value is None else shown(value) for value in (points, maximum))
    status = "Graded" if score else "Ungraded"
    who = (first or last, last if first else "", student.sid, student.email, "")
    return (*who, score, possible, status, mark.entry.id, mark.entry.submitted_at, "", "", "1")
