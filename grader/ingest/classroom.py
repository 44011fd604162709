"""Clones of students' repositories, as `gh classroom clone student-repos` makes them.

`SLUG-submissions/SLUG-LOGIN/`; whether a repository's name ends in the login is not documented.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from grader.ingest import Entry, Student
from grader.ingest.folders import folder_entry
from grader.ingest.tree import Folder
from grader.intake import InputError
from grader.text import one_line

ENDING = "-submissions"


def fits(root: Folder) -> bool:
    """Whether all are clones whose names begin alike."""
    clones = all(".git" in folder.noise for folder in root.folders.values())
    return bool(root.folders and (_told(root) or (clones and _slug(root))))


def read(root: Folder, part_files: Mapping[str, str]) -> tuple[list[Entry], dict[str, str]]:
    """Its submissions, and what belongs to none, with the reason.

    Raises:
        InputError: the repositories' names have no beginning in common.
    """
    slug = _slug(root)
    if not slug:
        raise InputError(
            "a download of GitHub Classroom must have folders SLUG-LOGIN, "
            f"got {root.seen} in {one_line(root.path or root.name, 300)}"
        )
    entries = [
        replace(
            folder_entry(folder, part_files),
            students=(Student(lms_id=name.removeprefix(f"{slug}-")),),
            guessed=not _told(root),
        )
        for name, folder in root.folders.items()
    ]
    return entries, {file.path: file.problem or "no repository" for file in root.files.values()}


def _slug(root: Folder) -> str:
    """What comes before the login: as the folder's name says, else what all names begin with."""
    alike = os.path.commonprefix(list(root.folders)) if len(root.folders) > 1 else ""  # noqa: RUF071 - no paths
    return _told(root) or alike.rpartition("-")[0]


def _told(root: Folder) -> str:
    slug = root.name.removesuffix(ENDING)
    named = root.name.endswith(ENDING) and all(name.startswith(f"{slug}-") for name in root.folders)
    return slug if named else ""
