"""Read one submission out of a download: its Python files, and those in zips that it holds."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import IO

from grader.ingest.tree import File, files_below, zip_folder
from grader.intake import BROKEN_ZIP, Basket, InputError, SubmissionFiles, open_zip
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
        InputError: no part in it, or more than a homework could have.
    """
    reading = _Reading()
    try:
        reading.take(find(), "", ZIP_LEVELS)
    except OSError as error:
        raise InputError(f"the submission must be readable, got {error.strerror or error}") from error
    files = dict(sorted(reading.basket.files.items()))
    skipped = dict(sorted((reading.basket.skipped | dict(superseded)).items()))
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


@dataclass
class _Reading:
    """What has been read of a submission so far.

    Attributes:
        others: what is neither Python nor a zip.
    """

    basket: Basket = field(default_factory=Basket)
    others: dict[str, str] = field(default_factory=dict)
    zips: int = 0
    zip_bytes: int = 0

    def take(self, found: Mapping[str, File], prefix: str, levels: int) -> None:
        """Take the Python files, then what is in the zips.

        Args:
            prefix: what stands before the paths of `found` in the submission.
            levels: how many zips deep there still may be some.
        """
        sources = [name for name in found if name.lower().endswith(".py")]
        zips = [name for name in found if name.lower().endswith(".zip")]
        for name in sorted(sources):
            self._take_file(prefix + name, found[name])
        folders = {path[: path.rindex("/")] for path in found if "/" in path}
        for name in sorted(zips):
            alone = len(zips) == 1 and not sources
            inside = prefix if alone else f"{prefix}{_folder_for(name, folders)}/"
            self._take_zip(prefix + name, found[name], inside, levels)
        for name in sorted(found.keys() - {*sources, *zips}):
            self.others[prefix + name] = found[name].problem or _hint(name)

    def _take_file(self, path: str, file: File) -> None:
        try:
            if file.problem:
                self.basket.skipped[path] = file.problem
            else:
                self.basket.take(path, file.read)
        except (OSError, *BROKEN_ZIP) as error:
            self.basket.skipped[path] = f"it cannot be read: {one_line(str(error), 100)}"

    def _take_zip(self, path: str, file: File, inside: str, levels: int) -> None:
        reason = file.problem or self._refused(levels)
        if not reason:
            try:
                with file.open() as stream, self._zip_of(stream, path) as archive:
                    root, outside = zip_folder(archive, path)
                    self.basket.skipped.update(outside)
                    self.take(files_below(root), inside, levels - 1)
            except InputError as error:
                reason = str(error)
            except (OSError, *BROKEN_ZIP) as error:
                reason = f"no intact zip: {one_line(str(error), 100)}"
        if reason:
            self.basket.skipped[path] = reason

    def _refused(self, levels: int) -> str:
        self.zips += 1
        if not levels:
            return "a zip within a zip within a zip"
        return f"more than {MAX_ZIPS} zips" if self.zips > MAX_ZIPS else ""

    def _zip_of(self, stream: IO[bytes], path: str) -> zipfile.ZipFile:
        if isinstance(stream, zipfile.ZipExtFile):  # to go back in it is to unpack it all again
            room = MAX_ZIP_BYTES - self.zip_bytes
            data = stream.read(room + 1)
            self.zip_bytes += len(data)
            if len(data) > room:
                raise InputError(f"zips within zips must have at most {MAX_ZIP_BYTES} bytes, got more")
            stream = io.BytesIO(data)
        return open_zip(stream, path)


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
