"""Two runs compared: whose score changed, by how much, because of which checks."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from grader import report
from grader.assignment import Assignment
from grader.compare import changes, read_results, told
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
    old = read_results(results(tmp_path / "old", ann=zero, bob=zero, cem=better))
    new = read_results(results(tmp_path / "new", ann=passed(zero, "attention.shapes"), bob=zero, cem=zero))
    lines = list(told(old, new))
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
    old = read_results(results(tmp_path / "old", ann=zero, bob=zero))
    new = read_results(results(tmp_path / "new", bob=failed, cem=zero) / "results")
    assert list(told(old, new))[1:] == [
        "ann: 0 -> not there",
        "bob: 0 -> grader error",
        "cem: not there -> 0",
    ]


def test_two_files(tmp_path: Path, zero: dict[str, Any]) -> None:
    """Whatever they are called."""
    for name, document in {"a.json": zero, "b.json": passed(zero, "attention.shapes")}.items():
        (tmp_path / name).write_text(report.to_json(document))
    (change,) = changes(read_results(tmp_path / "a.json"), read_results(tmp_path / "b.json"))
    assert change.difference == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"tests": [{}]}', '{"tests": [], "score": 1}'])
def test_what_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    """It would pass for one without any difference."""
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match="must be a JSON file as grading leaves it"):
        read_results(tmp_path)
    with pytest.raises(InputError, match="must have results in it"):
        read_results(tmp_path / "nowhere")
