"""Make text of a student's safe to show: in a terminal, in JSON, on a page."""

from __future__ import annotations

import re


def clean(text: str, limit: int = 2000) -> str:
    """Return `text` without control characters and lone surrogates, at most `limit` characters.

    Tabs and line ends stay; what is cut from the middle is said.
    """
    kept = "".join(
        character if _shown(character) else "\N{REPLACEMENT CHARACTER}" for character in text[: 4 * limit]
    )
    if len(kept) <= limit:
        return kept
    half = (limit - 20) // 2
    return f"{kept[:half]} [...] {kept[-half:]}"


def one_line(text: str, limit: int = 500) -> str:
    """`clean`, with every run of white space made one space."""
    return " ".join(clean(text, limit).split())


def defused(text: str) -> str:
    """A cell of a CSV file that no spreadsheet takes for a formula."""
    shown = _CELL_WITHIN.sub(r"\1'", one_line(text, 1000))
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four: their wide forms

# Where the list separator is another one, a cell may begin in the middle of ours.
_CELL_WITHIN = re.compile(rf"([;,|]\s*[\"']?)(?=[{re.escape(''.join(_FORMULA))}])")


def _shown(character: str) -> bool:
    if character in "\n\t\u200c\u200d":  # the last two join letters in Persian and Indic names
        return True
    return character.isprintable() and not "\ud800" <= character <= "\udfff"
