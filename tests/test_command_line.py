"""The command line as a person uses it: exit codes, one line for bad input, nothing written by mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from grader import report
from tests.submissions import ROOT, reference

SAMPLE = ROOT / "tests" / "samples" / "normalised_residual"


def run(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run `python -m grader`."""
    command = [sys.executable, "-m", "grader", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)


def test_grade_prints_a_table_and_writes_the_result(tmp_path: Path) -> None:
    """The main job, on the shipped sample, twice: the same bytes but for the time it took."""
    documents = []
    for name in ("first.json", "second.json"):
        done = run("grade", SAMPLE, "--json", tmp_path / name)
        assert (done.returncode, done.stderr) == (0, "")
        text = (tmp_path / name).read_text()
        documents.append(json.loads(text))
        assert documents[-1].pop("execution_time") > 0
    assert documents[0] == documents[1]
    assert list(documents[0]) == list(documents[1])

    assert documents[0]["score"] == 85
    assert "85 of 100 points" in done.stdout
    assert "Look at this first:\n- block.py: The residual starts from the normalised input." in done.stdout
    assert "3.13 A constant passes straight through (block.constant_shift)" in done.stdout
    assert "look at" in done.stdout
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_one_check_can_be_graded_alone(tmp_path: Path) -> None:
    """By id or number, as a TA does who has just written it."""
    done = run("grade", SAMPLE, "--part", "block.constant_shift", "--part", "1.1", "--json", tmp_path / "x")
    document = json.loads((tmp_path / "x").read_text())
    assert done.returncode == 0
    assert [test["number"] for test in document["tests"]] == ["1.1", "3.13"]
    assert [test["extra_data"]["outcome"] for test in document["tests"]] == ["passed", "failed"]
    assert document["extra_data"]["parts"].keys() == {"attention", "block"}


def test_the_result_may_go_into_a_pipe(tmp_path: Path) -> None:
    """What is no file is written into and stays what it is: `--json /dev/null`, `--json >(jq .score)`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["/bin/cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        done = run("grade", SAMPLE, "--part", "attention", "--json", pipe)
        text, _ = reader.communicate(timeout=60)
    assert done.returncode == 0
    assert json.loads(text)["score"] == 30
    assert pipe.is_fifo()


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    """As with `--json /dev/stdout > file`."""
    link, target = tmp_path / "link", tmp_path / "target.json"
    link.symlink_to(target)
    report.write_atomically(link, "once")
    report.write_atomically(link, "twice")
    assert link.is_symlink()
    assert target.read_text() == "twice"


def test_a_zip_is_graded_like_its_folder(tmp_path: Path) -> None:
    """One part of it, with cases drawn afresh, without a JSON."""
    archive = tmp_path / "hw3.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name, text in reference().items():
            file.writestr(f"hw3-main/starter/{name}", text)
    done = run("grade", archive, "--part", "attention", "--seed", 4)
    assert done.returncode == 0
    assert "30 of 30 points" in done.stdout
    assert "multi" not in done.stdout.lower()


def _zip(path: Path, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("attention.py", content)
    return path


def _encrypted(path: Path) -> Path:
    data = bytearray(_zip(path, b"x = 1").read_bytes())
    for signature, flags_at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + flags_at] |= 1
    path.write_bytes(data)
    return path


def _broken(path: Path) -> Path:
    data = bytearray(_zip(path, os.urandom(2000)).read_bytes())
    data[200:260] = b"\0" * 60
    path.write_bytes(data)
    return path


def _empty(path: Path) -> Path:
    path.mkdir()
    return path


def _wrapped(path: Path) -> Path:
    _zip(_empty(path) / "homework.zip", b"x = 1")
    return path


def _file(path: Path) -> Path:
    path.write_text("no zip")
    return path


BAD = {
    "no such path": (lambda path: path, "no such path"),
    "not a zip": (_file, "not a zip"),
    "empty folder": (_empty, "no Python file at all"),
    "only a zip": (_wrapped, "no Python file but homework.zip"),
    "encrypted": (_encrypted, "must not be encrypted"),
    "broken": (_broken, "must be intact"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_line(tmp_path: Path, name: str) -> None:
    """Exit code 2, what the rule is and what was given; nothing is written."""
    make, complaint = BAD[name]
    path = make(tmp_path / "given.zip")
    done = run("grade", path, "--json", tmp_path / "out.json")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert complaint in done.stderr
    assert str(path) in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "COMMAND"),
        (("grade",), "PATH"),
        (
            ("grade", SAMPLE, "--json", "/nowhere/at/all.json"),
            "--json must be a file in a folder that can be written",
        ),
        (("grade", SAMPLE, "--json", ROOT), "--json must be a file"),
        (
            ("grade", SAMPLE, "--part", "attn"),
            "a part must be one of attention, multi_head, block, a check is named by id or number, got attn",
        ),
        (("grade", SAMPLE, "--seed", "x"), "--seed"),
        (("check", "blocks"), "a part must be one of"),
        (("check", "block.reference_pre_norm"), "a public check must be named, got block.reference_pre_norm"),
        (("check", "--path", "/nowhere"), "no such path"),
    ],
)
def test_bad_arguments_get_one_line(arguments: tuple[object, ...], complaint: str) -> None:
    """Exit code 2 before any work is done."""
    done = run(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert complaint in done.stderr


def test_check_runs_the_public_checks_on_the_students_files(tmp_path: Path) -> None:
    """Exit code 1 until everything passes; the last line tells how many points wait elsewhere."""
    stubs = run("check", cwd=ROOT)
    assert stubs.returncode == 1
    assert "0 of 60 points" in stubs.stdout
    assert "40 more points are for checks that course staff runs" in stubs.stdout

    (tmp_path / "starter").mkdir()
    for name, text in reference().items():
        (tmp_path / "starter" / name).write_text(text)
    single = run("check", "2.1", "attention.shapes", cwd=tmp_path)
    assert single.returncode == 0
    assert "2.1  " in single.stdout
    assert "2.2  " not in single.stdout
    assert "attention.py   " in single.stdout
    assert "more points" not in single.stdout
    solved = run("check", "multi_head", cwd=tmp_path)
    assert solved.returncode == 0
    assert "24 of 24 points" in solved.stdout
    assert "16 more points" in solved.stdout


def test_check_ends_a_hang_where_it_hung(tmp_path: Path) -> None:
    """In the student's own process an endless loop is interrupted and its line named."""
    (tmp_path / "attention.py").write_text(
        reference()["attention.py"].replace(
            "        d_head = q", "        while q is not None: pass\n        d_head = q"
        )
    )
    (tmp_path / "run.py").write_text(
        "from grader import home\nhome.CALL_S = 0.3\nfrom grader.__main__ import main\nraise SystemExit(main(['check', 'attention', '--path', '.']))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 1
    assert "no answer within 0.3 s" in done.stdout
    assert "attention.py:41" in done.stdout
