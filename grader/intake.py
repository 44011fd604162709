"""Read a submission, a folder or a zip, into plain bytes; nothing of it is run or written to disk."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO

from grader.loader import MAX_DEPTH, find_parts

MAX_FILE_BYTES = 1 << 20
MAX_TOTAL_BYTES = 16 << 20
MAX_FILES = 2000
MAX_ENTRIES = 20_000
MAX_DIRECTORY_BYTES = 10 << 20
"""Caps on what is read; a homework's source is a few kilobytes."""

MAX_FOLDERS = MAX_DEPTH + 3
"""How many folders down files are read: helpers may lie in packages below the parts."""


Read = Callable[[int], bytes]
"""Gives the first so many bytes of a file."""


class InputError(Exception):
    """What was given cannot be graded: name, rule, got."""


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
        InputError: nothing there, not a folder or a zip, a zip that cannot be read, or no part in it.
    """
    try:
        if path.is_dir():
            basket = _within_caps(_in_folder(path))
        elif path.is_file():
            basket = _of_zip(path)
        else:
            raise InputError(f"the submission must be a folder or a zip file, got {path} (no such path)")
    except OSError as error:
        raise InputError(
            f"the submission must be readable, got {path} ({error.strerror or error})"
        ) from error
    parts = find_parts(list(basket.files), part_files)
    if not parts:
        wanted = ", ".join(part_files.values())
        seen = ", ".join(list(basket.files)[:5]) or "no Python file at all"
        raise InputError(f"the submission must hold one of {wanted}, got {path} with {seen}")
    return SubmissionFiles(basket.files, parts, basket.skipped)


@dataclass
class Basket:
    """A submission's files as they are read, no further than the caps.

    Attributes:
        files: bytes by path.
        skipped: what was left out, with the reason.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    _total: int = 0

    def take(self, name: str, read: Read) -> None:
        """Read a file, unless there is no room for it."""
        if self._total > MAX_TOTAL_BYTES or len(self.files) >= MAX_FILES:
            self.skipped[name] = "too many"
            return
        data = read(MAX_FILE_BYTES + 1)
        self._total += len(data)
        if len(data) > MAX_FILE_BYTES:
            self.skipped[name] = "too large"
        else:
            self.files[name] = data


def _within_caps(sources: Mapping[str, Read]) -> Basket:
    """Read files in order of their names."""
    basket = Basket()
    for name in sorted(sources):
        basket.take(name, sources[name])
    return basket


def _in_folder(root: Path) -> dict[str, Read]:
    """Regular Python files; links are not followed, folders not entered deeper than a part may lie."""
    found: dict[str, Read] = {}
    for folder, folders, names in os.walk(root):
        depth = len(Path(folder).relative_to(root).parts)
        folders[:] = [name for name in folders if not is_noise(name)] if depth < MAX_FOLDERS else []
        for name in names:
            path = Path(folder, name)
            if name.endswith(".py") and stat.S_ISREG(path.lstat().st_mode):
                found[path.relative_to(root).as_posix()] = partial(_read_file, path)
    return found


def open_file(path: Path) -> IO[bytes]:
    """Open what is not a link."""
    return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb")


def _read_file(path: Path, size: int) -> bytes:
    with open_file(path) as file:
        return file.read(size)


def _of_zip(path: Path) -> Basket:
    if not zipfile.is_zipfile(path):
        raise InputError(f"the submission must be a folder or a zip file, got {path} (not a zip)")
    try:
        with path.open("rb") as file, open_zip(file, str(path)) as archive:
            # Of several entries of one name the last counts, as it does for those who unpack.
            found = {name: entry for entry in archive.infolist() if (name := _name_of(entry))}
            locked = [entry.filename for entry in found.values() if is_locked(entry)]
            if locked:
                raise InputError(f"the zip must not be encrypted, got {path} ({locked[0]})")
            return _within_caps({name: partial(_read_entry, archive, found[name]) for name in found})
    except BROKEN_ZIP as error:
        raise InputError(f"the zip must be intact, got {path} ({error})") from error


BROKEN_ZIP = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    ValueError,
    zlib.error,
    LZMAError,
)
"""What `zipfile` raises over a zip that is broken, or packed in a way that it does not know."""


def open_zip(file: IO[bytes], shown: str) -> zipfile.ZipFile:
    """Open a student's zip, unless it has more entries than a homework could.

    Raises:
        InputError: too many entries.
    """
    # Before `zipfile` builds an object for each of them: some megabytes can hold millions.
    if _directory_bytes(file) > MAX_DIRECTORY_BYTES:
        raise InputError(f"a zip must have at most {MAX_ENTRIES} entries, got {shown} with more")
    archive = zipfile.ZipFile(file)
    entries = len(archive.infolist())
    if entries > MAX_ENTRIES:
        archive.close()
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
    """The path of a Python file that may be read, or nothing."""
    path = path_in_zip(entry)
    if path is None or not is_regular(entry) or path.suffix != ".py" or any(map(is_noise, path.parts)):
        return ""
    return path.as_posix()


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, size: int) -> bytes:
    with archive.open(entry) as file:
        return file.read(size)


def is_noise(name: str) -> bool:
    """Whether a file or folder is what systems and tools leave behind."""
    return name.startswith(".") or name in ("__MACOSX", "__pycache__", "Thumbs.db", "desktop.ini")
