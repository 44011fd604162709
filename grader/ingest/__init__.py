"""A class's submissions, as a learning management system gives them to staff."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.intake import SubmissionFiles


@dataclass(frozen=True)
class Student:
    """Who handed in, as far as the download says; "" where it does not.

    Attributes:
        sid: student number.
        lms_id: what the gradebook of the same system calls the student: Canvas' user id, Moodle's
            participant, a GitHub login.
    """

    name: str = ""
    email: str = ""
    sid: str = ""
    lms_id: str = ""


@dataclass(frozen=True)
class Entry:
    """One submission in the download.

    Attributes:
        id: names its result; safe as a file name everywhere, and no other entry's, whatever the case.
        source: where it lies in the download.
        students: who handed it in; nobody where the download does not say, several in a group.
        read: its files; raises `InputError` where nothing can be graded, `OSError` where the download itself
            cannot be read, which is no student's fault.
        late: None where the download does not say.
        submitted_at: as the download has it.
        notes: what staff should know about how it was taken.
        named_like: ids of all that go by one name, the name's own first, if it is one of them.
        guessed: what the download says of the students is only what names seem to say.
    """

    id: str
    source: str
    students: tuple[Student, ...]
    read: Callable[[], SubmissionFiles]
    late: bool | None = None
    submitted_at: str = ""
    notes: tuple[str, ...] = ()
    named_like: tuple[str, ...] = ()
    guessed: bool = False


@dataclass(frozen=True)
class Export:
    """A whole download.

    Attributes:
        layout: whose it is.
        entries: in order of their ids.
        unmatched: what belongs to no submission, with the reason, by path.
    """

    layout: str
    entries: tuple[Entry, ...]
    unmatched: Mapping[str, str]


LAYOUTS = ("gradescope", "canvas", "moodle", "classroom", "folders")


def read_export(path: Path, part_files: Mapping[str, str], layout: str = "") -> Export:
    """Recognise the layout of a folder or a zip, and find the submissions in it.

    Args:
        part_files: the file name of each part.
        layout: one of `LAYOUTS`, if it should not be recognised.

    Raises:
        InputError: no such path, not a folder or a zip, or nothing in it that could be a submission.
    """
    from grader.ingest.recognise import read_download  # it is built on the classes above

    return read_download(path, part_files, layout)
