"""Read a submission, a folder or a zip, into plain bytes; nothing of it is run or written to disk."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO

from grader.loader import MAX_DEPTH, SKIPPED_FOLDERS, find_parts
from grader.text import one_line

MAX_FILE_BYTES = 1 << 20
MAX_TOTAL_BYTES = 16 << 20
MAX_FILES = 2000
MAX_ENTRIES = 100_000
MAX_DIRECTORY_BYTES = 16 << 20
"""Caps on what is read; a homework's source is a few kilobytes, a virtual environment beside it some
ten thousand files."""

MAX_PATH = 500
MAX_SKIPPED = 200
"""Caps on what is told: characters of a path, and files that were not read."""

MAX_FOLDERS = MAX_DEPTH + 3
"""How many folders down files are read: helpers may lie in packages below the parts."""


Read = Callable[[int], bytes]
"""Gives the first so many bytes of a file."""


class InputError(Exception):
    """What was given cannot be graded: name, rule, got."""


class Unreadable(OSError):
    """What was handed in may be sound, but what it is kept in is not: that is nobody's zero."""


@dataclass(frozen=True)
class SubmissionFiles:
    """The Python files of a submission.

    Attributes:
        files: bytes by POSIX path relative to the submission's root, in order of their paths.
        parts: the path chosen for each part that was found.
        skipped: files that were not read, with the reason.
    """

    files: Mapping[str, bytes]
    parts: Mapping[str, str]
    skipped: Mapping[str, str]

    @property
    def sha256(self) -> str:
        """Hash of all paths and contents."""
        digest = hashlib.sha256()
        for path, data in self.files.items():
            name = path.encode("utf-8", "surrogateescape")
            digest.update(b"%d %s %d " % (len(name), name, len(data)) + data)
        return digest.hexdigest()


def read_submission(path: Path, part_files: Mapping[str, str]) -> SubmissionFiles:
    """Read the Python files of a folder or a zip and choose the parts' files.

    Args:
        part_files: the file name of each part.

    Raises:
        InputError: neither a folder nor a zip, a zip that is broken, or no part in it.
        Unreadable: nothing there, or the system does not let it be read.
    """
    shown = one_line(str(path), MAX_PATH)
    try:
        if path.is_dir():
            basket = _in_folder(path, part_files)
        elif path.is_file():
            basket = _of_zip(path, shown, part_files)
        else:
            raise Unreadable(f"the submission must be a folder or a zip file, got {shown} (no such path)")
    except Unreadable:
        raise
    except OSError as error:
        # A zip that is broken has bz2 say so without a number of the system's, or sends us before its start.
        kind = InputError if error.errno in (None, errno.EINVAL) else Unreadable
        why = one_line(error.strerror or str(error))
        raise kind(f"the submission must be readable, got {shown} ({why})") from error
    files = dict(sorted(basket.files.items()))
    parts = find_parts(list(files), part_files)
    if not parts:
        wanted = ", ".join(part_files.values())
        seen = _told(list(files)) or f"no Python file {_instead(path)}"
        raise InputError(f"the submission must hold one of {wanted}, got {shown} with {seen}")
    return SubmissionFiles(files, parts, basket.skipped)


def _told(names: Sequence[str]) -> str:
    return ", ".join(one_line(name, 120) for name in names[:5])


def _instead(path: Path) -> str:
    names = [each.name for each in path.iterdir()] if path.is_dir() else []
    others = sorted(name for name in names if not is_noise(name) and not name.endswith(".py"))
    return f"but {_told(others)}" if others else "at all"


@dataclass
class Basket:
    """A submission's files as they are read, no further than the caps.

    Attributes:
        files: bytes by path.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    _skipped: dict[str, str] = field(default_factory=dict)
    _untold: int = 0
    _total: int = 0

    @property
    def skipped(self) -> dict[str, str]:
        """What was left out, with the reason; of very much the first."""
        more = {f"and {self._untold} more": "left out, too"} if self._untold else {}
        return dict(sorted(self._skipped.items())) | more

    def skip(self, name: str, reason: str) -> None:
        """Tell that a file was left out; a zip can name more than anybody would read."""
        if len(self._skipped) < MAX_SKIPPED:
            self._skipped[one_line(name, MAX_PATH)] = one_line(reason)
        else:
            self._untold += 1

    def take(self, name: str, read: Read) -> None:
        """Read a file, unless there is no room for it."""
        if len(name) > MAX_PATH:
            self.skip(name, "its path is too long")
        elif self._total > MAX_TOTAL_BYTES or len(self.files) >= MAX_FILES:
            self.skip(name, "too many")
        else:
            data = read(MAX_FILE_BYTES + 1)
            self._total += len(data)
            if len(data) > MAX_FILE_BYTES:
                self.skip(name, "too large")
            else:
                self.files[name] = data

    def take_all(self, sources: Mapping[str, Read], part_files: Mapping[str, str]) -> None:
        """Read files, those first that matter most."""
        for name in in_order(sources, part_files):
            self.take(name, sources[name])


def in_order(paths: Iterable[str], part_files: Mapping[str, str]) -> list[str]:
    """Parts, then what lies less deep: so that where there is too much, no part is left out for the rest."""
    ordered = sorted(paths, key=lambda path: (path.count("/"), path))
    return list(dict.fromkeys([*find_parts(ordered, part_files).values(), *ordered]))


PACKAGES = "installed packages"
"""Why a folder is not looked into."""


def is_packages(name: str, files: Collection[str]) -> bool:
    """Whether a folder holds installed packages, such as a virtual environment, and no homework.

    Args:
        files: the names of the files in it.
    """
    environment = "pyvenv.cfg" in files and not any(file.endswith(".py") for file in files)
    return environment or name in SKIPPED_FOLDERS


def _in_folder(root: Path, part_files: Mapping[str, str]) -> Basket:
    """Regular Python files; links are not followed, folders not entered deeper than a part may lie."""
    basket = Basket()
    found: dict[str, Read] = {}
    for folder, folders, names in os.walk(root, onerror=_raise):
        inside = Path(folder).relative_to(root)
        if inside.parts and is_packages(inside.name, names):
            folders.clear()
            basket.skip(inside.as_posix(), PACKAGES)
            continue
        deeper = len(inside.parts) < MAX_FOLDERS
        folders[:] = [name for name in folders if deeper and not is_noise(name)]
        for name in names:
            path = Path(folder, name)
            if name.endswith(".py") and not is_noise(name) and stat.S_ISREG(path.lstat().st_mode):
                found[(inside / name).as_posix()] = partial(_read_file, path)
    basket.take_all(found, part_files)
    return basket


def _raise(error: OSError) -> None:
    raise error


def open_file(path: Path) -> IO[bytes]:
    """Open what is not a link."""
    return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb")


def _read_file(path: Path, size: int) -> bytes:
    with open_file(path) as file:
        return file.read(size)


def _of_zip(path: Path, shown: str, part_files: Mapping[str, str]) -> Basket:
    if not zipfile.is_zipfile(path):
        raise InputError(f"the submission must be a folder or a zip file, got {shown} (not a zip)")
    basket = Basket()
    try:
        with path.open("rb") as file, open_zip(file, shown) as archive:
            # Of several entries of one name the last counts, as it does for those who unpack.
            found = {name: entry for entry in archive.infolist() if (name := _name_of(entry))}
            packages = _packages_in(found)
            for folder in packages:
                basket.skip(folder, PACKAGES)
            sources = {
                name: partial(_read_entry, archive, entry)
                for name, entry in found.items()
                if name.endswith(".py") and packages.isdisjoint(_folders_above(name))
            }
            locked = [name for name in sources if is_locked(found[name])]
            if locked:
                raise InputError(f"the zip must not be encrypted, got {shown} ({one_line(locked[0], 120)})")
            basket.take_all(sources, part_files)
    except BROKEN_ZIP as error:
        raise InputError(f"the zip must be intact, got {shown} ({why_broken(error)})") from error
    return basket


def _packages_in(names: Iterable[str]) -> set[str]:
    """The outermost folders of installed packages."""
    files: dict[str, list[str]] = {}
    for name in names:
        folder, _, file = name.rpartition("/")
        files.setdefault(folder, []).append(file)
        for above in _folders_above(name):
            files.setdefault(above, [])
    found = {folder for folder in files if folder and is_packages(folder.rpartition("/")[2], files[folder])}
    return {folder for folder in found if found.isdisjoint(_folders_above(folder))}


def _folders_above(path: str) -> list[str]:
    """`a/b` and `a` for `a/b/c`, no deeper than files are read."""
    parts = path.split("/")[: MAX_FOLDERS + 1]
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


BROKEN_ZIP = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    ValueError,
    OverflowError,
    MemoryError,
    struct.error,
    zlib.error,
    LZMAError,
)
"""What `zipfile` raises over a zip that is broken, or packed in a way that it does not know or that takes
gigabytes to unpack."""


def why_broken(error: Exception) -> str:
    """What is wrong with a zip, in a few words."""
    if isinstance(error, MemoryError):
        return "a zip that needs too much memory"
    return one_line(str(error), 200) or type(error).__name__


def open_zip(file: IO[bytes], shown: str) -> zipfile.ZipFile:
    """Open a student's zip, unless it has more entries than a homework could.

    Raises:
        InputError: too many entries.
    """
    # Before `zipfile` builds an object for each of them: some megabytes can hold millions.
    if _directory_bytes(file) > MAX_DIRECTORY_BYTES:
        shown = one_line(shown, MAX_PATH)
        raise InputError(f"a zip must have at most {MAX_ENTRIES} entries, got {shown} with more")
    archive = zipfile.ZipFile(file)
    entries = len(archive.infolist())
    if entries > MAX_ENTRIES:
        archive.close()
        shown = one_line(shown, MAX_PATH)
        raise InputError(f"a zip must have at most {MAX_ENTRIES} entries, got {shown} with {entries}")
    return archive


def _directory_bytes(file: IO[bytes]) -> int:
    """The size of a zip's table of contents: the most that what could be its last record says."""
    record_bytes = 22 + 20 + 56  # the last record, and what stands before it in a zip64
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - (1 << 16) - record_bytes))
    tail = file.read()
    sizes = [0]
    for found in re.finditer(rb"PK\x05\x06", tail):
        at = found.start()
        sizes.append(int.from_bytes(tail[at + 12 : at + 16], "little"))
        if tail[max(0, at - 20) : at].startswith(b"PK\x06\x07"):
            sizes[-1] = int.from_bytes(tail[max(0, at - 36) : at - 28], "little")
    return max(sizes)


def path_in_zip(entry: zipfile.ZipInfo) -> PurePosixPath | None:
    """Where an entry would lie in the folder it is unpacked to; None outside of it."""
    path = PurePosixPath(_text_of(entry).replace("\\", "/"))  # old Windows tools write backslashes
    outside = path.is_absolute() or ".." in path.parts or (path.parts[:1] and path.parts[0].endswith(":"))
    return None if outside else path


def _text_of(entry: zipfile.ZipInfo) -> str:
    """The name, as UTF-8 if it can be: many tools write that and do not say so."""
    if entry.flag_bits & 0x800:
        return entry.filename
    try:
        return entry.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return entry.filename


def is_regular(entry: zipfile.ZipInfo) -> bool:
    """Whether it is a file: no folder, link or device."""
    is_folder = entry.filename.endswith("/")  # `is_dir` fails over an empty name
    return not is_folder and stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG)


def is_locked(entry: zipfile.ZipInfo) -> bool:
    """Whether it takes a password to read it."""
    return bool(entry.flag_bits & 0x1)


def _name_of(entry: zipfile.ZipInfo) -> str:
    """The path of a file that may be read, or nothing."""
    path = path_in_zip(entry)
    if path is None or not is_regular(entry) or any(map(is_noise, path.parts)):
        return ""
    return path.as_posix()


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, size: int) -> bytes:
    with archive.open(entry) as file:
        return file.read(size)


def is_noise(name: str) -> bool:
    """Whether a file or folder is what systems and tools leave behind."""
    return name.startswith(".") or name in ("__MACOSX", "__pycache__", "Thumbs.db", "desktop.ini")
