"""A folder of folders and zips, one per submission; or one per section of the class, which holds them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from grader.ingest import Entry
from grader.ingest.contents import BY_HAND, read_files
from grader.ingest.tree import File, Folder, files_below
from grader.loader import PACKAGE, find_parts
from grader.text import one_line

ARCHIVES = (".zip", *BY_HAND)

MAX_UPLOADS = 6
"""Zips that one student may have handed in."""


def fits(root: Folder) -> bool:
    """Whether there is anything in it that is a submission's size."""
    return bool(root.folders) or any(map(is_archive, root.files))


def read(root: Folder, part_files: Mapping[str, str]) -> tuple[list[Entry], dict[str, str]]:
    """Its submissions, and what belongs to none, with the reason."""
    sections = list(root.folders.values())
    if _are_sections(sections, part_files):
        entries, unmatched = _in_sections(sections, part_files)
    else:
        entries, unmatched = [folder_entry(folder, part_files) for folder in sections], {}
    for name, file in root.files.items():
        if is_archive(name):
            entries.append(_archive_entry(name, file, part_files))
        else:
            unmatched[file.path] = file.problem or "neither a folder nor a zip"
    return entries, unmatched


def folder_entry(folder: Folder, part_files: Mapping[str, str]) -> Entry:
    """The submission that is a folder, by whomever."""
    return Entry(folder.name, folder.path, (), partial(read_files, partial(files_below, folder), part_files))


def _in_sections(
    sections: Sequence[Folder], part_files: Mapping[str, str]
) -> tuple[list[Entry], dict[str, str]]:
    """The submissions in sections; a name that is in two is told from the other by its section."""
    found: list[tuple[Folder, Entry]] = []
    unmatched = {item.path: "its name begins with a dot" for section in sections for item in section.hidden}
    for section in sections:
        found += [(section, folder_entry(folder, part_files)) for folder in section.folders.values()]
        for name, file in section.files.items():
            if is_archive(name):
                found.append((section, _archive_entry(name, file, part_files)))
            else:
                unmatched[file.path] = file.problem or "neither a folder nor a zip"
    count = Counter(entry.id for _, entry in found)
    entries = [
        replace(
            entry,
            id=entry.id if count[entry.id] == 1 else f"{section.name} {entry.id}",
            notes=(f"section {one_line(section.name, 100)}",),
        )
        for section, entry in found
    ]
    entries += [folder_entry(section, part_files) for section in sections if not section.names]
    return entries, unmatched


def _are_sections(folders: Sequence[Folder], part_files: Mapping[str, str]) -> bool:
    """Whether each holds submissions and is none: half of them several, and seldom of the same names.

    A class whose students keep two versions has the same names again and again.
    """
    told: list[list[str]] = []
    several = 0
    try:
        for folder in map(replace, folders):  # copies: what is seen now may have changed when its turn comes
            inner, archives = _submissions_in(folder, part_files)
            if not inner and not archives and folder.names:
                return False
            told += [inner + archives] if inner or archives else []
            several += len(inner) > 1 or _are_of_several(archives, folder.name)
    except OSError:  # a folder that cannot be read is told when its turn comes
        return False
    count = Counter(name for names in told for name in names)
    unique = sum(number == 1 for number in count.values())
    return len(told) > 1 and 2 * several >= len(told) and 2 * unique > len(count)


def _submissions_in(folder: Folder, part_files: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The folders and zips in it that could each be a submission; none if it looks like one itself."""
    if PACKAGE in folder.folders or any(name.lower().endswith(".py") for name in folder.files):
        return [], []
    inner = [name for name, inside in folder.folders.items() if _could_be_one(inside, part_files)]
    return inner, [_stem(name) for name in folder.files if is_archive(name)]


def _are_of_several(archives: Sequence[str], owner: str) -> bool:
    """Whether so many zips are of several people, and not one's uploads.

    Who uploads often gives them one name, with numbers, or a few ones that begin with their own.
    """
    if len(archives) <= MAX_UPLOADS and all(owner.lower() in _words(name) for name in archives):
        return False
    kinds = {"".join(filter(str.isalpha, name.lower())) or name for name in archives}
    return len(archives) > 2 and 2 * len(kinds) > len(archives)


def _words(name: str) -> list[str]:
    return re.split(r"[\W_\d]+", name.lower())


def _could_be_one(folder: Folder, part_files: Mapping[str, str]) -> bool:
    below = files_below(folder)
    return bool(find_parts(list(below), part_files)) or any(map(is_archive, below))


def _archive_entry(name: str, file: File, part_files: Mapping[str, str]) -> Entry:
    return Entry(_stem(name), file.path, (), partial(read_files, lambda: {name: file}, part_files))


def is_archive(name: str) -> bool:
    """Whether a file may be a submission of its own."""
    return name.lower().endswith(ARCHIVES)


def _stem(name: str) -> str:
    ending = max((end for end in ARCHIVES if name.lower().endswith(end)), key=len)
    return name[: -len(ending)]
