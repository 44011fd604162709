"""A class, graded: whatever stops it, the same command goes on, and the end is the same."""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from grader import report
from grader.assignment import Assignment
from grader.batch import Batch, Busy, Outputs, status_of
from grader.gradebook import read_gradebook
from grader.ingest import read_export
from grader.marks import GRADED, GRADER_ERROR, STUDENT_ERROR, WAITING
from grader.pool import Done, Job
from tests import exports
from tests.submissions import ROOT, edited, reference, starter

EXITS = "import os\nos._exit(3)\n"


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """A submission's folder."""
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)


@pytest.fixture(scope="module")
def download(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small class in folders: right, wrong, nothing filled in, hostile, nothing gradable."""
    folder = tmp_path_factory.mktemp("class") / "hw3"
    no_scale = edited("attention", ("softmax(scores, dim=-1)", "softmax(2 * scores, dim=-1)"))
    write(folder / "ann", reference())
    write(folder / "bob b", {f"hw3-main/starter/{name}": data for name, data in no_scale.files.items()})
    write(folder / "cem", starter().files)
    write(folder / "dee", reference() | {"attention.py": EXITS})
    write(folder / "eve", {"report.pdf": b"%PDF"})
    return folder


def command(download: Path, out: Path, *options: str) -> list[str]:
    """As staff types it."""
    return [sys.executable, "-m", "grader", "batch", str(download), "--out", str(out), *options]


def run(download: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """To its end."""
    return subprocess.run(
        command(download, out, *options), cwd=ROOT, capture_output=True, text=True, timeout=600
    )


def everything(out: Path) -> dict[str, Any]:
    """What a run leaves, by path, timings aside."""
    found: dict[str, Any] = {}
    for path in sorted(out.rglob("*")):
        if path.suffix == ".json":
            found[path.relative_to(out).as_posix()] = json.loads(path.read_text()) | {"execution_time": 0}
        elif path.is_file():
            found[path.relative_to(out).as_posix()] = path.read_bytes()
    return found


def every_row(out: Path) -> list[dict[str, str]]:
    """Of `scores.csv`."""
    with open(out / "scores.csv", encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def scores(out: Path) -> dict[str, dict[str, str]]:
    """The rows by submission."""
    return {row["submission"]: row for row in every_row(out)}


@pytest.fixture(scope="module")
def done(download: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run that nobody disturbs, and what it said."""
    out = tmp_path_factory.mktemp("out") / "undisturbed"
    ended = run(download, out, "--jobs", "2")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return out, ended.stdout


def test_a_class(done: tuple[Path, str]) -> None:
    """Everybody has a result and a row; what cannot be graded is said with its reason."""
    out, said = done
    rows = scores(out)
    assert {name: (row["total"], row["status"]) for name, row in rows.items()} == {
        "ann": ("100", "graded"),
        "bob b": (rows["bob b"]["total"], "graded"),
        "cem": ("0", "graded"),
        "dee": (rows["dee"]["total"], "graded"),
        "eve": ("0", "student error"),
    }
    assert 70 < float(rows["bob b"]["total"]) < 100
    assert rows["dee"]["attention"] == "0"
    assert rows["dee"]["multi_head"] != "0"
    assert "report.pdf" in rows["eve"]["note"]
    assert "eve: student error; nothing gradable" in said
    assert {path.stem for path in (out / "results").iterdir()} == set(rows)
    assert {path.name for path in out.iterdir()} >= {"scores.csv", "report.html", "results"}


def test_a_line_for_each(done: tuple[Path, str]) -> None:
    """Where no terminal is: how far it is, who, how many points."""
    lines = done[1].splitlines()
    assert "layout folders" in lines[0]
    assert [line.split()[0] for line in lines if line[:1].isdigit() and "/" in line] == [
        "1/4",
        "2/4",
        "3/4",
        "4/4",
    ]
    assert any(line.endswith(" ann 100 graded") for line in lines)


def test_again_is_nothing_to_do(download: Path, done: tuple[Path, str], tmp_path: Path) -> None:
    """Nothing is graded a second time, and everything stays as it is, to the byte."""
    out = Path(shutil.copytree(done[0], tmp_path / "again"))
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    started = time.monotonic()
    ended = run(download, out)
    assert ended.returncode == 0, ended.stderr
    assert "5 need no grading" in ended.stdout
    assert "gradebook" not in ended.stdout
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert time.monotonic() - started < 60


def processes_of(pid: int) -> Iterator[int]:
    """A process, and all that it started."""
    try:
        started = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in started:
        yield from processes_of(int(child))
    yield pid


@pytest.mark.parametrize("seed", [1])
def test_whatever_is_killed(download: Path, done: tuple[Path, str], tmp_path: Path, seed: int) -> None:
    """Some processes, then all of them, then Ctrl-C: the end is that of an undisturbed run."""
    chance = random.Random(seed)  # noqa: S311
    out = tmp_path / "killed"
    for how in ("some", "all", "interrupt"):
        process = subprocess.Popen(command(download, out, "--jobs", "2"), cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout is not None
        time.sleep(chance.uniform(6, 10))
        pids = list(processes_of(process.pid))
        if how == "interrupt":
            process.send_signal(signal.SIGINT)
        for pid in (
            pids if how == "all" else chance.sample(pids[:-1], min(2, len(pids) - 1)) if how == "some" else []
        ):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if how == "some":
            time.sleep(chance.uniform(0, 2))
            process.kill()
        process.communicate(timeout=300)
        if how == "interrupt":
            assert process.returncode in (0, 130)
    ended = run(download, out, "--jobs", "2")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert everything(out) == everything(done[0])


class Answers:
    """In place of the grading processes: each submission's result is what is written here."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = dict(answers)
        self.asked: list[str] = []

    def each(self, jobs: Iterator[tuple[str, Job]]) -> Iterator[Done]:
        """As a pool does."""
        for key, _job in jobs:
            self.asked.append(key)
            answer = self.answers[key]
            yield Done(key, None, answer) if isinstance(answer, str) else Done(key, answer)


@pytest.fixture
def batch(download: Path, tmp_path: Path, assignment: Assignment) -> Batch:
    """A run that has not begun."""
    return Batch(assignment, read_export(download, assignment.files), tmp_path / "out")


def graded(batch: Batch, answers: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Run it with these answers; return statuses, and who was asked for."""
    pool = Answers(answers)
    again = Batch(batch.assignment, batch.export, batch.out, batch.overrides)
    with again.opened():
        again.run(pool, again.waiting(), lambda _mark: None)  # type: ignore[arg-type]
        again.write_scores()
        return {mark.entry.id: mark.status for mark in again.marks().marks}, pool.asked


@pytest.fixture
def results(done: tuple[Path, str]) -> dict[str, Any]:
    """Real ones."""
    return {path.stem: json.loads(path.read_text()) for path in (done[0] / "results").iterdir()}


def test_the_graders_error_is_tried_again(
    batch: Batch, results: dict[str, Any], assignment: Assignment
) -> None:
    """By the next run, until there is a result; it never takes the place of a good one."""
    failed = report.grader_failed(assignment, "no memory")
    statuses, _ = graded(batch, results | {"ann": failed, "bob b": "the grading process ended over it"})
    assert (statuses["ann"], statuses["bob b"], statuses["cem"]) == (GRADER_ERROR, GRADER_ERROR, GRADED)
    assert scores(batch.out)["ann"]["total"] == ""
    statuses, asked = graded(batch, results)
    assert asked == ["ann", "bob b"]
    assert set(statuses.values()) == {GRADED, STUDENT_ERROR}


def test_a_good_result_is_not_overwritten(batch: Batch, results: dict[str, Any]) -> None:
    """By a grader that fails after it was changed; that is told."""
    graded(batch, results)
    stored = batch.out / "results" / "ann.json"
    older = json.loads(stored.read_text())
    older["extra_data"]["grader"]["fingerprint"] = "another"
    stored.write_text(report.to_json(older))
    statuses, asked = graded(batch, results | {"ann": "Traceback\nMemoryError: no memory\n"})
    assert asked == ["ann"]
    assert statuses["ann"] == GRADER_ERROR
    row = scores(batch.out)["ann"]
    assert row["total"] == "100"
    assert row["note"] == "MemoryError: no memory; the result of an earlier run stands for now"
    assert json.loads(stored.read_text()) == older


def test_what_changed_is_graded_again(
    download: Path, batch: Batch, results: dict[str, Any], assignment: Assignment, tmp_path: Path
) -> None:
    """A submission with other files, a result of another grader or that cannot be read."""
    graded(batch, results)
    assert graded(batch, results)[1] == []
    (batch.out / "results" / "bob b.json").write_text('{"half')
    stored = batch.out / "results" / "ann.json"
    stored.write_text(stored.read_text().replace('"score": 100', '"score": NaN'))
    changed = Path(shutil.copytree(download, tmp_path / "changed"))
    (changed / "cem" / "helper.py").write_text("x = 1\n")
    other = Batch(assignment, read_export(changed, assignment.files), batch.out)
    assert graded(other, results)[1] == ["ann", "bob b", "cem"]


def test_half_written_files_are_removed(batch: Batch, results: dict[str, Any]) -> None:
    """A killed run may leave them."""
    graded(batch, results)
    left = batch.out / "results" / f".abc{report.TEMPORARY}"
    left.write_text("half")
    graded(batch, results)
    assert not left.exists()


def test_one_run_at_a_time(batch: Batch) -> None:
    """In a folder; the second is refused, and told why."""
    refused = pytest.raises(Busy, match="only one run may write to a folder at a time")
    with batch.opened(), refused, batch.opened():
        pass


def test_who_waits_has_a_row(batch: Batch) -> None:
    """And no points yet."""
    with batch.opened():
        batch.write_scores()
    assert {mark.status for mark in batch.marks().marks} == {WAITING}
    assert scores(batch.out)["ann"]["total"] == ""


def test_a_submission_of_which_nothing_imports(assignment: Assignment) -> None:
    """Is the student's error: no check can say anything of it."""
    document = report.nothing_gradable(assignment, "a PDF")
    for test in document["tests"]:
        test["extra_data"]["outcome"] = "not_importable"
    assert status_of(document) == STUDENT_ERROR
    document["tests"][0]["extra_data"]["outcome"] = "not_implemented"
    assert status_of(document) == GRADED


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["--layout", "blackboard"], "layout must be one of"),
        (["--overrides", "nowhere.csv"], "--overrides must be a file, got nowhere.csv"),
        (["--gradebook", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_what_is_unusable_is_refused_before_the_work(
    download: Path, tmp_path: Path, options: list[str], says: str
) -> None:
    """In one line, with exit code 2."""
    ended = run(download, tmp_path / "out", *options)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert says in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "out" / "results").exists() or not any((tmp_path / "out" / "results").iterdir())


def test_overrides_survive(download: Path, done: tuple[Path, str], tmp_path: Path) -> None:
    """They lie beside the results, count in scores and report, and leave what the grader found alone."""
    out = Path(shutil.copytree(done[0], tmp_path / "overridden"))
    found = (out / "results" / "cem.json").read_bytes()
    (out / "overrides.csv").write_text(
        "submission,part or check,points,reason\ncem,attention,12,handed in on paper\n"
    )
    assert run(download, out).returncode == 0
    row = scores(out)["cem"]
    assert (row["total"], row["attention"], row["overridden"]) == ("12", "12", "attention: 12")
    assert "handed in on paper" in (out / "report.html").read_text()
    assert (out / "results" / "cem.json").read_bytes() == found
    (out / "gradebook-canvas.csv").write_text("of an earlier run")
    said = run(download, out).stdout
    assert "points set by hand: 1, see scores.csv" in said
    assert "gradebook-canvas.csv is of an earlier run" in said


def test_weak_isolation_is_refused(download: Path, tmp_path: Path) -> None:
    """Where a needed layer is missing nothing is graded, exit code 4, unless staff allows it."""
    weak = (
        "import sys\nfrom grader import pool\n"
        "pool.Pool.missing_layers = lambda self: {'seccomp': 'install libseccomp2'}\n"
        "from grader.__main__ import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    asked = [sys.executable, "-c", weak, *command(download, tmp_path / "out")[3:]]
    ended = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 4, ended.stderr
    assert "submissions are not held by seccomp: install libseccomp2" in ended.stderr
    assert [path.stem for path in (tmp_path / "out" / "results").iterdir()] == ["eve"]


def test_a_filled_gradebook_and_who_is_missing(
    tmp_path: Path, assignment: Assignment, results: dict[str, Any]
) -> None:
    """Points go in where the grader came to some; the gradebook's names come out, and who handed in nothing."""
    handed = [(exports.BOB, reference()), (exports.ANA, reference())]
    download = exports.pack(tmp_path / "submissions.zip", exports.canvas(handed, late=[exports.ANA]))
    everybody = [exports.BOB, exports.ANA, exports.ZOE]
    path = tmp_path / "gradebook.csv"
    path.write_text(exports.canvas_gradebook(everybody, "HW2 (7)", "HW3 (8)"), encoding="utf-8")
    outputs = Outputs(read_gradebook(path))
    export = read_export(download, assignment.files)
    batch = Batch(assignment, export, tmp_path / "out", outputs=outputs)
    answers = Answers({"smithbob_340934": results["ann"], "delacruzana_340935": "no memory"})
    with batch.opened():
        batch.run(answers, batch.waiting(), lambda _mark: None)  # type: ignore[arg-type]
        files = batch.write_all()
    assert [file.name for file in files] == ["scores.csv", "gradebook-canvas.csv", "report.html"]
    rows = list(csv.DictReader(files[1].read_text(encoding="utf-8").splitlines()))
    assert [row["HW3 (8)"] for row in rows if row["ID"].startswith("34")] == ["100", "", ""]
    assert {row["HW2 (7)"] for row in rows if row["ID"].startswith("34")} == {""}
    found = [
        (row["name"], row["sid"], row["total"], row["status"], row["late"]) for row in every_row(batch.out)
    ]
    assert found == [
        ("de la Cruz, Ana", "3031", "", "grader error", "yes"),
        ("Smith, Bob", "00123", "100", "graded", "no"),
        ("O'Neill-Müller, Zoë", "", "", "missing", ""),
    ]


@pytest.mark.parametrize("name", ["scores.csv/x", "results", ".lock/x", "report.html/x"])
def test_what_cannot_be_written_is_told(
    download: Path, done: tuple[Path, str], tmp_path: Path, name: str
) -> None:
    """In one line, with exit code 2: folders stand where files should, or a file where a folder."""
    out = tmp_path / "out"
    if name != "results":
        shutil.copytree(done[0], out)
        (out / name).parent.unlink(missing_ok=True)
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("")
    ended = run(download, out)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert f"{(out / name).relative_to(out).parts[0]} must be writable" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_nobody_needs_to_read_on(download: Path, done: tuple[Path, str], tmp_path: Path) -> None:
    """`| head` ends the reading, not the work."""
    out = Path(shutil.copytree(done[0], tmp_path / "out"))
    (out / "results" / "cem.json").unlink()
    process = subprocess.Popen(
        command(download, out), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=300) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert everything(out) == everything(done[0])


def test_out_within_the_download_is_refused(download: Path) -> None:
    """The next run would take it for a submission."""
    ended = run(download, download / "out")
    assert ended.returncode == 2
    assert "--out must be a folder outside of the download" in ended.stderr
    assert not (download / "out").exists()
