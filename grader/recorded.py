"""The cases that decide a grade, as `python -m grader record` wrote them; read without Hypothesis."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from grader.cases import CASE_CLASSES, Case

CASES_FILE = Path(__file__).with_name("cases.json")


@lru_cache(maxsize=1)
def recorded(path: Path = CASES_FILE) -> dict[str, list[Case]]:
    """The recorded cases by family."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    return {name: [from_json(entry) for entry in entries] for name, entries in raw.items()}


def as_text(cases: Mapping[str, Sequence[Case]]) -> str:
    """The text of such a file, one case a line."""
    families = []
    for name, of_family in cases.items():
        lines = [json.dumps(to_json(case)) for case in of_family]
        families.append(f"{json.dumps(name)}: [\n" + ",\n".join(lines) + "\n]")
    return "{\n" + ",\n".join(families) + "\n}\n"


def to_json(case: Case) -> dict[str, Any]:
    """A case as JSON; `from_json` undoes it."""
    return {"case": type(case).__name__} | asdict(case)


def from_json(entry: Mapping[str, Any]) -> Case:
    """Rebuild a case."""
    values: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in entry.items() if k != "case"
    }
    return CASE_CLASSES[entry["case"]](**values)
