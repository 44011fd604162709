"""A folder of folders and zips, one per submission."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from grader.ingest import Entry
from grader.ingest.contents import BY_HAND, read_files
from grader.ingest.tree import File, Folder, files_below

ARCHIVES = (".zip", *BY_HAND)


def fits(root: Folder) -> bool:
    """Whether there is anything in it that is a submission's size."""
    return bool(root.folders) or any(map(is_archive, root.files))


def read(root: Folder, part_files: Mapping[str, str]) -> tuple[list[Entry], dict[str, str]]:
    """Its submissions, and what belongs to none, with the reason."""
    entries = [folder_entry(folder, part_files) for folder in root.folders.values()]
    unmatched = {}
    for name, file in root.files.items():
        if is_archive(name):
            entries.append(_archive_entry(name, file, part_files))
        else:
            unmatched[file.path] = file.problem or "neither a folder nor a zip"
    return entries, unmatched


def folder_entry(folder: Folder, part_files: Mapping[str, str]) -> Entry:
    """The submission that is a folder, by whomever."""
    return Entry(folder.name, folder.path, (), partial(read_files, partial(files_below, folder), part_files))


def _archive_entry(name: str, file: File, part_files: Mapping[str, str]) -> Entry:
    return Entry(_stem(name), file.path, (), partial(read_files, lambda: {name: file}, part_files))


def is_archive(name: str) -> bool:
    """Whether a file may be a submission of its own."""
    return name.lower().endswith(ARCHIVES)


def _stem(name: str) -> str:
    ending = max((end for end in ARCHIVES if name.lower().endswith(end)), key=len)
    return name[: -len(ending)]
