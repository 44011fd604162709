"""Gradescope's zip: built twice alike, and run for real where `/autograder` would be."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from grader import build, gradescope, report
from grader.assignment import Assignment
from grader.gradescope.grading import for_gradescope, notes, read_metadata, total_points
from tests.conftest import Grade, outcomes
from tests.submissions import reference, submission

SCHEMA = json.loads((Path(__file__).parent / "results.schema.json").read_text())
METADATA = {"id": 1, "assignment": {"title": "HW3", "total_points": "50.0"}, "users": [{"name": "Zoe"}]}


def valid(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document, which Gradescope would take."""
    jsonschema.validate(document, SCHEMA)
    return dict(document)


@pytest.fixture(scope="session")
def right(grade: Grade) -> dict[str, Any]:
    """The result of a right attention."""
    return grade(submission(reference()), "attention")


def test_every_kind_of_result_is_valid(right: dict[str, Any], assignment: Assignment) -> None:
    """A grade, nothing gradable, and the grader's own failure."""
    valid(right)
    nothing = valid(report.nothing_gradable(assignment, "no part in /x"))
    assert set(outcomes(nothing).values()) == {"missing"}
    assert nothing["output"].startswith("Nothing gradable: no part in /x")
    assert valid(gradescope.failed("no memory"))["extra_data"]["grader_error"]


def test_the_total_of_the_assignment(right: dict[str, Any], assignment: Assignment) -> None:
    """A mismatch is told to staff; points become shares of the total if asked."""
    assert "50 points on Gradescope, and 30 here" in notes(right, METADATA)[0]
    same = for_gradescope(right, METADATA, assignment)
    assert (same["score"], same["tests"]) == (30, right["tests"])
    assert same["extra_data"]["gradescope"]["notes"]

    scaling = replace(assignment, gradescope=replace(assignment.gradescope, scale=True, leaderboard=True))
    scaled = valid(for_gradescope(right, METADATA, scaling))
    assert scaled["score"] == 50
    assert sum(test["max_score"] for test in scaled["tests"]) == pytest.approx(50)
    assert scaled["leaderboard"] == [{"name": "Score", "value": 50}]
    assert "leaderboard" not in same


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"assignment": null}',
        '{"assignment": {"total_points": "many"}}',
        '{"assignment": {"total_points": -1}}',
    ],
)
def test_metadata_may_be_anything(
    tmp_path: Path, right: dict[str, Any], assignment: Assignment, text: str
) -> None:
    """Its format is Gradescope's affair and may change."""
    (tmp_path / "m.json").write_text(text)
    metadata = read_metadata(tmp_path / "m.json")
    assert total_points(metadata) is None
    assert valid(for_gradescope(right, metadata, assignment))["score"] == 30
    assert read_metadata(tmp_path / "none.json") == {}


def test_two_builds_are_the_same_bytes(tmp_path: Path) -> None:
    """Whenever and wherever; with what Gradescope asks for at the root."""
    build.autograder(tmp_path / "one" / "autograder.zip")
    build.autograder(tmp_path / "two.zip")
    assert (tmp_path / "one" / "autograder.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "two.zip") as archive:
        names = archive.namelist()
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
        scripts = archive.read("run_autograder")
    assert {"setup.sh", "run_autograder", "requirements.txt", "constraints.txt"} < set(names)
    assert "reference/attention.py" in names
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    assert scripts.startswith(b"#!")
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]


SLOW = """
from torch import nn
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, *given, **named):
        super().__init__()
    def forward(self, *given, **named):
        while True: pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Gradescope is Linux")
@pytest.mark.parametrize(
    ("limit_s", "reserve_s"), [(45.0, 28.0), (30.0, -1000.0)], ids=["ends by itself", "is ended"]
)
def test_the_deadline_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit_s: float, reserve_s: float
) -> None:
    """Parts that are done stay; what was not run then is said, and is no zero of the student's."""
    monkeypatch.setattr(gradescope, "RESERVE_S", reserve_s)
    submitted = tmp_path / "submission"
    submitted.mkdir()
    for name, text in (reference() | {"multi_head.py": SLOW}).items():
        (submitted / name).write_text(text)
    status = gradescope.run(tmp_path, limit_s)
    document = valid(json.loads((tmp_path / "results" / "results.json").read_text()))
    assert document["extra_data"]["parts"]["attention"]["score"] == 30
    assert (status == 3) is (reserve_s < 0)
    assert document["extra_data"]["grader_error"] is (reserve_s < 0)
    assert document["output"].startswith(gradescope.NOT_FINAL) is (reserve_s < 0)


# --- for real ------------------------------------------------------------------------------------

MEMORY_MB = 768


@pytest.fixture(scope="session")
def autograder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder as `/autograder` is once Gradescope has built its image."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:  # noqa: S607
        pytest.skip("needs root and a mount namespace")
    there_before = Path("/autograder").exists()
    folder = tmp_path_factory.mktemp("autograder")
    for parent in folder.parents[:3]:
        parent.chmod(0o755)
    folder.chmod(0o755)
    build.autograder(folder / "autograder.zip")
    with zipfile.ZipFile(folder / "autograder.zip") as archive:
        for entry in archive.infolist():
            path = Path(archive.extract(entry, folder / "source"))
            path.chmod(entry.external_attr >> 16)
    shutil.copy2(folder / "source" / "run_autograder", folder / "run_autograder")
    environment = {
        "TORCH_INDEX": "",
        "PYTHON": sys.executable,
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
    }
    done = _there(folder, "/autograder/source/setup.sh", environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    yield folder
    shutil.rmtree(folder)
    if not there_before:
        Path("/autograder").rmdir()


def _there(folder: Path, script: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script where `folder` is `/autograder`."""
    inside = 'mkdir -p /autograder && mount --bind "$0" /autograder && cd /autograder && exec "$1"'
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", inside, str(folder), script],  # noqa: S607
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
    )


def _graded(folder: Path, files: Mapping[str, str | bytes]) -> tuple[dict[str, Any], float]:
    """The result of a submission there, and the CPU seconds it took."""
    for name in ("submission", "results"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir()
    for name, text in files.items():
        path = folder / "submission" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    (folder / "submission_metadata.json").write_text(json.dumps(METADATA))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with _limited_memory() as joined:
        done = _there(folder, joined(folder), {"PATH": os.environ["PATH"]})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    results = folder / "results" / "results.json"
    assert results.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    taken_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return valid(json.loads(results.read_text())), taken_s


class _limited_memory:  # noqa: N801 - a context
    """A memory group of Gradescope's default size, where this machine can make one."""

    def __enter__(self) -> Any:
        self._group = Path("/sys/fs/cgroup/memory", f"hw3-{os.getpid()}")
        try:
            self._group.mkdir()
            (self._group / "memory.limit_in_bytes").write_text(str(MEMORY_MB << 20))
        except OSError:
            self._group = Path()

        def joined(folder: Path) -> str:
            script = folder / "limited"
            join = f"echo $$ > {self._group}/cgroup.procs\n" if self._group.name else ""
            script.write_text(f"#!/bin/sh\n{join}exec /autograder/run_autograder\n")
            script.chmod(0o755)
            return "/autograder/limited"

        return joined

    def __exit__(self, *_error: object) -> None:
        if self._group.name:
            self._group.rmdir()


def test_a_right_submission_there(autograder: Path) -> None:
    """All points, in the memory and the time that Gradescope gives by default."""
    document, taken_s = _graded(
        autograder, {f"hw3-main/starter/{name}": text for name, text in reference().items()}
    )
    assert document["score"] == 100
    assert document["extra_data"]["isolation"]["missing"] == {}
    assert document["extra_data"]["gradescope"]["title"] == "HW3"
    assert {test["visibility"] for test in document["tests"]} == {"visible", "after_published"}
    assert taken_s < 60


def test_other_submissions_there(autograder: Path) -> None:
    """Wrong, under other names, hostile, empty: always a valid result that says what it is."""
    wrong = {"attention-2.py": reference()["attention.py"].replace(" / math.sqrt(d_head)", "")}
    wrong |= {f"{name} (1).py": reference()[f"{name}.py"] for name in ("multi_head", "block")}
    document, taken_s = _graded(autograder, wrong)
    assert document["extra_data"]["parts"]["multi_head"]["score"] == 39
    assert document["extra_data"]["recognised"][0]["misconception"] == "no-scale"
    assert document["extra_data"]["submission"]["parts"]["attention"] == "attention-2.py"
    assert taken_s < 60

    hostile = reference() | {
        "attention.py": "import os\nhoard = []\nwhile True: hoard.append(bytearray(1 << 24))\n"
    }
    document, _ = _graded(autograder, hostile)
    assert document["extra_data"]["parts"]["block"]["score"] == 29
    assert not document["extra_data"]["grader_error"]

    document, _ = _graded(autograder, {"essay.pdf": b"%PDF"})
    assert document["score"] == 0
    assert document["output"].startswith("Nothing gradable")
    assert not document["extra_data"]["grader_error"]


def test_a_grader_that_does_not_start_there(autograder: Path) -> None:
    """Marked as the grader's own failure."""
    venv = autograder / "venv"
    venv.rename(autograder / "gone")
    try:
        document, _ = _graded(autograder, reference())
    finally:
        (autograder / "gone").rename(venv)
    assert document["extra_data"]["grader_error"]
    assert "not your score" in document["output"]


def test_a_submission_that_is_not_there(autograder: Path) -> None:
    """What the platform has lost is nobody's zero."""
    shutil.rmtree(autograder / "submission", ignore_errors=True)
    done = _there(autograder, "/autograder/run_autograder", {"PATH": os.environ["PATH"]})
    document = valid(json.loads((autograder / "results" / "results.json").read_text()))
    assert document["extra_data"]["grader_error"]
    assert "(no such path)" in done.stderr + done.stdout


def test_only_root_reads_the_source_there(autograder: Path) -> None:
    """Whoever else there is, Landlock or not."""
    modes = {path.stat().st_mode & 0o077 for path in (autograder / "source").rglob("*")}
    assert modes == {0}
