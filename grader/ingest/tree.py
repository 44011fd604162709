"""A download as folders and files, on disk or within a zip; no content is read until it is asked for."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import IO

from grader.intake import (
    MAX_ENTRIES,
    MAX_FOLDERS,
    PACKAGES,
    is_locked,
    is_noise,
    is_packages,
    is_regular,
    open_file,
    path_in_zip,
)
from grader.text import one_line

MAX_PARTS = 16
"""How long a path in a zip may be: a few folders around a download, and those that files are read in."""

MAX_OTHERS = 200
"""Of files that are neither Python nor a zip no more are kept in mind."""

LOCKED = "it takes a password"
TOO_MANY = "too many files: the rest was not looked at"


@dataclass(frozen=True)
class File:
    """A file in the download.

    Attributes:
        path: from the download's root.
        open: opens it for reading.
        problem: why it is not opened; "" if it may be.
        earlier: of a zip, those uploaded before it that may be other parts; latest first.
    """

    path: str
    open: Callable[[], IO[bytes]]
    problem: str = ""
    earlier: tuple[File, ...] = ()

    def read(self, size: int) -> bytes:
        """Return its first bytes."""
        with self.open() as file:
            return file.read(size)


@dataclass
class Listing:
    """What a folder holds, by name.

    Attributes:
        noise: names of what systems and tools leave behind.
        hidden: what of that no system or tool is known for: a person may have meant it.
    """

    folders: dict[str, Folder] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)
    noise: set[str] = field(default_factory=set)
    hidden: Listing | None = None

    def room_for(self, name: str) -> Listing | None:
        """Where an item of this name is entered: here, among what is hidden, or nowhere."""
        if not is_noise(name):
            return self
        self.noise.add(name)
        if _is_known(name):
            return None
        self.hidden = self.hidden or Listing()
        return self.hidden

    @property
    def items(self) -> list[Folder | File]:
        """What can be looked at, in order of the names."""
        return sorted([*self.folders.values(), *self.files.values()], key=lambda item: item.path)


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
    def hidden(self) -> list[Folder | File]:
        """What in it has a name with a dot in front, and is not known as noise."""
        return self._listing.hidden.items if self._listing.hidden else []

    @property
    def packages(self) -> bool:
        """Whether it holds installed packages."""
        return is_packages(self.name, self.files)

    @property
    def items(self) -> list[Folder | File]:
        """What is in it, in order of the names."""
        return self._listing.items

    @property
    def names(self) -> list[str]:
        """The names of what is in it."""
        return sorted([*self.folders, *self.files])

    @property
    def seen(self) -> str:
        """The first names, to be shown."""
        return ", ".join(one_line(name, 60) for name in self.names[:5]) or "nothing"


def files_below(folder: Folder) -> dict[str, File]:
    """Every file below by path relative to the folder, the least deep first, no deeper than a part may lie.

    Folders of installed packages are files in it that are not opened. Where there are too many files, a part
    is found all the same, if it lies no deeper than the rest.
    """
    found: dict[str, File] = {}
    others: dict[str, File] = {}
    level = [("", folder)]
    for depth in range(MAX_FOLDERS + 1):
        inner: list[tuple[str, Folder]] = []
        for prefix, here in level:
            if len(found) > MAX_ENTRIES:
                return found | {prefix or "/": File(here.path, _nothing, TOO_MANY)} | others
            for name, file in sorted(here.files.items()):
                if name.lower().endswith((".py", ".zip")):
                    found[prefix + name] = file
                elif len(others) < MAX_OTHERS:
                    others[prefix + name] = file
            inner += [(f"{prefix}{name}", one) for name, one in sorted(here.folders.items())]
        level = []
        for path, one in inner if depth < MAX_FOLDERS else []:
            if one.packages:
                found[path] = File(one.path, _nothing, PACKAGES)
            else:
                level.append((f"{path}/", one))
    return found | others


def _nothing() -> IO[bytes]:
    return io.BytesIO()


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
            inner, where, room = below(shown, entry.name), Path(entry.path), listing.room_for(entry.name)
            if room is None:
                continue
            if entry.is_dir(follow_symlinks=False):
                room.folders[entry.name] = disk_folder(where, inner)
            else:
                problem = "" if entry.is_file(follow_symlinks=False) else "a link or a device"
                room.files[entry.name] = File(inner, partial(open_file, where), problem)
    return listing


_KNOWN = (".git", ".github", ".vscode", ".idea", ".ipynb_checkpoints", ".venv", ".cache", ".classroom")
_KNOWN_BEGINNINGS = ("._", ".DS_Store", ".git", ".Trash", ".Spotlight-", ".fseventsd", ".pytest_", ".ruff_")


def _is_known(name: str) -> bool:
    """Whether a system or a tool leaves it behind; a person called .bob is no noise."""
    return not name.startswith(".") or name in _KNOWN or name.startswith(_KNOWN_BEGINNINGS)


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
    listing: Listing = root
    for number, part in enumerate(parts, 1):
        path = below(shown, "/".join(parts[:number]))
        room = listing.room_for(part)
        if room is None:
            return
        if number == len(parts) and not is_folder:
            room.files[part] = File(path, partial(archive.open, entry), _problem(entry))
        else:
            listing = _enter(room, part, path)


def _enter(listing: Listing, name: str, path: str) -> Listing:
    if name not in listing.folders:
        inner = Listing()
        listing.folders[name] = Folder(path, name, lambda: inner)
    return listing.folders[name].look()


def _problem(entry: zipfile.ZipInfo) -> str:
    if not is_regular(entry):
        return "a link or a device"
    return LOCKED if is_locked(entry) else ""
