"""The list of survivors is about lines that exist, and says why."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from grader import mutation
from grader.assignment import Assignment
from grader.intake import InputError
from grader.mutation import Mutation


def test_the_list_is_fresh(assignment: Assignment) -> None:
    """Every entry belongs to a line of the reference."""
    assert mutation.stale(assignment) == []


def test_a_stale_entry(assignment: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is gone, and a reason that is none."""
    listed = tmp_path / "survivors.toml"
    listed.write_text(
        '[[survivor]]\npart = "attention"\nbefore = "gone = 1"\nafter = "gone = 2"\nwhy = "it was equivalent"\n'
        '[[survivor]]\npart = "attention"\nbefore = "d_head = q.shape[-1]"\nafter = "x"\nwhy = " "\n'
    )
    monkeypatch.setattr(mutation, "SURVIVORS", listed)
    assert mutation.stale(assignment) == [
        "survivors.toml: 'gone = 1' is no line of reference/attention.py",
        "survivors.toml: 'x' has no reason",
    ]


def test_a_change_is_told_by_its_lines() -> None:
    """Before and after; nothing where nothing changed."""
    assert mutation._change("block", "a\n  b\nc", "a\n  B\nc") == Mutation("block", "b", "B")
    assert mutation._change("block", "a\n", "a\n") is None


def test_without_the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what to install."""
    monkeypatch.setitem(sys.modules, "cosmic_ray.mutating", None)
    with pytest.raises(InputError, match="mutate needs cosmic-ray"):
        mutation.mutate(jobs=1)
