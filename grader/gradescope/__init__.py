"""Gradescope's side: a submission under `/autograder`, a `results.json` whatever happens.

Two processes. The outer one imports next to nothing, holds the deadline, and makes a result of whatever
there is when it ends the inner one, which grades (`grading.py`) and writes the result of every part as it
is known. So a crash, a machine without memory and a grader's own error leave a valid result, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESERVE_S = 20.0
"""What the inner process gets less than the deadline, to end by itself."""

REFUSED = 4
"""How the inner process ends where a layer around the submission is missing; its result says so."""

NOT_FINAL = (
    "This result is not final, and not your score: the grader itself failed. Course staff can see why and "
    "will run it again."
)


def run(root: Path, deadline_s: float) -> int:
    """Grade what lies under `root`; return 0, 3 if the grader itself failed, 4 if it refused.

    Args:
        root: `/autograder`.
        deadline_s: seconds on the wall, less than the platform allows.
    """
    results = root / "results" / "results.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    command = [sys.executable, "-m", "grader.gradescope.grading", str(root), str(deadline_s - RESERVE_S)]
    inner = subprocess.Popen(command, start_new_session=True)  # noqa: S603 - our own interpreter, our own code
    try:
        status = inner.wait(timeout=deadline_s)
        trouble = f"the grading process ended with {status}"
    except subprocess.TimeoutExpired:
        status, trouble = 1, f"the grading process had not ended after {deadline_s:g} s"
    finally:
        _kill(inner)
    document = _read(results)
    if status in (0, REFUSED) and document is not None:
        return status
    _write(results, _unfinished(document, trouble))
    return 3


def failed(trouble: str) -> dict[str, Any]:
    """The result of a run that has none: the grader's error, marked as such.

    Gradescope wants a score, so there is one; that it says nothing stands above it and in `extra_data`.
    """
    return {
        "score": 0,
        "output": NOT_FINAL,
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [],
        "extra_data": {"grader_error": True, "grader_errors": {"run": trouble}},
    }


def _unfinished(document: dict[str, Any] | None, trouble: str) -> dict[str, Any]:
    if document is None:
        return failed(trouble)
    document["output"] = f"{NOT_FINAL}\n\n{document.get('output', '')}"
    about = document.setdefault("extra_data", {})
    about["grader_error"] = True
    about["grader_errors"] = about.get("grader_errors", {}) | {"run": trouble}
    return document


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and all of its session; workers end with their zygote."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _write(path: Path, document: Mapping[str, Any]) -> None:
    temporary = path.with_name(".results.json")
    temporary.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)
