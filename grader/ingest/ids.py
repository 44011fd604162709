"""Names for submissions that are safe as file names everywhere, each its own."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace

from grader.ingest import Entry, Student
from grader.text import one_line

MAX_CHARACTERS = 100
MAX_BYTES = 200
"""File systems allow 255 bytes, and an ending comes behind."""

_FORBIDDEN = re.compile(r'[/\\:*?"<>|]')
_VERSION = re.compile(r"(\s*\([^()]*\)|[\s_-]+(copy|final|new|late|regrade|re-?sub[a-z]*))$", re.IGNORECASE)
"""What staff and students put behind the name of what is handed in again."""

_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)\s*(\.|$)", re.IGNORECASE)


def settle(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Give every entry a safe name of its own, and note what could be taken for each other."""
    groups: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.id, entry.source)):
        named = _shown(replace(entry, id=safe(entry.id)))
        groups.setdefault(_key(named.id), []).append(named)
    used = set(groups)  # the first of a group keeps the name
    settled: list[Entry] = []
    for first, *others in groups.values():
        same = [first, *(replace(entry, id=_free(entry.id, used)) for entry in others)]
        settled += [_noted(entry, same) for entry in same]
    return tuple(sorted(_with_persons(_with_versions(settled)), key=lambda entry: entry.id))


def _shown(entry: Entry) -> Entry:
    """With texts that can be shown: names come from a disk or from students."""
    students = (
        Student(*(one_line(text, 200) for text in (s.name, s.email, s.sid, s.lms_id))) for s in entry.students
    )
    return replace(entry, source=one_line(entry.source), students=tuple(students))


def safe(name: str) -> str:
    """The name, with what some system does not allow in a file's name made `_`; an ordinary one stays."""
    shown = "".join(character if character.isprintable() else "_" for character in name)
    cut = _cut(_FORBIDDEN.sub("_", shown), MAX_CHARACTERS, MAX_BYTES).rstrip(". ")
    if not cut:
        return "submission"
    if cut[0] in ".-":
        return f"_{cut[1:]}"
    return f"_{cut}" if _RESERVED.match(cut) else cut


def _cut(name: str, characters: int, size: int) -> str:
    return name[:characters].encode()[:size].decode(errors="ignore")


def _key(name: str) -> str:
    """The same for names that some file system takes for one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _free(name: str, used: set[str]) -> str:
    """The name, with a number behind it if it is in use; it is from now on."""
    free, number = name, 1
    while _key(free) in used:
        number += 1
        free = f"{_cut(name, MAX_CHARACTERS - 6, MAX_BYTES - 6)}-{number}"
    used.add(_key(free))
    return free


def _noted(entry: Entry, named: Sequence[Entry]) -> Entry:
    others = [f"{other.source} ({other.id})" for other in named if other is not entry]
    if not others:
        return entry
    notes = (*entry.notes, f"named like {', '.join(others)}: not merged")
    return replace(entry, notes=notes, named_like=tuple(other.id for other in named))


def _with_versions(entries: Sequence[Entry]) -> list[Entry]:
    """Note what may be another version of what is there: nobody has said which of them counts."""
    by_name = {_key(entry.id): entry for entry in entries if not entry.students}
    versions: dict[str, list[str]] = {}
    for key, entry in by_name.items():
        base = by_name.get(_key(_VERSION.sub("", entry.id)))
        if base is not None and _key(base.id) != key:
            versions.setdefault(base.id, [base.id]).append(entry.id)
    named_like = {name: tuple(names) for names in versions.values() for name in names}
    return [
        replace(
            entry,
            notes=(*entry.notes, f"may be the same person's as {_others(entry, named_like[entry.id])}"),
            named_like=tuple(dict.fromkeys((*named_like[entry.id], *entry.named_like))),
        )
        if entry.id in named_like
        else entry
        for entry in entries
    ]


def _others(entry: Entry, names: Iterable[str]) -> str:
    return ", ".join(name for name in names if name != entry.id)


def _with_persons(entries: Sequence[Entry]) -> list[Entry]:
    """Note who stands behind several entries."""
    handed_in: dict[str, list[str]] = {}
    for entry in entries:
        for person in set(map(_person, entry.students)) - {""}:
            handed_in.setdefault(person, []).append(entry.id)
    return [_noted_persons(entry, handed_in) for entry in entries]


def _noted_persons(entry: Entry, handed_in: dict[str, list[str]]) -> Entry:
    notes = list(entry.notes)
    for person in sorted(set(map(_person, entry.students)) - {""}):
        others = [other for other in handed_in[person] if other != entry.id]
        if others:
            notes.append(f"{person} stands behind {', '.join(sorted(others))}, too: not merged")
    return replace(entry, notes=tuple(notes))


def _person(student: Student) -> str:
    return student.lms_id or student.email.casefold() or student.sid
