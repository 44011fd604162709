"""Known wrong versions of the parts: what a student may have had in mind, as code that can be run.

One file for each part, `PART.toml`; its head says what the entries mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from grader.toml import read_toml

FOLDER = Path(__file__).parent
SHOWS_IN = ("output", "gradients", "parameters", "constructor")

Edits = Sequence[tuple[str, str]]


class MisconceptionError(Exception):
    """An entry cannot be what it should be; staff must mend it."""


@dataclass(frozen=True)
class Variant:
    """One way in which an idea is met: texts of the reference and what stands there instead.

    Attributes:
        shows_in: one of `SHOWS_IN`, where it differs from right code.
    """

    idea: str
    edits: Edits
    shows_in: str


@dataclass(frozen=True)
class Misconception:
    """One wrong idea about one part.

    Attributes:
        name: the idea in a few words.
        says: what the code seems to do, one sentence.
        asks: a question that leads on.
        fails: ids of checks that every variant must fail.
    """

    slug: str
    part: str
    name: str
    says: str
    asks: str
    fails: tuple[str, ...]
    variants: tuple[Variant, ...]


@cache
def misconceptions_about(part: str) -> tuple[Misconception, ...]:
    """All that are known about a part, the more general first.

    Raises:
        MisconceptionError: the file says something that it cannot mean.
    """
    path = FOLDER / f"{part}.toml"
    if not path.exists():
        return ()
    try:
        entries = read_toml(path)["misconception"]
        return tuple(_misconception(part, entry) for entry in entries)
    except (KeyError, TypeError, ValueError) as error:
        raise MisconceptionError(f"{path.name}: {type(error).__name__}: {error}") from error


def _misconception(part: str, entry: Mapping[str, Any]) -> Misconception:
    return Misconception(
        slug=entry["slug"],
        part=part,
        name=entry["name"],
        says=entry["says"],
        asks=entry["asks"],
        fails=tuple(entry["fails"]),
        variants=tuple(_variant(variant, entry) for variant in entry["variants"]),
    )


def _variant(variant: Mapping[str, Any], entry: Mapping[str, Any]) -> Variant:
    shows_in = variant.get("shows_in", entry.get("shows_in", "output"))
    if shows_in not in SHOWS_IN:
        raise ValueError(f"shows_in of {entry['slug']} must be one of {', '.join(SHOWS_IN)}, got {shows_in}")
    return Variant(variant["idea"], read_edits(variant["edits"]), shows_in)


def read_edits(entries: Sequence[Mapping[str, str]]) -> Edits:
    """Edits as they stand in a toml file."""
    return tuple((entry["find"], entry["replace"]) for entry in entries)


def edited(source: str, edits: Edits) -> str:
    """Apply edits, each to the only place where its text stands.

    Raises:
        MisconceptionError: a text stands nowhere, or more than once.
    """
    for old, new in edits:
        if source.count(old) != 1:
            raise MisconceptionError(
                f"{old!r} must stand once in the reference, got {source.count(old)} times"
            )
        source = source.replace(old, new)
    return source
