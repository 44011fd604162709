"""The results of a class without anything that tells who is who."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from grader.ingest import Student
from grader.marks import STUDENT_ERROR, Mark, Marks


@dataclass(frozen=True)
class _Everybody:
    """What tells who anybody is.

    Attributes:
        by_word: names, ids and addresses by their first word.
        letters: the same without spaces and signs.
    """

    by_word: Mapping[str, Sequence[str]]
    letters: Collection[str]


def without_identities(marks: Marks) -> Marks:
    """The same results, of nobody: what is not known to be harmless is left out, the rest is searched.

    The numbers follow a hash, so that a list of the class in its usual order does not tell who is who.
    """
    people = [*chain.from_iterable(mark.entry.students for mark in marks.marks), *marks.missing]
    strings = {*chain.from_iterable(map(_called, people)), *(mark.entry.id for mark in marks.marks)}
    by_word: dict[str, list[str]] = {}
    for string in sorted(filter(_words, strings)):
        by_word.setdefault(_words(string)[0], []).append(string)
    spelled = {form for string in strings for form in _spellings(string)}
    everybody = _Everybody(by_word, {letters for form in spelled if len(letters := _letters(form)) > 4})
    numbered = enumerate(sorted(marks.marks, key=_shuffled), start=1)
    nobodies = tuple(_nobody(mark, f"Submission {number}", everybody) for number, mark in numbered)
    return replace(marks, marks=nobodies, unmatched={}, missing=())


def _shuffled(mark: Mark) -> str:
    contents = mark.document.get("extra_data", {}).get("submission", {}).get("sha256", "")
    return hashlib.sha256(f"{contents} {mark.entry.id}".encode("utf-8", "replace")).hexdigest()


def _nobody(mark: Mark, name: str, everybody: _Everybody) -> Mark:
    entry = replace(
        mark.entry,
        id=name,
        source="",
        students=(Student(name),) if mark.entry.students else (),
        submitted_at="",
        notes=(),
    )
    # Staff's reasons may be about the person.
    overrides = tuple(replace(override, submission=name, reason="") for override in mark.overrides)
    return Mark(entry, mark.status, _of_nobody(mark, everybody) if mark.document else {}, overrides)


def _of_nobody(mark: Mark, everybody: _Everybody) -> dict[str, Any]:
    """The document with what the page needs of it, and of its texts what says nothing about anybody."""
    document, about = mark.document, mark.document["extra_data"]
    uses = about.get("from_scratch", {}).get("uses", ())
    texts = [document["output"], *(test["output"] for test in document["tests"]), *(u["file"] for u in uses)]
    text = unicodedata.normalize("NFC", "\n".join(texts))
    spoken_of = {string for word in set(_words(text)) for string in everybody.by_word.get(word, ())}
    hide = _hider({*spoken_of, *_spelled_out(everybody.letters, text), *_own(mark)}, text)
    if mark.status == STUDENT_ERROR:  # its texts list file names that nobody has asked for
        hide = _nothing
    parts = {name: _unexplained(part) for name, part in about.get("parts", {}).items()}
    kept = {key: about[key] for key in ("max_score", "recognised", "grader_error") if key in about}
    return {
        "score": document["score"],
        "output": hide(document["output"]),
        "tests": [
            test | {"output": hide(test["output"]), "extra_data": _unexplained(test["extra_data"])}
            for test in document["tests"]
        ],
        "extra_data": _unexplained(about, kept)
        | {"parts": parts, "from_scratch": {"uses": [use | {"file": hide(use["file"])} for use in uses]}},
    }


def _unexplained(about: Mapping[str, Any], kept: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The same, or what is kept of it, without the reason of an override."""
    own = dict(about if kept is None else kept)
    return own | ({"override": about["override"] | {"reason": ""}} if "override" in about else {})


def _nothing(_text: str) -> str:
    return ""


def _called(student: Student) -> Iterator[str]:
    yield from (student.name, student.email, student.email.partition("@")[0], student.sid, student.lms_id)


def _own(mark: Mark) -> Iterator[str]:
    """What tells whose a submission is, wherever it stands: names, in many spellings, and paths."""
    about = mark.document["extra_data"].get("submission", {})
    for student in mark.entry.students:
        yield from _called(student)
        words = re.findall(r"\w+", student.name)
        yield from (*words, "".join(words), "".join(reversed(words)))
    source = PurePosixPath(mark.entry.source)
    yield from (mark.entry.id, mark.entry.source, source.stem, *source.parts)
    harmless = {f"{part}.py" for part in mark.document["extra_data"].get("parts", {})}
    for path in map(PurePosixPath, [*about.get("files", ()), *about.get("skipped", ())]):
        yield from {str(path), *path.parts} - harmless


def _hider(strings: Iterable[str], text: str) -> Callable[[str], str]:
    """What replaces these strings, in any case and with or without accents, by an ellipsis.

    Args:
        text: all that they will be looked for in; a submission may have thousands of files.
    """
    spelled = {form for string in strings for form in _spellings(string)}
    lowered = text.lower()
    found = [s for s in spelled if (len(s) > 1 or not s.isascii()) and s.lower() in lowered]
    longest_first = sorted(found, key=lambda string: (-len(string), string))
    pattern = re.compile("|".join(map(_where, longest_first)) or r"(?!)", re.IGNORECASE)
    return lambda text: pattern.sub("…", unicodedata.normalize("NFC", text))


def _where(string: str) -> str:
    """A short one only as a word of its own: the gap in "c…ot" would tell of Ann, and hide "cannot"."""
    if not string.isascii() or len(string) > 5:
        return re.escape(string)
    alone = rf"(?<![^\W_]){re.escape(string)}(?![^\W_])"
    return alone if len(string) > 2 else rf"(?-i:{alone})"  # Li, not li


def _spellings(string: str) -> set[str]:
    """With accents, without, and as who has no umlauts on the keyboard writes."""
    whole = unicodedata.normalize("NFC", string)
    return {whole, _plain(string), _plain(whole.translate(_WITHOUT_UMLAUTS))}


_WITHOUT_UMLAUTS = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "å": "aa", "ø": "oe", "æ": "ae"}
    | {"Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "Å": "Aa", "Ø": "Oe", "Æ": "Ae"}
)

MAX_WORDS = 4
"""Of a name that is known only as letters in a row."""


def _spelled_out(letters: Collection[str], text: str) -> set[str]:
    """What of the text is somebody's letters but for spaces, signs, accents and which name comes first.

    Canvas calls Bob Smith `smithbob`; that is all that is known of him.
    """
    words = list(re.finditer(r"[^\W_]+", text))
    plain = [_plain(word.group()).casefold() for word in words]
    found = set()
    for first in range(len(words)):
        for end in range(first + 1, min(first + MAX_WORDS, len(words)) + 1):
            parts = plain[first:end]
            if any("".join(parts[cut:] + parts[:cut]) in letters for cut in range(len(parts))):
                found.add(text[words[first].start() : words[end - 1].end()])
    return found


def _letters(string: str) -> str:
    return "".join(_words(_plain(string)))


def _plain(text: str) -> str:
    """Without accents."""
    apart = unicodedata.normalize("NFKD", text)
    return "".join(character for character in apart if not unicodedata.combining(character))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())
