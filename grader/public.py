"""The public half of what is not public as a whole: the assignment, the recorded cases, some code.

In code that both need, lines that only hidden checks need end in `# hidden`.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from grader.assignment import Assignment, CheckEntry, Part
from grader.check import Check
from grader.recorded import as_text, recorded

_HIDDEN_LINE = re.compile(r"  # hidden(:.*)?$")
_HIDDEN_FIELDS = ("small",)


def families_of(assignment: Assignment) -> set[str]:
    """The families that public checks are run on."""
    checks = (_check(entry) for entry in assignment.checks.values() if not entry.hidden)
    return {check.family for check in checks if check.family is not None}


def without_hidden_lines(source: str) -> str:
    """Python text without the lines that say `# hidden`, with or without a reason."""
    return "".join(line for line in source.splitlines(keepends=True) if not _HIDDEN_LINE.search(line))


def cases_text(families: Collection[str]) -> str:
    """`cases.json` with these families only, and without the fields that the public classes have not."""
    fields = "|".join(_HIDDEN_FIELDS)
    text = as_text({name: cases for name, cases in recorded().items() if name in families})
    return re.sub(rf', "({fields})": [^,}}]+', "", text)


def assignment_text(assignment: Assignment) -> str:
    """`assignment.toml` with the public checks only, and how many points wait behind the others."""
    return "\n".join(_assignment_lines(assignment)) + "\n"


def _assignment_lines(assignment: Assignment) -> Iterator[str]:
    yield "# The parts, and what each public check is worth; `hidden_points` are for checks that staff runs."
    yield ""
    yield f"title = {_toml(assignment.title)}"
    yield from _table("policy", _policy(assignment))
    yield from _table("limits", assignment.limits)
    for name, part in assignment.parts.items():
        yield from _table(f"parts.{name}", _part(part))
    for name in assignment.parts:
        public = [entry for entry in assignment.checks_of(name) if not entry.hidden]
        yield from _table(
            f"checks.{name}.public", {entry.id.partition(".")[2]: _entry(entry) for entry in public}
        )


def _policy(assignment: Assignment) -> dict[str, str]:
    return {
        "from_scratch": assignment.from_scratch,
        "misconceptions": assignment.misconceptions,
        "hidden_visibility": assignment.hidden_visibility,
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "title": part.title,
        "file": part.file,
        "class": part.class_name,
        "config": part.config,
        "uses": part.uses,
        "inputs": part.inputs,
        "options": part.options,
        "outputs": part.outputs,
        "hidden_points": part.hidden_points,
    }


def _entry(entry: CheckEntry) -> dict[str, Any]:
    return {"points": entry.points, "title": entry.title}


def _table(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"[{name}]"
    yield from (f"{key} = {_toml(value)}" for key, value in values.items())


def _toml(value: Any) -> str:
    """A value as TOML, which writes strings, numbers and lists as JSON does."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def _check(entry: CheckEntry) -> Check:
    module = importlib.import_module(f"grader.checks.public.test_{entry.part}")
    found: Check = getattr(module, f"test_{entry.id.partition('.')[2]}").check
    return found
