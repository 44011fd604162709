"""The cases that decide a grade, as `python -m grader record` wrote them; read without Hypothesis."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from grader import cases
from grader.cases import Case
from grader.packages import modules_of

CASES_FILE = Path(__file__).with_name("cases.json")


@lru_cache(maxsize=1)
def recorded(path: Path = CASES_FILE) -> dict[str, list[Case]]:
    """The recorded cases by family."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    return {name: [from_json(entry) for entry in entries] for name, entries in raw.items()}


def as_text(families: Mapping[str, Sequence[Case]]) -> str:
    """The text of such a file, one case a line."""
    texts = []
    for name, of_family in families.items():
        lines = [json.dumps(to_json(case)) for case in of_family]
        texts.append(f"{json.dumps(name)}: [\n" + ",\n".join(lines) + "\n]")
    return "{\n" + ",\n".join(texts) + "\n}\n"


def to_json(case: Case) -> dict[str, Any]:
    """A case as JSON; `from_json` undoes it."""
    return {"case": type(case).__name__} | asdict(case)


def from_json(entry: Mapping[str, Any]) -> Case:
    """Rebuild a case."""
    values: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in entry.items() if k != "case"
    }
    return _classes()[entry["case"]](**values)


@cache
def _classes() -> dict[str, type[Case]]:
    """The classes of all cases, whichever files of `cases/` they are in."""
    found = [value for module in modules_of(cases) for value in vars(module).values()]
    return {kind.__name__: kind for kind in found if isinstance(kind, type) and issubclass(kind, Case)}
