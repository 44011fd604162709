"""Two runs compared: whose score changed, by how much, because of which checks."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from grader import report
from grader.assignment import Assignment
from grader.compare import changes, read_both, told
from grader.intake import InputError


def results(folder: Path, **documents: dict[str, Any]) -> Path:
    """A run's folder."""
    (folder / "results").mkdir(parents=True)
    for name, document in documents.items():
        (folder / "results" / f"{name}.json").write_text(report.to_json(document), encoding="utf-8")
    return folder


@pytest.fixture
def zero(assignment: Assignment) -> dict[str, Any]:
    """A result of 0 points."""
    return report.nothing_gradable(assignment, "a PDF")


def passed(document: dict[str, Any], *checks: str) -> dict[str, Any]:
    """The result with these checks passed."""
    changed = copy.deepcopy(document)
    for test in changed["tests"]:
        if test["extra_data"]["check"] in checks:
            test["score"], test["extra_data"]["outcome"] = test["max_score"], "passed"
            changed["score"] += test["max_score"]
    return changed


def test_whose_and_why(tmp_path: Path, zero: dict[str, Any]) -> None:
    """The largest difference first; who is as before is not named."""
    better = passed(zero, "attention.shapes", "block.together")
    old = results(tmp_path / "old", ann=zero, bob=zero, cem=better)
    new = results(tmp_path / "new", ann=passed(zero, "attention.shapes"), bob=zero, cem=zero)
    (new / "results" / "._ann.json").write_text("what a Mac leaves")
    lines = list(told(*read_both(old, new)))
    assert lines[0] == "3 results before, 3 now; 2 scores changed"
    assert lines[1] == "  attention.shapes: 2 submissions"
    points = better["score"]
    assert lines[3] == f"cem: {points:g} -> 0 ({-points:+g})"
    assert "    attention.shapes: 1 passed -> 0 missing" in lines
    assert "ann: 0 -> 1 (+1)" in lines
    assert not any(line.startswith("bob") for line in lines)


def test_who_came_and_went(tmp_path: Path, zero: dict[str, Any]) -> None:
    """A submission that only one run has is told; so is one that the grader failed on."""
    failed = copy.deepcopy(zero)
    failed["extra_data"]["grader_error"] = True
    old = results(tmp_path / "old", ann=zero, bob=zero)
    new = results(tmp_path / "new", bob=failed, cem=zero) / "results"
    found = list(told(*read_both(old, new)))
    assert found[0] == "2 results before, 2 now; 1 scores changed"
    assert found[1:] == [
        "ann: 0 -> not there",
        "bob: 0 -> grader error",
        "cem: not there -> 0",
    ]


def test_two_files(tmp_path: Path, zero: dict[str, Any]) -> None:
    """Whatever they are called."""
    for name, document in {"a.json": zero, "b.json": passed(zero, "attention.shapes")}.items():
        (tmp_path / name).write_text(report.to_json(document))
    (change,) = changes(*read_both(tmp_path / "a.json", tmp_path / "b.json"))
    assert change.difference == 1
    with pytest.raises(InputError, match="both must be folders, or both results"):
        read_both(tmp_path / "a.json", tmp_path)


def test_rounding_is_no_difference(tmp_path: Path, zero: dict[str, Any]) -> None:
    """Sums of the same points in another order."""
    old = results(tmp_path / "old", ann=zero | {"score": 0.1 + 0.2})
    new = results(tmp_path / "new", ann=zero | {"score": 0.3})
    assert next(told(*read_both(old, new))) == "1 results before, 1 now; 0 scores changed"


def damaged(zero: dict[str, Any], where: tuple[Any, ...], value: Any) -> str:
    """A result with one thing in it replaced."""
    changed = copy.deepcopy(zero)
    inner: Any = changed
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    return json.dumps(changed)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("score",), "abc"),
        (("score",), float("nan")),
        (("score",), True),
        (("output",), None),
        (("tests",), []),
        (("tests", 0), "x"),
        (("tests", 0, "score"), None),
        (("tests", 0, "extra_data", "outcome"), "fine"),
        (("tests", 0, "extra_data", "part"), "no part"),
        (("extra_data", "parts"), {}),
        (("extra_data", "parts", "attention", "score"), "1"),
        (("extra_data", "max_score"), None),
        (("extra_data", "grader"), None),
        (("extra_data", "submission"), []),
        (("extra_data", "recognised"), None),
        (("extra_data", "from_scratch"), {}),
        (("extra_data", "grader_error"), 0),
    ],
)
def test_a_damaged_result_is_none(
    tmp_path: Path, zero: dict[str, Any], where: tuple[Any, ...], value: Any
) -> None:
    """Whatever scores and reports rely on is looked at first."""
    (tmp_path / "x.json").write_text(damaged(zero, where, value))
    with pytest.raises(InputError, match="must be a JSON file as grading leaves it"):
        read_both(tmp_path, tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, '{"score": 1' + "0" * 400 + "}"])
def test_what_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    """It would pass for one without any difference."""
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match="must be a JSON file as grading leaves it"):
        read_both(tmp_path, tmp_path)
    with pytest.raises(InputError, match="must have results in it"):
        read_both(tmp_path / "nowhere", tmp_path / ("x" * 300))
