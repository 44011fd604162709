"""Read one submission out of a download: its Python files, and those in zips that it holds."""

from __future__ import annotations

import errno
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import IO, TypeVar

from grader.ingest.tree import LOCKED, MAX_OTHERS, TOO_MANY, File, files_below, zip_folder
from grader.intake import (
    BROKEN_ZIP,
    MAX_ENTRIES,
    MAX_PATH,
    PACKAGES,
    Basket,
    InputError,
    SubmissionFiles,
    Unreadable,
    in_order,
    open_zip,
    why_broken,
)
from grader.loader import find_parts, meaning
from grader.text import one_line

MAX_ZIPS = 10
MAX_ZIP_BYTES = 256 << 20
"""Caps on zips that lie in zips, all of a submission's together: such a one is held in memory."""

ZIP_LEVELS = 2
"""A zip within what was handed in, and a zip within that."""

BY_HAND = (".rar", ".7z", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".gz", ".zipx")
"""Archives that are not read."""


def read_files(
    find: Callable[[], Mapping[str, File]],
    part_files: Mapping[str, str],
    superseded: Mapping[str, str] = MappingProxyType({}),
) -> SubmissionFiles:
    """Read the Python files of a submission and choose the parts' files.

    Args:
        find: finds what was handed in, by path relative to the submission's root.
        superseded: what was left out already, with the reason.

    Raises:
        InputError: no part in it.
        OSError: the download itself cannot be read, on disk or in its zip.
    """
    reading = _Reading(part_files)
    reading.take(find(), "", ZIP_LEVELS)
    for path, reason in superseded.items():
        reading.basket.skip(path, reason)
    files = dict(sorted(reading.basket.files.items()))
    skipped = reading.basket.skipped
    parts = find_parts(list(files), part_files)
    if not parts:
        raise InputError(_nothing(part_files, files, skipped, reading.others))
    return SubmissionFiles(files, parts, skipped)


def taken(files: SubmissionFiles, part_files: Mapping[str, str]) -> tuple[str, ...]:
    """Which file was taken for a part, where it is called otherwise or others mean the same."""
    told = []
    for part, path in files.parts.items():
        name = part_files[part]
        others = [other for other in files.files if other != path and meaning(other) == meaning(name)]
        if others or path.rpartition("/")[2] != name:
            rest = f", not {', '.join(others[:3])}" if others else ""
            told.append(one_line(f"{name}: took {path}{rest}"))
    return tuple(told)


T = TypeVar("T")


def left_open(
    older: Mapping[str, T], later: Mapping[str, object], part_files: Mapping[str, str]
) -> dict[str, T]:
    """What counts of an earlier upload: nothing, if all parts came later, and no part that came later."""
    wanted = set(map(meaning, part_files.values()))
    have = wanted & set(map(meaning, later))
    return {name: one for name, one in older.items() if have != wanted and meaning(name) not in have}


@dataclass
class _Reading:
    """What has been read of a submission so far.

    Attributes:
        others: what is neither Python nor a zip.
    """

    part_files: Mapping[str, str]
    basket: Basket = field(default_factory=Basket)
    others: dict[str, str] = field(default_factory=dict)
    zips: int = 0
    zip_bytes: int = 0
    zip_entries: int = 0

    def take(self, found: Mapping[str, File], prefix: str, levels: int) -> None:
        """Take the Python files, then what is in the zips.

        Args:
            prefix: what stands before the paths of `found` in the submission.
            levels: how many zips deep there still may be some.
        """
        sources = [name for name in found if name.lower().endswith(".py")]
        zips = [name for name in found if name.lower().endswith(".zip")]
        for name in in_order(sources, self.part_files):
            self._take_file(prefix + name, found[name], levels)
        folders = {path[: path.rindex("/")] for path in found if "/" in path}
        for name in sorted(zips, key=lambda name: (name.count("/"), name)):
            alone = len(zips) == 1 and not sources
            inside = prefix if alone else f"{prefix}{_folder_for(name, folders)}/"
            self._take_uploads(prefix + name, found[name], inside, levels)
        for name in sorted(found.keys() - {*sources, *zips}):
            if found[name].problem in (PACKAGES, TOO_MANY):
                self.basket.skip(prefix + name, found[name].problem)
            elif len(self.others) < MAX_OTHERS:
                self.others[one_line(prefix + name, MAX_PATH)] = found[name].problem or _hint(name)

    def _take_file(self, path: str, file: File, levels: int) -> None:
        try:
            with _ours(file) if levels == ZIP_LEVELS else nullcontext():
                if file.problem:
                    self.basket.skip(path, file.problem)
                else:
                    self.basket.take(path, file.read)
        except BROKEN_FILE as error:
            self.basket.skip(path, f"it cannot be read: {_broken(error)}")

    def _take_uploads(self, path: str, file: File, inside: str, levels: int) -> None:
        """Take a zip, and of those uploaded before it what it leaves open."""
        self._take_zip(path, file, inside, levels)
        for earlier in file.earlier:
            later, self.basket.files = self.basket.files, {}
            self._take_zip(earlier.path, earlier, inside, levels)
            self.basket.files = left_open(self.basket.files, later, self.part_files) | later

    def _take_zip(self, path: str, file: File, inside: str, levels: int) -> None:
        reason = file.problem or self._refused(levels)
        try:
            with _ours(file) if levels == ZIP_LEVELS else nullcontext():
                stream = io.BytesIO() if reason else self._opened(file)
            with stream:
                if not reason:
                    self._take_archive(path, stream, inside, levels)
        except InputError as error:
            reason = str(error)
        except BROKEN_FILE as error:
            reason = f"no intact zip: {_broken(error)}"
        if reason:
            self.basket.skip(path, reason)

    def _take_archive(self, path: str, stream: IO[bytes], inside: str, levels: int) -> None:
        with open_zip(stream, path) as archive:
            self.zip_entries += len(archive.infolist())
            if self.zip_entries > MAX_ENTRIES:
                raise InputError(f"a submission's zips must have at most {MAX_ENTRIES} entries, got more")
            root, outside = zip_folder(archive, path)
            for name, reason in outside.items():
                self.basket.skip(name, reason)
            self.take(files_below(root), inside, levels - 1)

    def _refused(self, levels: int) -> str:
        self.zips += 1
        if not levels:
            return "a zip within a zip within a zip"
        if self.zip_entries > MAX_ENTRIES:
            return f"more than {MAX_ENTRIES} entries in zips"
        return f"more than {MAX_ZIPS} zips" if self.zips > MAX_ZIPS else ""

    def _opened(self, file: File) -> IO[bytes]:
        stream = file.open()
        if not isinstance(stream, zipfile.ZipExtFile):
            return stream
        with stream:  # to go back in it is to unpack it all again
            room = MAX_ZIP_BYTES - self.zip_bytes
            data = stream.read(room + 1)
        self.zip_bytes += len(data)
        if len(data) > room:
            raise InputError(f"zips within zips must have at most {MAX_ZIP_BYTES} bytes, got more")
        return io.BytesIO(data)


BROKEN_FILE = (OSError, *BROKEN_ZIP)
"""What a file in a zip raises, or a zip: `OSError` for a place in it that there is not, or from bzip2."""


def _broken(error: Exception) -> str:
    """What is wrong with what the student handed in; a disk's fault is not, and goes on.

    Raises:
        OSError: it was the disk.
    """
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        raise error
    if isinstance(error, Unreadable):
        raise error
    return why_broken(error)


@contextmanager
def _ours(file: File) -> Iterator[None]:
    """Hold what is wrong with a file of the download itself: no student had a hand in that.

    Raises:
        Unreadable: a part of the download's zip is broken or locked.
    """
    if file.problem == LOCKED:
        raise Unreadable(f"{file.path}: {LOCKED}")
    try:
        yield
    except BROKEN_ZIP as error:
        raise Unreadable(f"{file.path}: {why_broken(error)}") from error


def _folder_for(name: str, folders: set[str]) -> str:
    """The folder that a zip is unpacked to, beside those there are."""
    stem = name[: -len(".zip")]
    folder, number = stem, 1
    while folder in folders:
        number += 1
        folder = f"{stem}-{number}"
    folders.add(folder)
    return folder


def _hint(name: str) -> str:
    lowered = name.lower()
    if lowered.endswith(BY_HAND):
        return "only zips are read: unpack it by hand"
    return "a notebook: not graded" if lowered.endswith(".ipynb") else ""


def _nothing(
    part_files: Mapping[str, str],
    files: Mapping[str, bytes],
    skipped: Mapping[str, str],
    others: Mapping[str, str],
) -> str:
    """Why there is nothing to grade: what was seen, first what could have been it."""
    seen = {**dict.fromkeys(files, ""), **skipped, **others}
    shown = [
        one_line(path, 120) + (f" ({one_line(reason, 200)})" if reason else "")
        for path, reason in list(seen.items())[:5]
    ]
    more = [f"{len(seen) - 5} more"] if len(seen) > 5 else []
    got = ", ".join(shown + more) or "no file at all"
    return f"the submission must hold one of {', '.join(part_files.values())}; got {got}"
