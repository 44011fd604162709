"""A result that was written down, read again: by the next run, or to be compared with another."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.intake import InputError
from grader.terms import Outcome
from grader.text import one_line

_OUTCOMES = {outcome.value for outcome in Outcome}


def read_result(path: Path) -> dict[str, Any]:
    """Read a result as grading leaves it.

    Raises:
        InputError: it is not there, or is none: somebody has edited it, or half of it is lost.
    """
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _look_through(found)
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        why = one_line(f"{type(error).__name__}: {error}", 200)
        raise InputError(f"a result must be a JSON file as grading leaves it, got {path} ({why})") from error
    return found


def _look_through(document: Mapping[str, Any]) -> None:
    """Raise where something has not the form that scores and reports rely on."""
    about = document["extra_data"]
    _texts(document["output"])
    _numbers(document["score"], about["max_score"])
    if type(about["grader_error"]) is not bool or not document["tests"]:
        raise ValueError("no checks, or no word on whether the grader failed")
    for part in _mapping(about["parts"]).values():
        _numbers(part["score"], part["max_score"])
    for test in document["tests"]:
        _texts(test["name"], test["number"], test["output"], test["extra_data"]["check"])
        _numbers(test["max_score"], test.get("score", 0))
        if test["extra_data"]["outcome"] not in _OUTCOMES or test["extra_data"]["part"] not in about["parts"]:
            raise ValueError("a check with an unknown outcome or part")
        if type(test["extra_data"]["hidden"]) is not bool:
            raise ValueError("a check of which nobody knows whether it is hidden")
    for found in about["recognised"]:
        _texts(found["misconception"], found["part"], found["name"], *found["checks"])
        _texts(found.get("says", ""), found.get("asks", ""))
    for use in about["from_scratch"]["uses"]:
        _texts(use["part"], use["file"], use["operator"])
    for name in ("grader", "submission", "grader_errors"):
        _mapping(about.get(name, {}))
    submission = about.get("submission", {})
    for name in ("parts", "skipped"):
        _texts(*_mapping(submission.get(name, {})).values())
    _texts(*submission.get("files", ()), *about.get("grader_errors", {}).values())


def _numbers(*values: Any) -> None:
    if not all(type(value) in (int, float) and math.isfinite(value) for value in values):
        raise ValueError("points that are no number")


def _texts(*values: Any) -> None:
    if not all(isinstance(value, str) for value in values):
        raise TypeError("a text that is none")


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("an object that is none")
    return value
