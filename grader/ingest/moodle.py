"""What Moodle's "Download all submissions" gives: folders, or files with the folder's name before theirs.

`NAME_ID_assignsubmission_PLUGIN`, where ID is the number after "Participant" in the grading worksheet;
in blind marking NAME is "Participant", for teams NAME and ID are the group's. Source: Moodle's
`mod/assign/classes/downloader.php`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from grader.ingest import Entry, Student
from grader.ingest.contents import read_files
from grader.ingest.tree import File, Folder, files_below
from grader.intake import InputError

_NAME = re.compile(
    r"(?P<name>.*?)(?:_(?P<id>\d+))?_assignsubmission_(?P<plugin>[a-z]+)(?:_(?P<file>.*))?", re.DOTALL
)


@dataclass
class _Submission:
    """What one participant or team handed in: files at its root, and folders whose content is."""

    files: dict[str, File] = field(default_factory=dict)
    folders: list[Folder] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


def fits(root: Folder) -> bool:
    """Whether most names are Moodle's."""
    return 2 * sum(_NAME.fullmatch(name) is not None for name in root.names) > len(root.names)


def read(root: Folder, part_files: Mapping[str, str]) -> tuple[list[Entry], dict[str, str]]:
    """Its submissions, and what belongs to none, with the reason.

    Raises:
        InputError: no name is Moodle's.
    """
    found: dict[tuple[str, str], _Submission] = {}
    unmatched: dict[str, str] = {}
    for item in [*root.items, *filter(is_named, root.hidden)]:
        name = item.path.rpartition("/")[2]
        match = _NAME.fullmatch(name)
        if match is None:
            unmatched[item.path] = "not named as Moodle names submissions"
        else:
            _add(found.setdefault((match["name"], match["id"] or ""), _Submission()), match, item)
    if not found:
        raise InputError(
            f"a download from Moodle must have names NAME_ID_assignsubmission_file, got {root.seen}"
        )
    return [_entry(*key, submission, part_files) for key, submission in found.items()], unmatched


def is_named(item: Folder | File) -> bool:
    """Whether its name is Moodle's; a student's name may begin with a dot."""
    return _NAME.fullmatch(item.path.rpartition("/")[2]) is not None


def _add(submission: _Submission, match: re.Match[str], item: Folder | File) -> None:
    submission.sources.append(item.path)
    if match["plugin"] != "file":
        typed = item.files if isinstance(item, Folder) else {match["file"] or "text": item}
        for name, file in typed.items():
            submission.files[name] = replace(file, problem="typed into Moodle")
    elif isinstance(item, Folder):
        submission.folders.append(item)
    else:
        submission.files[match["file"] or "file"] = item


def _entry(name: str, number: str, submission: _Submission, part_files: Mapping[str, str]) -> Entry:
    student = Student(name="" if name == "Participant" else name, lms_id=number)
    return Entry(
        f"{name}_{number}" if number else name,
        ", ".join(sorted(submission.sources)),
        (student,),
        partial(read_files, partial(_files, submission), part_files),
    )


def _files(submission: _Submission) -> dict[str, File]:
    files = dict(submission.files)
    for folder in submission.folders:
        files |= files_below(folder)
    return files
