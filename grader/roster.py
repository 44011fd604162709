"""Which row of a gradebook is whose submission's.

A wrong grade is worse than a missing one: what does not belong to one student's row for certain belongs to
none, with the reason.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from grader.ingest import Entry, Student


@dataclass(frozen=True)
class Row:
    """A student in a gradebook.

    Attributes:
        number: of the row in its table.
        ids: student numbers, logins and addresses.
        submission: names what the student handed in, alone or with others; "" where the gradebook does not.
    """

    number: int
    student: Student
    ids: tuple[str, ...]
    submission: str = ""


@dataclass
class Matched:
    """Rows and submissions.

    Attributes:
        owners: the submission of a row, by the row's number.
        claimed: rows that some submission fits, even if it is not certain whose they are.
        unmatched: submissions without a row, or not with one for each student, with the reason.
    """

    owners: dict[int, Entry] = field(default_factory=dict)
    claimed: set[int] = field(default_factory=set)
    unmatched: list[tuple[str, str]] = field(default_factory=list)


def match(rows: Sequence[Row], entries: Sequence[Entry], kind: str, layout: str) -> Matched:
    """Find the row of each student of each submission.

    Args:
        kind: whose gradebook it is.
        layout: whose download it is: only in one system do its own numbers mean the same. "" if unknown.
    """
    roster = _Roster(rows, kind, layout)
    matched = Matched()
    claims: dict[int, list[Entry]] = {}
    for entry in entries:
        found, reasons = roster.rows_of(entry)
        matched.unmatched += [(entry.id, reason) for reason in reasons]
        for row in found:
            claims.setdefault(row.number, []).append(entry)
    for number, claimants in claims.items():
        matched.claimed.add(number)
        if len(claimants) == 1:
            matched.owners[number] = claimants[0]
        for entry in claimants if len(claimants) > 1 else []:
            others = ", ".join(sorted(other.id for other in claimants if other is not entry))
            matched.unmatched.append((entry.id, f"its row is also that of {others}: not filled"))
    return matched


class _Roster:
    """A gradebook's rows, by all that names them."""

    def __init__(self, rows: Sequence[Row], kind: str, layout: str) -> None:
        self._own = layout in ("", kind)
        self._certain = layout == kind
        # Moodle counts participants anew in each assignment: a number may be another student's there.
        self._check_names = kind == "moodle" or not self._certain
        self._by_submission = _index((_letters(row.submission), row) for row in rows)
        self._by_lms_id = _index((_key(row.student.lms_id), row) for row in rows)
        self._by_id = _index((key, row) for row in rows for key in set(map(_key, row.ids)))
        self._by_name = _index((_words(row.student.name), row) for row in rows)

    def rows_of(self, entry: Entry) -> tuple[list[Row], list[str]]:
        """The rows of those who handed it in, and why there are not more."""
        together = [row for row in self._together(entry) if _may_be(row.student, entry.students)]
        if together:
            return together, []
        rows: dict[int, Row] = {}
        reasons = []
        for student in entry.students or (Student(entry.id),):
            # Staff call folders by whatever names a student.
            found = self._row_of(student, (student.email, student.sid) if entry.students else (entry.id,))
            if isinstance(found, Row):
                rows[found.number] = found
            else:
                reasons.append(found)
        return list(rows.values()), reasons

    def _together(self, entry: Entry) -> Sequence[Row]:
        """All rows that name this submission: by its folder, or, on the system itself, a team's name."""
        names = [entry.source.rpartition("/")[2]]
        names.append(re.sub(r"^submission_|\.(pdf|zip)$", "", names[0]))
        names += [student.name for student in entry.students if self._own]
        return next((rows for name in names if (rows := self._by_submission.get(_letters(name)))), ())

    def _row_of(self, student: Student, ids: Sequence[str]) -> Row | str:
        """The student's row, or why there is none."""
        numbered = student.lms_id and self._own and self._by_lms_id
        if numbered and (self._certain or _key(student.lms_id) in self._by_lms_id):
            return self._by_number(student)
        shown = ", ".join(dict.fromkeys(filter(None, (student.name, student.email, student.sid)))) or "nobody"
        rows = {row.number: row for key in ids for row in self._by_id.get(_key(key), ())}
        if not rows:
            rows = {row.number: row for row in self._by_name.get(_words(student.name), ())}
            if any(_contradict(student, row.student) for row in rows.values()):
                return f"only the name fits a row: {shown}"
        if len(rows) == 1:
            return next(iter(rows.values()))
        return f"{len(rows) or 'no'} rows fit {shown}"

    def _by_number(self, student: Student) -> Row | str:
        rows = self._by_lms_id.get(_key(student.lms_id), ())
        if len(rows) != 1:
            return f"{len(rows) or 'no'} rows have the number {student.lms_id}"
        name = rows[0].student.name
        if self._check_names and student.name and name and not _alike(name, student.name):
            return f"number {student.lms_id} is {name} in the gradebook, {student.name} in the download"
        return rows[0]


def _index(pairs: Iterable[tuple[str, Row]]) -> Mapping[str, list[Row]]:
    index: dict[str, list[Row]] = {}
    for key, row in pairs:
        if key:
            index.setdefault(key, []).append(row)
    return index


def _may_be(student: Student, students: Sequence[Student]) -> bool:
    return not students or any(not _contradict(student, other) for other in students)


def _contradict(one: Student, other: Student) -> bool:
    """Whether two of one name are surely two."""
    pairs = ((one.email, other.email), (one.sid, other.sid))
    return any(mine and theirs and _key(mine) != _key(theirs) for mine, theirs in pairs)


def _alike(name: str, other: str) -> bool:
    return _letters(name) == _letters(other) or _words(name) == _words(other)


def _key(text: str) -> str:
    """The same for what differs in case, or in zeros that a spreadsheet took away."""
    key = text.strip().casefold()
    return key.lstrip("0") or "0" if key.isdecimal() else key


def _words(name: str) -> str:
    """The same for `Smith, Bob` and `Bob Smith`."""
    return " ".join(sorted(re.findall(r"\w+", _plain(name))))


def _letters(name: str) -> str:
    """The name without what systems take out of it."""
    return re.sub(r"[\W_]", "", _plain(name))


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
