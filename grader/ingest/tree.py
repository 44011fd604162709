"""A download as folders and files, on disk or within a zip; no content is read until it is asked for."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import IO

from grader.intake import (
    MAX_ENTRIES,
    MAX_FOLDERS,
    InputError,
    is_locked,
    is_noise,
    is_regular,
    open_file,
    path_in_zip,
)

MAX_PARTS = 16
"""How long a path in a zip may be: a few folders around a download, and those that files are read in."""


@dataclass(frozen=True)
class File:
    """A file in the download.

    Attributes:
        path: from the download's root.
        open: opens it for reading.
        problem: why it is not opened; "" if it may be.
    """

    path: str
    open: Callable[[], IO[bytes]]
    problem: str = ""

    def read(self, size: int) -> bytes:
        """Return its first bytes."""
        with self.open() as file:
            return file.read(size)


@dataclass
class Listing:
    """What a folder holds, by name.

    Attributes:
        noise: names of what systems and tools leave behind.
    """

    folders: dict[str, Folder] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)
    noise: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Folder:
    """A folder in the download; links are files in it that are not opened.

    Attributes:
        path: from the download's root, "" for the root.
        look: lists it.
    """

    path: str
    name: str
    look: Callable[[], Listing]

    @cached_property
    def _listing(self) -> Listing:
        return self.look()

    @property
    def folders(self) -> dict[str, Folder]:
        """The folders in it, by name."""
        return self._listing.folders

    @property
    def files(self) -> dict[str, File]:
        """The files in it, by name."""
        return self._listing.files

    @property
    def noise(self) -> set[str]:
        """The names in it that are neither."""
        return self._listing.noise

    @property
    def items(self) -> list[Folder | File]:
        """What is in it, in order of the names."""
        return sorted([*self.folders.values(), *self.files.values()], key=lambda item: item.path)

    @property
    def names(self) -> list[str]:
        """The names of what is in it."""
        return sorted([*self.folders, *self.files])


def walk(folder: Folder, depth: int = MAX_FOLDERS) -> Iterator[tuple[str, File]]:
    """Every file below, by path relative to the folder, no deeper than a part may lie."""
    for name, file in sorted(folder.files.items()):
        yield name, file
    for name, inner in sorted(folder.folders.items()) if depth else []:
        for path, file in walk(inner, depth - 1):
            yield f"{name}/{path}", file


def files_below(folder: Folder) -> dict[str, File]:
    """What `walk` finds.

    Raises:
        InputError: more than a homework could have.
    """
    found = dict(islice(walk(folder), MAX_ENTRIES + 1))
    if len(found) > MAX_ENTRIES:
        raise InputError(f"a submission must have at most {MAX_ENTRIES} files, got {folder.path} with more")
    return found


def below(folder: str, name: str) -> str:
    """The path of what is in a folder."""
    return f"{folder}/{name}" if folder else name


def disk_folder(path: Path, shown: str = "") -> Folder:
    """A folder on disk.

    Args:
        shown: its path from the download's root.
    """
    return Folder(shown, path.name or path.resolve().name, partial(_on_disk, path, shown))


def _on_disk(path: Path, shown: str) -> Listing:
    listing = Listing()
    with os.scandir(path) as entries:
        for entry in entries:
            inner, where = below(shown, entry.name), Path(entry.path)
            if is_noise(entry.name):
                listing.noise.add(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                listing.folders[entry.name] = disk_folder(where, inner)
            else:
                problem = "" if entry.is_file(follow_symlinks=False) else "a link or a device"
                listing.files[entry.name] = File(inner, partial(open_file, where), problem)
    return listing


def zip_folder(archive: zipfile.ZipFile, name: str, shown: str = "") -> tuple[Folder, dict[str, str]]:
    """What a zip holds, as a folder; and what would lead out of it, with the reason, by name.

    Args:
        shown: the zip's path from the download's root.
    """
    root, outside = Listing(), {}
    for entry in archive.infolist():
        path = path_in_zip(entry)
        if path is None:
            outside[below(shown, entry.filename)] = "leads out of the zip"
        elif len(path.parts) <= MAX_PARTS:
            _place(root, path.parts, archive, entry, shown)
    return Folder(shown, name, lambda: root), outside


def _place(
    root: Listing, parts: tuple[str, ...], archive: zipfile.ZipFile, entry: zipfile.ZipInfo, shown: str
) -> None:
    """Enter one entry of a zip, and the folders above it; of several of one name the last counts."""
    is_folder = entry.filename.endswith(("/", "\\"))
    listing = root
    for number, part in enumerate(parts, 1):
        path = below(shown, "/".join(parts[:number]))
        if is_noise(part):
            listing.noise.add(part)
            return
        if number == len(parts) and not is_folder:
            listing.files[part] = File(path, partial(archive.open, entry), _problem(entry))
        else:
            listing = _enter(listing, part, path)


def _enter(listing: Listing, name: str, path: str) -> Listing:
    if name not in listing.folders:
        inner = Listing()
        listing.folders[name] = Folder(path, name, lambda: inner)
    return listing.folders[name].look()


def _problem(entry: zipfile.ZipInfo) -> str:
    if not is_regular(entry):
        return "a link or a device"
    return "it takes a password" if is_locked(entry) else ""
