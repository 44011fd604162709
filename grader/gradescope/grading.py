"""The process that grades on Gradescope: `python -m grader.gradescope.grading ROOT SECONDS`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grader.assignment import Assignment, load_assignment
from grader.gradescope import REFUSED, failed
from grader.intake import InputError, read_submission


def main(root: Path, wall_s: float) -> int:
    """Grade the submission and write the result, each part as it ends; return 0, or 4 where it refuses."""
    from grader.sandbox.zygote import Zygote

    zygote = Zygote.start()
    from grader import report
    from grader.grading import Grader, Options

    assignment = load_assignment()
    results = root / "results" / "results.json"
    metadata = read_metadata(root / "submission_metadata.json")

    def write(document: Mapping[str, Any]) -> None:
        report.write_atomically(results, report.to_json(for_gradescope(document, metadata, assignment)))

    grader = Grader(assignment, zygote)
    weak = grader.missing_layers()
    for layer, todo in weak.items():
        print(f"a submission is not held by {layer}: {todo}")
    if weak and not assignment.gradescope.allow_weak_isolation:
        report.write_atomically(results, report.to_json(failed(f"nothing was graded, for want of {weak}")))
        return REFUSED
    try:
        files = read_submission(root / "submission", assignment.files)
    except InputError as error:
        write(report.nothing_gradable(assignment, str(error)))
        return 0
    graded = grader.grade(files, Options(wall_s=wall_s), progress=write)
    write(graded.document)
    for line in notes(graded.document, metadata):
        print(line)
    if graded.printed:
        print(f"The submission printed:\n{graded.printed}")
    zygote.close()
    return 0


def read_metadata(path: Path) -> dict[str, Any]:
    """What Gradescope says of the submission; its format may change, so nothing in it is relied upon."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def total_points(metadata: Mapping[str, Any]) -> float | None:
    """The assignment's total on Gradescope, if it says one."""
    about = metadata.get("assignment")
    try:
        total = float(about["total_points"]) if isinstance(about, dict) else None
    except (KeyError, TypeError, ValueError):
        return None
    return total if total and 0 < total < 1e9 else None


def notes(document: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[str]:
    """What course staff should know, for the output that only they see."""
    total = total_points(metadata)
    maximum = document["extra_data"]["max_score"]
    if total is None or total == maximum:
        return []
    here = f"The assignment has {total:g} points on Gradescope, and {maximum:g} here"
    return [f"{here}; see `scale` in assignment.toml."]


def for_gradescope(
    document: Mapping[str, Any], metadata: Mapping[str, Any], assignment: Assignment
) -> dict[str, Any]:
    """The result with what only Gradescope asks for: another total, a leaderboard, a note for staff."""
    changed = dict(document)
    maximum, total = document["extra_data"]["max_score"], total_points(metadata)
    if assignment.gradescope.scale and total is not None and maximum:
        factor = total / maximum
        changed["score"] = round(document["score"] * factor, 6)
        changed["tests"] = [
            test | {key: round(test[key] * factor, 6) for key in ("score", "max_score") if key in test}
            for test in document["tests"]
        ]
    if assignment.gradescope.leaderboard:
        changed["leaderboard"] = [{"name": "Score", "value": changed["score"]}]
    title = (
        metadata.get("assignment", {}).get("title") if isinstance(metadata.get("assignment"), dict) else None
    )
    about = {"notes": notes(document, metadata)} | ({"title": title} if isinstance(title, str) else {})
    return changed | {"extra_data": document["extra_data"] | {"gradescope": about}}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[2])))
