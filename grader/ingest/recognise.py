"""Find out whose download it is, and where in it the submissions begin."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.ingest import LAYOUTS, Entry, Export, canvas, classroom, folders, gradescope, moodle
from grader.ingest.ids import settle
from grader.ingest.tree import Folder, disk_folder, zip_folder
from grader.intake import BROKEN_ZIP, InputError, why_broken
from grader.loader import PACKAGE, find_parts
from grader.text import one_line

MAX_WRAPPERS = 3
"""How many folders may stand around the download."""

Found = tuple[list[Entry], dict[str, str]]


@dataclass(frozen=True)
class Layout:
    """How one system arranges a download.

    Attributes:
        fits: whether a folder is arranged so.
        read: finds the submissions in it; raises `InputError` if it is not arranged so.
    """

    name: str
    fits: Callable[[Folder], bool]
    read: Callable[[Folder, Mapping[str, str]], Found]


_LAYOUTS = (
    Layout("gradescope", gradescope.fits, gradescope.read),
    Layout("moodle", moodle.fits, moodle.read),
    Layout("canvas", canvas.fits, canvas.read),
    Layout("classroom", classroom.fits, classroom.read),
    Layout("folders", folders.fits, folders.read),
)
"""The surest first; almost anything can be folders."""


def read_download(path: Path, part_files: Mapping[str, str], layout: str) -> Export:
    """Do the work of `read_export`."""
    if layout and layout not in LAYOUTS:
        raise InputError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout}")
    try:
        root, outside = _open(path)
        found, (entries, unmatched) = _read(root, part_files, layout)
    except OSError as error:
        why = one_line(error.strerror or str(error))
        raise InputError(f"the download must be readable, got {path} ({why})") from error
    except BROKEN_ZIP as error:
        raise InputError(f"the zip must be intact, got {path} ({why_broken(error)})") from error
    if not entries:
        raise InputError(
            f"a download must hold a folder or a zip per submission, got {path} with {root.seen}"
        )
    return Export(found, settle(entries), _shown(outside | unmatched))


def _shown(unmatched: Mapping[str, str]) -> dict[str, str]:
    """With paths that can be shown; two that look the same stay two."""
    shown: dict[str, str] = {}
    for path, reason in sorted(unmatched.items()):
        name = one_line(path, 300)
        while name in shown:
            name += " (another)"
        shown[name] = reason
    return shown


def _open(path: Path) -> tuple[Folder, dict[str, str]]:
    """The download's root, and what would lie outside of it."""
    if path.is_dir():
        return disk_folder(path), {}
    if not path.is_file():
        raise InputError(f"the download must be a folder or a zip file, got {path} (no such path)")
    if not zipfile.is_zipfile(path):
        raise InputError(f"the download must be a folder or a zip file, got {path} (not a zip)")
    return zip_folder(zipfile.ZipFile(path), path.stem)  # stays open: submissions are read when they are due


def _read(root: Folder, part_files: Mapping[str, str], wanted: str) -> tuple[str, Found]:
    candidates = [layout for layout in _LAYOUTS if wanted in ("", layout.name)]
    for layout in candidates:
        beside: dict[str, str] = {}
        for folder in _levels(root):
            if layout.fits(folder) and not (layout.name == "folders" and _wraps(folder, part_files)):
                entries, unmatched = layout.read(folder, part_files)
                return layout.name, (entries, beside | _hidden(folder, layout.name) | unmatched)
            beside |= {file.path: "beside the download" for file in folder.files.values()}
    return candidates[-1].name, candidates[-1].read(root, part_files)


def _levels(root: Folder) -> Iterator[Folder]:
    """The root, and the folder in it if there is no other, and the one in that."""
    folder = root
    for _ in range(MAX_WRAPPERS + 1):
        yield folder
        if len(folder.folders) != 1:
            return
        folder = next(iter(folder.folders.values()))


def _hidden(folder: Folder, layout: str) -> dict[str, str]:
    """What has a name with a dot in front, unless it is a submission all the same."""
    hidden = [item for item in folder.hidden if layout != "moodle" or not moodle.is_named(item)]
    return {item.path: "its name begins with a dot" for item in hidden}


def _wraps(folder: Folder, part_files: Mapping[str, str], levels: int = MAX_WRAPPERS) -> bool:
    """Whether it holds one folder, which holds the submissions; a class of one looks almost the same."""
    if len(folder.folders) != 1 or folder.files or not levels:
        return False
    inner = next(iter(folder.folders.values()))
    if PACKAGE in inner.folders or find_parts(list(inner.files), part_files):
        return False  # a submission
    several = len(inner.folders) + sum(map(folders.is_archive, inner.files)) > 1
    return several or _wraps(inner, part_files, levels - 1)
