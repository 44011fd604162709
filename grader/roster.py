"""Which row of a gradebook is whose submission's.

A wrong grade is worse than a missing one: what does not belong to one student's row for certain belongs to
none, with the reason.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
        groups: submissions of whole groups that the download knows only one student of, by id.
    """

    owners: dict[int, Entry] = field(default_factory=dict)
    claimed: set[int] = field(default_factory=set)
    unmatched: list[tuple[str, str]] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)


def match(rows: Sequence[Row], entries: Sequence[Entry], kind: str, layout: str) -> Matched:
    """Find the row of each student of each submission.

    Args:
        kind: whose gradebook it is.
        layout: whose download it is: only in one system do its own numbers mean the same. "" if unknown.
    """
    roster = _Roster(rows, entries, kind, layout)
    matched = Matched()
    claims: dict[int, list[Entry]] = {}
    for entry in entries:
        for fit in roster.fits(entry):
            matched.claimed |= {row.number for row in fit.rows}
            matched.unmatched += [(entry.id, fit.doubt)] if fit.doubt else []
            matched.groups += [entry.id] if fit.group else []
            for row in fit.rows if not fit.doubt else ():
                claims.setdefault(row.number, []).append(entry)
    for number, claimants in claims.items():
        if len(claimants) == 1:
            matched.owners[number] = claimants[0]
        for entry in claimants if len(claimants) > 1 else []:
            others = ", ".join(sorted(other.id for other in claimants if other is not entry))
            matched.unmatched.append((entry.id, f"its row is also that of {others}: not filled"))
    return matched


@dataclass(frozen=True)
class _Fit:
    """Rows that a submission, or one of its students, fits.

    Attributes:
        doubt: why none of them may be filled; "" if all may.
        group: whether the row is that of one of a group.
    """

    rows: Sequence[Row]
    doubt: str = ""
    group: bool = False


class _Roster:
    """A gradebook's rows, by all that names them."""

    def __init__(self, rows: Sequence[Row], entries: Sequence[Entry], kind: str, layout: str) -> None:
        self._rows = rows
        self._kind = kind
        self._own = layout in ("", kind)
        self._certain = layout == kind
        self._by_submission = _index((_exact(row.submission), row) for row in rows)
        self._by_squashed = _index((_letters(row.submission), row) for row in rows)
        self._by_lms_id = _index((_key(row.student.lms_id), row) for row in rows)
        self._by_id = _index((key, row) for row in rows for key in set(map(_key, row.ids)))
        self._by_name = _index((_words(row.student.name), row) for row in rows)
        names = {_exact(name) for entry in entries for name in self._names(entry)}
        self._squashed_names = Counter(map(_letters, names))

    def fits(self, entry: Entry) -> list[_Fit]:
        """The rows of those who handed it in, and why there are not more."""
        together = self._together(entry)
        if entry.students and together is None:
            if entry.guessed and self._certain and self._kind == "classroom":
                return [self._by_ending(entry)]
            return [
                self._of(student, (student.email, student.sid), entry.guessed) for student in entry.students
            ]
        if entry.students and together is not None:
            return [together]
        # Staff call folders by whatever names a student, or what was handed in.
        alone = self._of_several(entry) if entry.named_like else self._of(Student(entry.id), (entry.id,))
        if together is None:
            return [alone]
        rows = [*together.rows, *(row for row in alone.rows if row not in together.rows)]
        more = len(rows) > len(together.rows)
        return [_Fit(rows, f"{entry.id} may name more than one") if more else together]

    def _names(self, entry: Entry) -> list[str]:
        """What a gradebook may call it: its folder, Gradescope's number, in one system a team's name."""
        folder = entry.source.rpartition("/")[2]
        own = [student.name for student in entry.students if self._own and student.name]
        return list(dict.fromkeys([folder, re.sub(r"^submission_|\.(pdf|zip)$", "", folder), *own]))

    def _together(self, entry: Entry) -> _Fit | None:
        """All rows that name this submission, if any does."""
        names = self._names(entry)
        for name in names:
            rows = [row for row in self._by_submission.get(_exact(name), ()) if _may_be(row, entry)]
            if rows:
                return _Fit(rows)
        for squashed in map(_letters, names):
            rows = [row for row in self._by_squashed.get(squashed, ()) if _may_be(row, entry)]
            told = sorted({row.submission for row in rows})
            if rows and len(told) == 1 and self._squashed_names[squashed] == 1:
                return _Fit(rows)
            if rows:
                doubt = f"only without spaces and marks is it {' or '.join(told)}, as others are"
                return _Fit(rows, doubt)
        return None

    def _by_ending(self, entry: Entry) -> _Fit:
        """The row whose login a repository's name ends in, where it is not known where the login begins."""
        name = _exact(entry.source.rpartition("/")[2])
        rows = [row for row in self._rows if name.endswith(f"-{_exact(row.student.lms_id)}")]
        rows = [row for row in rows if row.student.lms_id]
        if len(rows) == 1 and not rows[0].submission:
            return _Fit(rows)
        logins = ", ".join(row.student.lms_id for row in rows) or "nobody's"
        return _Fit(rows, f"which login {name} ends in is not certain: {logins}")

    def _of_several(self, entry: Entry) -> _Fit:
        """The row of a name that several submissions go by."""
        name = entry.named_like[0]
        fit = self._of(Student(name), (name,))
        others = ", ".join(other for other in entry.named_like if other != entry.id)
        return _Fit(fit.rows, f"{others} goes by the same name: not filled") if fit.rows else fit

    def _of(self, student: Student, ids: Sequence[str], guessed: bool = False) -> _Fit:
        """The student's row, or those that it might be."""
        numbered = student.lms_id and self._own and self._by_lms_id
        if numbered and (self._certain or _key(student.lms_id) in self._by_lms_id):
            return self._by_number(student, guessed)
        shown = ", ".join(dict.fromkeys(filter(None, (student.name, student.email, student.sid)))) or "nobody"
        rows = {row.number: row for key in ids for row in self._by_id.get(_key(key), ())}
        if not rows:
            rows = {row.number: row for row in self._by_name.get(_words(student.name), ())}
            if any(_contradict(student, row.student) for row in rows.values()):
                return _Fit(list(rows.values()), f"only the name fits a row: {shown}")
        doubt = "" if len(rows) == 1 else f"{len(rows) or 'no'} rows fit {shown}"
        return _Fit(list(rows.values()), doubt)

    def _by_number(self, student: Student, guessed: bool) -> _Fit:
        rows = self._by_lms_id.get(_key(student.lms_id), ())
        by_name = self._named(student.name)
        if len(rows) != 1:
            return _Fit([*rows, *by_name], f"{len(rows) or 'no'} rows have the number {student.lms_id}")
        name, group = rows[0].student.name, False
        if student.name and name and not self._alike(name, student.name, elsewhere=bool(by_name)):
            # Canvas names a group's files by the group, and by the number of one of its students.
            group = self._kind == "canvas" and self._certain and not by_name and not guessed
            if not group:
                told = f"is {name} in the gradebook, {student.name} in the download"
                return _Fit([*rows, *by_name], f"number {student.lms_id} {told}")
        return _Fit(rows, group=group)

    def _named(self, name: str) -> list[Row]:
        """The rows of a name, which Canvas writes in one word."""
        if not name:
            return []
        if self._kind == "canvas" and self._certain:
            return [row for row in self._rows if _within(row.student.name, name, all)]
        return list(self._by_name.get(_words(name), ()))

    def _alike(self, name: str, other: str, *, elsewhere: bool) -> bool:
        """Whether a number's two names may be one student's; who marries still has the number.

        Moodle counts participants anew in each assignment: a number may be another student's there.

        Args:
            elsewhere: the other name fits another row.
        """
        if self._kind == "canvas" and self._certain:
            return _within(name, other, all) or (not elsewhere and _within(name, other, any))
        return _letters(name) == _letters(other) or _words(name) == _words(other)


def _within(name: str, squashed: str, how_many: Callable[[Iterable[bool]], bool]) -> bool:
    """Whether all or any words of a name stand in what Canvas makes of one: `smithbob`."""
    letters = _bare(squashed)
    words = [_bare(word) for word in re.findall(r"[^\W_]+", name)]
    long = [word for word in words if len(word) > 1 or not word.isascii()] or words
    return bool(long) and how_many(word in letters for word in long)


def _index(pairs: Iterable[tuple[str, Row]]) -> Mapping[str, list[Row]]:
    index: dict[str, list[Row]] = {}
    for key, row in pairs:
        if key:
            index.setdefault(key, []).append(row)
    return index


def _may_be(row: Row, entry: Entry) -> bool:
    return not entry.students or any(not _contradict(row.student, other) for other in entry.students)


def _contradict(one: Student, other: Student) -> bool:
    """Whether two of one name are surely two."""
    pairs = ((one.email, other.email), (one.sid, other.sid))
    return any(mine and theirs and _key(mine) != _key(theirs) for mine, theirs in pairs)


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


def _bare(name: str) -> str:
    """Its letters, without their accents, too."""
    return _letters("".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c)))


def _exact(name: str) -> str:
    return _plain(name.strip())


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
