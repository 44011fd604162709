"""What Canvas' "Download Submissions" gives: files with the student's name and two numbers before their own.

`NAME[_LATE]_USER_ATTACHMENT_FILE`; text and links as `NAME[_LATE]_USER_text.html` and `..._link.html`; in
anonymous grading `anon_ID` stands for name and user. A file that is handed in again gets `-1`, `-2` before
its ending. Source: Canvas' `lib/content_zipper.rb`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from grader.ingest import Entry, Student
from grader.ingest.contents import read_files
from grader.ingest.tree import File, Folder, files_below
from grader.intake import InputError
from grader.text import one_line

# Left to right, and as little as possible for the name: what the student called the file may hold anything.
_WHAT = r"_(?:(?P<attachment>\d+)_(?P<file>.+)|(?P<typed>text|link)\.html)"
_NAMES = (
    re.compile(
        rf"(?P<late>LATE_)?(?P<who>anon_[^\W_]+)(?P<name>)(?P<user>)(?P<late_2>_LATE)?{_WHAT}", re.DOTALL
    ),
    re.compile(rf"(?P<name>[^\s.()-]*?)(?P<late>_LATE)?_(?P<user>\d+){_WHAT}", re.DOTALL),
)

_AGAIN = re.compile(
    r"(?P<stem>.+?)(?P<copies>(?:-\d{1,3}|\s*\(\d{1,3}\))+)(?P<ending>(?:\.[^.]*)?)", re.DOTALL
)
"""What Canvas puts before the ending of a file that comes again, and a browser where it is there."""


@dataclass(frozen=True)
class _Upload:
    """One file of one student, or the folder that staff unpacked it to.

    Attributes:
        who: names the student among all.
        file: as the student called it, without the marks of a copy.
        turn: later uploads of a file have higher ones.
    """

    who: str
    student: Student
    late: bool
    file: str
    turn: tuple[tuple[int, ...], int]
    item: File | Folder


def fits(root: Folder) -> bool:
    """Whether most names are Canvas'."""
    return 2 * sum(_parsed(name) is not None for name in root.names) > len(root.names)


def read(root: Folder, part_files: Mapping[str, str]) -> tuple[list[Entry], dict[str, str]]:
    """Its submissions, and what belongs to none, with the reason.

    Raises:
        InputError: no name is Canvas'.
    """
    found: dict[str, list[_Upload]] = {}
    unmatched: dict[str, str] = {}
    for item in root.items:
        upload = _upload(item)
        if upload is None:
            unmatched[item.path] = "not named as Canvas names submissions"
        else:
            found.setdefault(upload.who, []).append(upload)
    if not found:
        raise InputError(
            "a download from Canvas must have files NAME_USER_ATTACHMENT_FILE, "
            f"got {', '.join(root.names[:5]) or 'nothing'}"
        )
    return [_entry(who, uploads, part_files) for who, uploads in found.items()], unmatched


def _parsed(name: str) -> re.Match[str] | None:
    matches = (pattern.fullmatch(name) for pattern in _NAMES)
    return next((match for match in matches if match), None)


def _upload(item: File | Folder) -> _Upload | None:
    match = _parsed(item.path.rpartition("/")[2])
    if match is None:
        return None
    groups = match.groupdict()
    who = groups.get("who") or f"{groups['name']}_{groups['user']}"
    student = Student(name=groups["name"], lms_id=groups["user"] or who)
    late = bool(groups["late"] or groups.get("late_2"))
    if groups["typed"] and isinstance(item, File):
        typed = replace(item, problem="typed into Canvas, or a link")
        return _Upload(who, student, late, f"{groups['typed']}.html", ((), 0), typed)
    file, copies = _without_copies(groups["file"] or item.path)
    return _Upload(who, student, late, file, (copies, int(groups["attachment"] or 0)), item)


def _without_copies(file: str) -> tuple[str, tuple[int, ...]]:
    """`hw-2 (1).zip` is `hw.zip`, copies 2 and 1."""
    match = _AGAIN.fullmatch(file)
    if match is None:
        return file, ()
    return match["stem"] + match["ending"], tuple(map(int, re.findall(r"\d+", match["copies"])))


def _entry(who: str, uploads: Sequence[_Upload], part_files: Mapping[str, str]) -> Entry:
    chosen, superseded, notes = _last_of_each(uploads)
    return Entry(
        who,
        _listed(upload.item.path for upload in uploads),
        (uploads[0].student,),
        partial(read_files, partial(_files, chosen), part_files, superseded),
        late=any(upload.late for upload in uploads),
        notes=tuple(notes),
    )


def _last_of_each(
    uploads: Sequence[_Upload],
) -> tuple[list[_Upload], dict[str, str], list[str]]:
    """The last upload of each file; the others, with the reason; and what staff should know of it."""
    by_file: dict[str, list[_Upload]] = {}
    for upload in uploads:
        by_file.setdefault(upload.file.removesuffix(".zip"), []).append(upload)
    chosen: list[_Upload] = []
    superseded: dict[str, str] = {}
    notes: list[str] = []
    for same in by_file.values():
        *earlier, last = sorted(same, key=lambda upload: (upload.turn, upload.item.path))
        chosen.append(last)
        superseded |= {upload.item.path: f"an earlier upload of {last.file}" for upload in earlier}
        if earlier:
            shown = one_line(last.item.path, 200)
            notes.append(f"{one_line(last.file, 100)}: took {shown}, the last of {len(same)} uploads")
    return chosen, superseded, notes


def _files(chosen: Sequence[_Upload]) -> dict[str, File]:
    files: dict[str, File] = {}
    for upload in chosen:
        if isinstance(upload.item, File):
            files[upload.file] = upload.item
        else:
            prefix = f"{upload.file}/" if len(chosen) > 1 else ""
            files |= {prefix + path: file for path, file in files_below(upload.item).items()}
    return files


def _listed(paths: Iterable[str]) -> str:
    first, *others = sorted(paths)
    return f"{first} and {len(others)} more" if others else first
