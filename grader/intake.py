"""Read a submission, a folder or a zip, into plain bytes; nothing of it is run or written to disk."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from lzma import LZMAError
from pathlib import Path, PurePosixPath

from grader.loader import MAX_DEPTH, find_parts

MAX_FILE_BYTES = 1 << 20
MAX_TOTAL_BYTES = 16 << 20
MAX_FILES = 2000
MAX_ENTRIES = 20_000
"""Caps on what is read; a homework's source is a few kilobytes."""


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
            files, skipped = _within_caps(_in_folder(path))
        elif path.is_file():
            files, skipped = _of_zip(path)
        else:
            raise InputError(f"the submission must be a folder or a zip file, got {path} (no such path)")
    except OSError as error:
        raise InputError(
            f"the submission must be readable, got {path} ({error.strerror or error})"
        ) from error
    parts = find_parts(list(files), part_files)
    if not parts:
        wanted = ", ".join(part_files.values())
        seen = ", ".join(list(files)[:5]) or "no Python file at all"
        raise InputError(f"the submission must hold one of {wanted}, got {path} with {seen}")
    return SubmissionFiles(files, parts, skipped)


def _within_caps(sources: Mapping[str, Read]) -> tuple[dict[str, bytes], dict[str, str]]:
    """Read files in order of their names, none further than the caps; return also what was left out."""
    files: dict[str, bytes] = {}
    skipped: dict[str, str] = {}
    total = 0
    for name in sorted(sources):
        if total > MAX_TOTAL_BYTES or len(files) >= MAX_FILES:
            skipped[name] = "too many"
            continue
        data = sources[name](MAX_FILE_BYTES + 1)
        total += len(data)
        if len(data) > MAX_FILE_BYTES:
            skipped[name] = "too large"
        else:
            files[name] = data
    return files, skipped


def _in_folder(root: Path) -> dict[str, Read]:
    """Regular Python files; links are not followed, folders not entered deeper than a part may lie."""
    found: dict[str, Read] = {}
    for folder, folders, names in os.walk(root):
        depth = len(Path(folder).relative_to(root).parts)
        # Helpers may lie in packages below the parts.
        folders[:] = [name for name in folders if not _is_noise(name)] if depth < MAX_DEPTH + 3 else []
        for name in names:
            path = Path(folder, name)
            if name.endswith(".py") and stat.S_ISREG(path.lstat().st_mode):
                found[path.relative_to(root).as_posix()] = partial(_read_file, path)
    return found


def _read_file(path: Path, size: int) -> bytes:
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
        return file.read(size)


def _of_zip(path: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    if not zipfile.is_zipfile(path):
        raise InputError(f"the submission must be a folder or a zip file, got {path} (not a zip)")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_ENTRIES:
                raise InputError(
                    f"a zip must have at most {MAX_ENTRIES} entries, got {path} with {len(entries)}"
                )
            # Of several entries of one name the last counts, as it does for those who unpack.
            found = {name: entry for entry in entries if (name := _name_of(entry))}
            locked = [entry.filename for entry in found.values() if entry.flag_bits & 0x1]
            if locked:
                raise InputError(f"the zip must not be encrypted, got {path} ({locked[0]})")
            return _within_caps({name: partial(_read_entry, archive, found[name]) for name in found})
    except _BROKEN_ZIP as error:
        raise InputError(f"the zip must be intact, got {path} ({error})") from error


_BROKEN_ZIP = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    ValueError,
    zlib.error,
    LZMAError,
)


def _name_of(entry: zipfile.ZipInfo) -> str:
    """The path of a Python file that may be read, or nothing."""
    name = PurePosixPath(entry.filename.replace("\\", "/"))  # old Windows tools write backslashes
    regular = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG)
    outside = name.is_absolute() or ".." in name.parts or (name.parts[:1] and name.parts[0].endswith(":"))
    if entry.is_dir() or not regular or name.suffix != ".py" or outside or any(map(_is_noise, name.parts)):
        return ""
    return name.as_posix()


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, size: int) -> bytes:
    with archive.open(entry) as file:
        return file.read(size)


def _is_noise(name: str) -> bool:
    return name.startswith(".") or name in ("__MACOSX", "__pycache__")
