"""What Canvas' "Download Submissions" gives: files with the student's name and two numbers before their own.

`NAME[_LATE]_USER_ATTACHMENT_FILE`; text and links as `NAME[_LATE]_USER_text.html` and `..._link.html`; in
anonymous grading `anon_ID` stands for name and user. A file that is handed in again gets `-1`, `-2` before
its ending; attachments are numbered as they come. For a group one member stands for all, under the group's
name. Source: Canvas' `lib/content_zipper.rb`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from grader.ingest import Entry, Student
from grader.ingest.contents import left_open, read_files
from grader.ingest.tree import File, Folder, files_below
from grader.intake import InputError
from grader.text import one_line

# Left to right, and as little as possible for the name: what the student called the file may hold anything.
# But a name may end in a number, too: `group_1`.
_WHAT = r"_(?:(?P<attachment>\d+)_(?P<file>.+)|(?P<typed>text|link)\.html)"
_NAMES = (
    re.compile(
        rf"(?P<late>LATE_)?(?P<who>anon_[^\W_]+)(?P<name>)(?P<user>)(?P<late_2>_LATE)?{_WHAT}", re.DOTALL
    ),
    re.compile(rf"(?P<name>[^\s.()-]*?)(?P<late>_LATE)?_(?P<user>\d+){_WHAT}", re.DOTALL),
)

_LATER = re.compile(r"(?P<attachment>\d+)_(?P<file>\D.*)", re.DOTALL)
"""A file's name that could be an attachment's number and the name, if the student's name ends in a number."""

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
        unsure: how its name could be read as well, if there is another way.
        earlier: uploads that may be other parts of it, latest first.
    """

    who: str
    student: Student
    late: bool
    file: str
    turn: tuple[int, tuple[int, ...]]
    item: File | Folder
    unsure: str = ""
    earlier: tuple[_Upload, ...] = ()

    @property
    def is_archive(self) -> bool:
        """Whether it may be one of several zips that belong together."""
        return isinstance(self.item, Folder) or self.file.lower().endswith(".zip")


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
        raise InputError(f"a download from Canvas must have files NAME_USER_ATTACHMENT_FILE, got {root.seen}")
    return [_entry(who, uploads, part_files) for who, uploads in found.items()], unmatched


def _parsed(name: str) -> re.Match[str] | None:
    matches = (pattern.fullmatch(name) for pattern in _NAMES)
    return next((match for match in matches if match), None)


def _upload(item: File | Folder) -> _Upload | None:
    match = _parsed(item.path.rpartition("/")[2])
    if match is None:
        return None
    groups, unsure = _last_number_as_attachment(match.groupdict())
    who = groups.get("who") or f"{groups['name']}_{groups['user']}"
    student = Student(name=groups["name"] or "", lms_id=groups["user"] or who)
    late = bool(groups["late"] or groups.get("late_2"))
    if groups["typed"] and isinstance(item, File):
        typed = replace(item, problem="typed into Canvas, or a link")
        return _Upload(who, student, late, f"{groups['typed']}.html", (0, ()), typed)
    file, copies = _without_copies(groups["file"] or item.path)
    return _Upload(who, student, late, file, (int(groups["attachment"] or 0), copies), item, unsure)


def _last_number_as_attachment(groups: dict[str, str | None]) -> tuple[dict[str, str | None], str]:
    """`NAME_1_341_208_file`: not NAME, user 1, but NAME_1, user 341; and how else, if that is as likely.

    A file's own name seldom begins with a number; and never is one much shorter than another attachment's.
    """
    later = _LATER.fullmatch(groups["file"] or "")
    if later is None or groups["late"] or groups.get("who"):
        return groups, ""
    first, last = str(groups["attachment"]), later["attachment"]
    if 2 * len(last) <= len(first):
        return groups, ""
    unsure = f"user {groups['user']}'s, as {groups['file']}" if 2 * len(first) > len(last) else ""
    name = f"{groups['name']}_{groups['user']}"
    return groups | {"name": name, "user": first, "attachment": last, "file": later["file"]}, unsure


def _without_copies(file: str) -> tuple[str, tuple[int, ...]]:
    """`hw-2 (1).zip` is `hw.zip`, copies 2 and 1."""
    match = _AGAIN.fullmatch(file)
    if match is None:
        return file, ()
    return match["stem"] + match["ending"], tuple(map(int, re.findall(r"\d+", match["copies"])))


def _entry(who: str, uploads: Sequence[_Upload], part_files: Mapping[str, str]) -> Entry:
    chosen, superseded, notes = _last_of_each(uploads)
    notes += [
        one_line(f"{u.item.path}: taken for user {u.student.lms_id}'s; it could also be {u.unsure}", 300)
        for u in uploads
        if u.unsure
    ]
    return Entry(
        who,
        _listed(upload.item.path for upload in uploads),
        (uploads[0].student,),
        partial(read_files, partial(_files, chosen, part_files), part_files, superseded),
        late=any(upload.late for upload in uploads),
        notes=tuple(notes),
        guessed=any(upload.unsure for upload in uploads),
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
        together = _together(last, earlier)
        chosen.append(replace(last, earlier=together))
        replaced = [upload.item.path for upload in earlier if upload not in together]
        superseded |= dict.fromkeys(replaced, f"an earlier upload of {last.file}")
        if earlier:
            shown = one_line(last.item.path, 200)
            rest = ", and from the others what it leaves open" if together else ""
            notes.append(f"{one_line(last.file, 100)}: took {shown}, the last of {len(same)} uploads{rest}")
    return chosen, superseded, notes


def _together(last: _Upload, earlier: Sequence[_Upload]) -> tuple[_Upload, ...]:
    """Earlier zips that may be other parts, latest first.

    `hw-1.zip` may have come again for `hw.zip`, or be its second part; another `hw.zip` came again.
    """
    if not last.is_archive:
        return ()
    alike = [upload for upload in earlier if upload.is_archive and type(upload.item) is type(last.item)]
    by_name = {upload.turn[1]: upload for upload in alike if upload.turn[1] != last.turn[1]}
    return tuple(sorted(by_name.values(), key=lambda upload: upload.turn, reverse=True))


def _files(chosen: Sequence[_Upload], part_files: Mapping[str, str]) -> dict[str, File]:
    files: dict[str, File] = {}
    for upload in chosen:
        if isinstance(upload.item, File):
            earlier = tuple(one.item for one in upload.earlier if isinstance(one.item, File))
            files[upload.file] = replace(upload.item, earlier=earlier)
        else:
            prefix = f"{upload.file}/" if len(chosen) > 1 else ""
            files |= {prefix + path: file for path, file in _unpacked(upload, part_files).items()}
    return files


def _unpacked(upload: _Upload, part_files: Mapping[str, str]) -> dict[str, File]:
    """The files of a zip that staff unpacked, and of those before it what it leaves open."""
    files: dict[str, File] = {}
    for one in (upload, *upload.earlier):
        older = files_below(one.item) if isinstance(one.item, Folder) else {}
        files = left_open(older, files, part_files) | files
    return files


def _listed(paths: Iterable[str]) -> str:
    first, *others = sorted(paths)
    return f"{first} and {len(others)} more" if others else first
