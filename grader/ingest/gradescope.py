"""What Gradescope's "Export Submissions" gives: a folder per submission, and a file that says whose it is.

The format is not documented. `submission_metadata.yml` has a mapping of `submission_ID` (`ID.pdf` for
exams) to what Ruby wrote of it: its symbols become keys such as `:submitters`. All earlier results stand in
it, too, so that it can be long: it is read as a stream of events, and what is not needed is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from grader.ingest import Entry, Student
from grader.ingest.contents import read_files
from grader.ingest.folders import folder_entry
from grader.ingest.tree import File, Folder
from grader.intake import InputError
from grader.text import one_line

METADATA = "submission_metadata.yml"
MAX_METADATA_BYTES = 1 << 30
MAX_DEPTH = 50

_KEPT = frozenset({":submitters", ":created_at"})
_NULL = ("", "~", "null", "Null", "NULL")


def fits(root: Folder) -> bool:
    """Whether the file is there that says whose is what."""
    return METADATA in root.files


def read(root: Folder, part_files: Mapping[str, str]) -> tuple[list[Entry], dict[str, str]]:
    """Its submissions, and what belongs to none, with the reason.

    Raises:
        InputError: no metadata, or such that cannot be read.
    """
    if not fits(root):
        raise InputError(f"a Gradescope export must have {METADATA}, got {root.seen}")
    told = read_metadata(root.files[METADATA])
    entries = [_told(folder_entry(folder, part_files), told) for folder in root.folders.values()]
    unmatched = {}
    for name, file in root.files.items():
        if name in told or name.removesuffix(".zip") in told:
            entries.append(_told(_file_entry(name, file, part_files), told))
        elif name != METADATA:
            unmatched[file.path] = file.problem or f"{METADATA} does not name it"
    there = {*root.folders, *root.files, *(name.removesuffix(".zip") for name in root.files)}
    unmatched |= {key: "no files in the export" for key in told if key not in there}
    return entries, unmatched


def _file_entry(name: str, file: File, part_files: Mapping[str, str]) -> Entry:
    number = name.removesuffix(".pdf").removesuffix(".zip").removeprefix("submission_")
    find = partial(dict[str, File], {name: file})
    return Entry(f"submission_{number}", file.path, (), partial(read_files, find, part_files))


def _told(entry: Entry, told: Mapping[str, Any]) -> Entry:
    """The entry with what the metadata says of it."""
    name = entry.source.rpartition("/")[2]
    data = told.get(name, told.get(name.removesuffix(".zip")))
    if data is None:
        return replace(entry, notes=(f"{METADATA} does not name it",))
    fields = data if isinstance(data, dict) else {}
    students = tuple(_students(fields.get(":submitters")))
    notes = () if students else (f"{METADATA} names no student",)
    return replace(entry, students=students, submitted_at=_text(fields.get(":created_at")), notes=notes)


def _students(submitters: object) -> Iterator[Student]:
    for submitter in submitters if isinstance(submitters, list) else []:
        if isinstance(submitter, dict):
            name, email, sid = (_text(submitter.get(f":{key}")) for key in ("name", "email", "sid"))
            yield Student(name, email, sid)


def _text(value: object) -> str:
    return one_line(value, 300) if isinstance(value, str) else ""


# --- YAML -----------------------------------------------------------------------------------------


def read_metadata(file: File) -> dict[str, Any]:
    """What is kept of the metadata, by submission; every scalar as its text, so that ids keep their zeros.

    Raises:
        InputError: no valid YAML, no mapping, or PyYAML is not installed.
    """
    try:
        import yaml  # type: ignore[import-untyped, unused-ignore]  # only who reads such an export needs it
    except ImportError as error:
        raise InputError(
            "PyYAML must be installed to read a Gradescope export: pip install pyyaml"
        ) from error
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    data = file.read(MAX_METADATA_BYTES + 1)  # what is wrong with its zip is not this file's fault
    if len(data) > MAX_METADATA_BYTES:
        raise InputError(f"{METADATA} must have at most {MAX_METADATA_BYTES} bytes, got more")
    try:
        builder = _Builder(yaml.parse(data, Loader=loader))
        told = builder.document()
    except (yaml.YAMLError, UnicodeError) as error:
        raise InputError(f"{METADATA} must be valid YAML, got {one_line(str(error), 200)}") from error
    except RecursionError as error:
        raise InputError(f"{METADATA} must be valid YAML, got values nested too deep") from error
    if not isinstance(told, dict):
        raise InputError(f"{METADATA} must be a mapping of submissions, got something else")
    return told


class _Builder:
    """Dicts, lists and texts from the events of a YAML parser; tags are not looked at."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._anchored: dict[str, object] = {}

    def document(self) -> object:
        """The first document's value; "" if there is none."""
        for event in self._events:
            if _kind(event) not in ("StreamStart", "DocumentStart"):
                return self._value(event, 0)
        return ""

    def _value(self, event: Any, depth: int) -> object:
        kind = _kind(event)
        if kind == "Alias":
            return self._anchored.get(event.anchor, "")
        if depth > MAX_DEPTH:
            raise InputError(f"{METADATA} must be nested at most {MAX_DEPTH} deep, got more")
        value: object = ""
        if kind == "Scalar":
            value = "" if event.implicit[0] and event.value in _NULL else event.value
        elif kind == "SequenceStart":
            value = list(self._items(depth + 1))
        elif kind == "MappingStart":
            value = dict(self._pairs(depth + 1))
        if getattr(event, "anchor", None):
            self._anchored[event.anchor] = value
        return value

    def _items(self, depth: int) -> Iterator[object]:
        while _kind(event := next(self._events)) != "SequenceEnd":
            yield self._value(event, depth)

    def _pairs(self, depth: int) -> Iterator[tuple[str, object]]:
        while _kind(event := next(self._events)) != "MappingEnd":
            key = str(self._value(event, depth))
            event = next(self._events)
            if depth == 2 and key not in _KEPT:
                self._pass_over(event)
            else:
                yield key, self._value(event, depth)

    def _pass_over(self, event: Any) -> None:
        """Read to the end of a value; only texts in it can be referred to later."""
        open_ones = 0
        while True:
            kind = _kind(event)
            if kind == "Scalar":
                self._value(event, 0)
            open_ones += kind.endswith("Start")
            open_ones -= kind.endswith("End")
            if not open_ones:
                return
            event = next(self._events)


def _kind(event: object) -> str:
    return type(event).__name__.removesuffix("Event")
