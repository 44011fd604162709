"""Read a submission, a folder or a zip, into plain bytes; nothing of it is run or written to disk."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from grader.loader import MAX_DEPTH, find_parts

MAX_FILE_BYTES = 1 << 20
MAX_TOTAL_BYTES = 16 << 20
MAX_FILES = 2000
MAX_ENTRIES = 20_000
"""Caps on what is read; a homework's source is a few kilobytes."""


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
            found = list(_from_folder(path))
        elif path.is_file():
            found = list(_from_zip(path))
        else:
            raise InputError(f"the submission must be a folder or a zip file, got {path} (no such path)")
    except OSError as error:
        raise InputError(f"the submission must be readable, got {path} ({error.strerror})") from error

    files: dict[str, bytes] = {}
    skipped: dict[str, str] = {}
    total = 0
    for name, data in sorted(found):
        total += len(data)
        if len(data) > MAX_FILE_BYTES or total > MAX_TOTAL_BYTES or len(files) >= MAX_FILES:
            skipped[name] = "too large"
        else:
            files[name] = data
    parts = find_parts(list(files), part_files)
    if not parts:
        wanted = ", ".join(part_files.values())
        seen = ", ".join(list(files)[:5]) or "no Python file at all"
        raise InputError(f"the submission must hold one of {wanted}, got {path} with {seen}")
    return SubmissionFiles(files, parts, skipped)


def _from_folder(root: Path) -> Iterator[tuple[str, bytes]]:
    """Regular Python files; links are not followed, folders not entered deeper than a part may lie."""
    for folder, folders, names in os.walk(root):
        depth = len(Path(folder).relative_to(root).parts)
        # Helpers may lie in packages below the parts.
        folders[:] = sorted(folders) if depth < MAX_DEPTH + 3 else []
        folders[:] = [name for name in folders if not _is_noise(name)]
        for name in sorted(names):
            path = Path(folder, name)
            if name.endswith(".py") and stat.S_ISREG(path.lstat().st_mode):
                with path.open("rb") as file:
                    yield path.relative_to(root).as_posix(), file.read(MAX_FILE_BYTES + 1)


def _from_zip(path: Path) -> Iterator[tuple[str, bytes]]:
    if not zipfile.is_zipfile(path):
        raise InputError(f"the submission must be a folder or a zip file, got {path} (not a zip)")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_ENTRIES:
                raise InputError(
                    f"a zip must have at most {MAX_ENTRIES} entries, got {path} with {len(entries)}"
                )
            for entry in entries:
                yield from _from_entry(archive, entry, path)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, zipfile.zlib.error) as error:  # type: ignore[attr-defined]
        raise InputError(f"the zip must be intact, got {path} ({error})") from error


def _from_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> Iterator[tuple[str, bytes]]:
    name = PurePosixPath(entry.filename)
    regular = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG)
    if entry.is_dir() or not regular or name.suffix != ".py":
        return
    if name.is_absolute() or ".." in name.parts or any(map(_is_noise, name.parts)):
        return
    if entry.flag_bits & 0x1:
        raise InputError(f"the zip must not be encrypted, got {path} ({entry.filename})")
    with archive.open(entry) as file:
        yield name.as_posix(), file.read(MAX_FILE_BYTES + 1)


def _is_noise(name: str) -> bool:
    return name.startswith(".") or name in ("__MACOSX", "__pycache__")
