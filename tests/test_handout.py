"""The handout: built twice alike, without anything hidden, and run as a student runs it."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from grader import build
from grader.assignment import Assignment, load_assignment
from grader.audit import mutants
from grader.check import Check
from grader.intake import SubmissionFiles, read_submission
from grader.misconceptions import misconceptions_about
from grader.strategies.drawing import families
from grader.toml import read_toml
from tests.conftest import Grade, outcomes
from tests.submissions import ROOT, reference, starter, submission

GIVEN_BY_THE_STUBS = {
    "B, T, D = x.shape",
    "self.n_heads = n_heads",
    "self.qkv = nn.Linear(d_model, 3 * d_model)",
    "self.proj = nn.Linear(d_model, d_model)",
    "nn.Linear(d_model, 3 * d_model)",
    "nn.Linear(d_model, d_model)",
    "if key_padding_mask is not None:",
    "mask = mask | key_padding_mask",
    "mask | key_padding_mask",
}
"""Lines of the reference or a wrong version that `stand_ins/` has, too, and that the contract dictates."""

EVERYBODYS = {
    "from torch.nn import functional as F",
    "with torch.no_grad():",
    "def __init__(self) -> None:",
    "d_head = q.shape[-1]",
    "single-head",
}
"""Words and lines that say nothing."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip."""
    out = tmp_path_factory.mktemp("built") / "hw3-handout.zip"
    build.handout(out)
    return out


@pytest.fixture
def handout(archive: Path, tmp_path: Path) -> Path:
    """The folder that a student has unpacked."""
    with zipfile.ZipFile(archive) as file:
        file.extractall(tmp_path)
    return tmp_path / build.HANDOUT


def python(
    handout: Path, *arguments: str, said: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python where the handout is; its grader is found before the one that is being tested."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=handout,
        input=said,
        capture_output=True,
        text=True,
        env=inherited | {"COLUMNS": "200"} | environment,
        timeout=300,
    )


def grader(handout: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m grader` there."""
    return python(handout, "-m", "grader", *arguments, **more)


def write(handout: Path, files: Mapping[str, str | bytes]) -> None:
    """Put files into `starter/`."""
    for name, text in files.items():
        data = text.encode() if isinstance(text, str) else text
        (handout / "starter" / name).write_bytes(data)


# --- what is in it -------------------------------------------------------------------------------


def test_two_builds_are_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    """Whenever and wherever it is built."""
    build.handout(tmp_path / "again" / "other.zip")
    assert (tmp_path / "again" / "other.zip").read_bytes() == archive.read_bytes()


def test_only_what_a_student_needs_ships(handout: Path) -> None:
    """Every module of it is read by `check` on wrong code or by `submission`, and they need no other."""
    write(handout, reference() | {"attention.py": reference()["attention.py"].replace("sqrt(d", "exp(d")})
    script = (
        "import sys\n"
        "from grader.__main__ import main\n"
        "main(['check', '--pdb']), main(['submission'])\n"
        "print(*sorted(m.__file__ for n, m in sys.modules.items() if n.partition('.')[0] == 'grader'))"
    )
    done = python(handout, "-c", script, said="q\n")
    read = {Path(name).relative_to(handout.resolve()) for name in done.stdout.splitlines()[-1].split()}
    shipped = {path.relative_to(handout) for path in (handout / "grader").rglob("*.py")}
    sources = {Path("grader", "stand_ins", f"{part}.py") for part in ("attention", "multi_head")}
    assert shipped - sources == read | {Path("grader", "checks", "public", "__init__.py")}


def test_no_file_of_staffs_ships(archive: Path) -> None:
    """Neither the reference nor wrong versions nor what runs a grade."""
    with zipfile.ZipFile(archive) as file:
        names = file.namelist()
    staffs = re.compile(
        r"reference|hidden|misconceptions|mutants|alternatives|attacks|sandbox|gradescope|audit|batch"
    )
    assert not [name for name in names if staffs.search(name)]
    assert all(name.startswith("hw3-handout/") for name in names)


def test_nothing_hidden_leaks(handout: Path) -> None:
    """No hidden check, no line of the reference, no wrong version, in no file."""
    stubs = "".join(path.read_text() for path in (handout / "starter").iterdir())
    shipped = {path: path.read_text() for path in handout.rglob("*") if path.is_file()}
    secrets = {text for text in _secrets() if len(text) >= 8 and text not in stubs}
    assert len(secrets) > 1000
    for path, text in shipped.items():
        found = {secret for secret in secrets - EVERYBODYS if secret in text}
        allowed = GIVEN_BY_THE_STUBS if path.parent.name in ("stand_ins", "public") else set()
        assert found <= allowed, path
        assert "# hidden" not in text.replace("`# hidden`", ""), path


def _secrets() -> Iterator[str]:
    assignment = load_assignment()
    public = {check.family for check in _checks(assignment, hidden=False)}
    yield from families().keys() - public
    for entry, check in zip(
        [e for e in assignment.checks.values() if e.hidden], _checks(assignment, hidden=True), strict=True
    ):
        yield from (entry.id, entry.id.partition(".")[2], entry.title, check.sentence)
    for part in assignment.parts:
        yield from _distinctive((ROOT / "reference" / f"{part}.py").read_text())
        for misconception in misconceptions_about(part):
            yield from (misconception.slug, misconception.name, misconception.says, misconception.asks)
    for mutant in mutants():
        yield from (mutant.slug, mutant.idea)
        for edit in mutant.edits:
            yield from _distinctive("\n".join(edit))
    for survivor in read_toml(ROOT / "tests" / "mutants" / "survivors.toml")["survivor"]:
        yield from (survivor["why"], survivor["after"])


def _distinctive(code: str) -> Iterator[str]:
    """Its lines that are not anybody's."""
    yield from (line.strip() for line in code.splitlines() if len(line.strip()) >= 20)


def _checks(assignment: Assignment, *, hidden: bool) -> list[Check]:
    kind = "hidden" if hidden else "public"
    found = []
    for entry in assignment.checks.values():
        if entry.hidden is hidden:
            module = importlib.import_module(f"grader.checks.{kind}.test_{entry.part}")
            found.append(getattr(module, f"test_{entry.id.partition('.')[2]}").check)
    return found


def test_cases_are_those_of_public_checks(handout: Path, assignment: Assignment) -> None:
    """And they lack what only hidden checks vary."""
    families = json.loads((handout / "grader" / "cases.json").read_text())
    assert families.keys() == {c.family for c in _checks(assignment, hidden=False) if c.family}
    fields = {name for cases in families.values() for case in cases for name in case}
    assert "small" not in fields


def test_the_assignment_says_how_many_points_wait(handout: Path, assignment: Assignment) -> None:
    """Public checks have the numbers and points that they have for staff; of hidden ones there is the sum."""
    there = load_assignment.__wrapped__(handout / "grader" / "assignment.toml")
    public = [check for check in assignment.checks.values() if not check.hidden]
    assert list(there.checks.values()) == public
    assert all(there.numbers[check.id] == assignment.numbers[check.id] for check in public)
    waiting = {name: part.hidden_points for name, part in there.parts.items()}
    assert waiting == {name: part.hidden_points for name, part in assignment.parts.items()}
    assert sum(waiting.values()) + sum(check.points for check in public) == 100
    assert there.targets == assignment.targets


def test_dependencies_are_some_of_the_graders(handout: Path) -> None:
    """With the same versions; the README has the points that the assignment has."""
    students = read_toml(handout / "pyproject.toml")["project"]
    staffs = read_toml(ROOT / "pyproject.toml")["project"]
    assert set(students["dependencies"]) < set(staffs["dependencies"])
    assert students["requires-python"] == staffs["requires-python"]
    assert "| Multi-head self-attention | `multi_head.py` | 24 | 16 |" in (handout / "README.md").read_text()


# --- check ---------------------------------------------------------------------------------------

CHECK = """
import json, sys
from pathlib import Path
import grader
from grader import home
from grader.assignment import load_assignment
from grader.commands.arguments import chosen
assert Path(grader.__file__).parent == Path.cwd() / "grader"
assignment = load_assignment()
print(json.dumps(home.check(assignment, Path("starter"), chosen(sys.argv[1:], assignment)).document))
"""


def _wrong(part: str) -> list[SubmissionFiles]:
    """Two mutants of a part, of many, that a public check catches."""
    hidden = {check.id for check in load_assignment().checks.values() if check.hidden}
    of_part = [m for m in mutants() if m.part == part and not m.misconception and set(m.fails) - hidden]
    return [mutant.files for mutant in (of_part[0], of_part[len(of_part) // 2])]


SAME = {
    "reference": (submission(reference()), []),
    "starter": (starter(), []),
    "attention, in use": (_wrong("attention")[0], ["attention", "multi_head"]),
    "attention": (_wrong("attention")[1], ["attention"]),
    "multi_head, in use": (_wrong("multi_head")[0], ["multi_head", "block"]),
    "multi_head": (_wrong("multi_head")[1], ["multi_head"]),
    "block": (_wrong("block")[0], ["block"]),
    "other block": (_wrong("block")[1], ["block"]),
}


@pytest.mark.parametrize("name", SAME)
def test_public_checks_say_the_same_here_and_in_a_grade(
    handout: Path, grade: Grade, assignment: Assignment, name: str
) -> None:
    """Outcome, points and number of every public check."""
    files, parts = SAME[name]
    write(handout, {Path(path).name: data for path, data in files.files.items()})
    done = python(handout, "-c", CHECK, *parts, PYTHONHASHSEED="0")
    here = json.loads(done.stdout)
    graded = grade(files, *parts, simplify=False, recognise=False)

    public = {entry.id for entry in assignment.checks.values() if not entry.hidden}
    assert _verdicts(here) == {check: v for check, v in _verdicts(graded).items() if check in public}
    assert outcomes(here)


def _verdicts(document: Mapping[str, Any]) -> dict[str, tuple[str, float, str, str]]:
    return {
        test["extra_data"]["check"]: (
            test["extra_data"]["outcome"],
            test["score"],
            test["number"],
            test["extra_data"].get("at_fault", ""),
        )
        for test in document["tests"]
    }


def test_points_rise_part_by_part(handout: Path) -> None:
    """The first line comes before torch is imported, then one for each part, then the table."""
    for solved, total in ((0, 0), (1, 18), (2, 42), (3, 60)):
        write(handout, dict(list(reference().items())[:solved]))
        done = grader(handout, "check")
        assert done.returncode == (0 if total == 60 else 1)
        first, *parts = done.stdout.splitlines()[:4]
        assert first == "Checking starter ..."
        assert [" 0 of " not in line for line in parts] == [n < solved for n in range(3)]
        assert f"HW3: Transformer from scratch: {total} of 60 points" in done.stdout
        assert re.search(r"Scaled dot-product attention +\d+/18 +\+12 hidden", done.stdout)
        assert done.stdout.splitlines()[-1].startswith("40 more points are for checks")
        assert done.stderr == ""


def test_prints_stand_beside_what_fails(handout: Path) -> None:
    """Those of the case that is told, not of thousands of calls."""
    code = reference()["attention.py"].replace(
        "        d_head = q", "        print('shape', q.dim())\n        d_head = q"
    )
    write(handout, {"attention.py": code})
    right = grader(handout, "check", "attention").stdout
    assert "shape 2" not in right
    assert re.search(r"Your code printed [\d,]+ lines; --prints shows them", right)

    write(handout, {"attention.py": code.replace(" / math.sqrt(d_head)", "")})
    wrong = grader(handout, "check", "attention.scale").stdout
    assert wrong.count("shape 2") == 1
    assert re.search(r"^  printed   shape 2 *$", wrong, re.MULTILINE)


def test_all_prints_are_shown_if_asked_for(handout: Path) -> None:
    """Pytest keeps its own words back, not theirs."""
    code = reference()["attention.py"].replace(
        "        d_head = q", "        print('shape', q.dim())\n        d_head = q"
    )
    write(handout, {"attention.py": code})
    done = grader(handout, "check", "attention", "--prints")
    assert done.stdout.count("shape 2") > 20
    assert "18 of 18 points" in done.stdout
    assert "--prints" not in done.stdout


def test_what_raises_on_one_line_is_told_once(handout: Path) -> None:
    """And not by every check that comes to it."""
    write(handout, {"attention.py": reference()["attention.py"].replace("q.shape", "q.shap")})
    done = grader(handout, "check", "attention")
    assert done.stdout.count("look at   attention.py:41") == 1
    assert "The same cause: 1.2, 1.3" in done.stdout


# --- debugger ------------------------------------------------------------------------------------


def test_the_debugger_stops_where_the_code_raised(handout: Path) -> None:
    """In the student's frame, with the input that fails; to quit is no error."""
    write(handout, {"attention.py": reference()["attention.py"].replace("q.shape", "q.shap")})
    done = grader(handout, "check", "attention", "--pdb", said="where\np tuple(q.shape)\nq\n")
    assert done.returncode == 1
    assert done.stderr == ""
    session = done.stdout.partition("The debugger, at the first failure: attention.shapes")[2]
    assert "starter/attention.py(41)forward()\n-> d_head = q.shap[-1]" in session
    assert "(1, 1)" in session
    assert "grader/" not in session.replace(str(handout), "")


def test_the_debugger_stops_where_values_are_wrong(handout: Path) -> None:
    """At the beginning of `forward`, on the case that is told."""
    write(
        handout, reference() | {"multi_head.py": reference()["multi_head.py"].replace(".triu(1)", ".triu(2)")}
    )
    done = grader(handout, "check", "multi_head", "--pdb", said="where\nn\np (B, T)\nc\nq\n")
    assert (done.returncode, done.stderr) == (1, "")
    session = done.stdout.partition("The debugger, at the first failure: multi_head.future_perturbation")[2]
    assert session.count("-> B, T, D = x.shape") == 3  # stopped, where, the next call
    assert "(1, 2)" in session
    assert "grader/" not in session.replace(str(handout), "")


@pytest.mark.parametrize("statement", ["breakpoint()", "import pdb; pdb.set_trace()"])
def test_a_breakpoint_of_the_students_works(handout: Path, statement: str) -> None:
    """It shows their frames, and to quit ends the run."""
    code = reference()["attention.py"].replace(
        "        d_head = q", f"        {statement}\n        d_head = q"
    )
    write(handout, {"attention.py": code})
    done = grader(handout, "check", "attention", said="n\nwhere\nq\n")
    assert done.returncode == 130
    assert done.stderr.startswith("grader: interrupted at attention.py:4")
    assert "forward()" in done.stdout
    assert "adapters.py" not in done.stdout


def test_the_debugger_has_nothing_to_do_in_stubs(handout: Path) -> None:
    """It says so."""
    done = grader(handout, "check", "attention", "--pdb")
    assert done.returncode == 1
    assert "no failure in the code of these parts for the debugger" in done.stdout


# --- elsewhere -----------------------------------------------------------------------------------

WITHOUT_POSIX = """
import os, signal, sys

ABSENT = ("resource", "fcntl", "pwd", "grp", "termios")


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
for name in ABSENT:
    sys.modules.pop(name, None)
for name in ("setitimer", "alarm", "SIGALRM", "ITIMER_REAL", "SIGKILL"):
    delattr(signal, name)
for name in ("fork", "execve", "getuid", "O_NOFOLLOW"):
    delattr(os, name)
"""


def test_check_and_submission_need_nothing_of_posix(handout: Path, tmp_path: Path) -> None:
    """No alarms, no fork, a console of Windows' old encoding; a wrong part, so that all of it runs."""
    (tmp_path / "shim").mkdir()
    (tmp_path / "shim" / "sitecustomize.py").write_text(WITHOUT_POSIX)
    code = (
        reference()["attention.py"]
        .replace(" / math.sqrt(d_head)", "")
        .replace("        d_head", "        print('√')\n        d_head")
    )
    write(handout, reference() | {"attention.py": code})
    without = {"PYTHONPATH": str(tmp_path / "shim"), "PYTHONHASHSEED": "0", "PYTHONIOENCODING": "cp1252"}
    for arguments, said in ((("check", "attention", "--pdb"), "p 1 + 1\nq\n"), (("submission",), "")):
        done = grader(handout, *arguments, said=said, **without)
        assert done.stderr == ""
        assert done.returncode == (1 if "check" in arguments else 0)
        assert "(Pdb) 2" in done.stdout or "check" not in arguments


# --- submission ----------------------------------------------------------------------------------


def test_submission_writes_what_the_grader_takes(handout: Path, assignment: Assignment) -> None:
    """The parts and helpers and nothing else, the same bytes twice."""
    write(handout, reference() | {"helpers.py": "x = 1\n", "notes.txt": "no code"})
    (handout / "starter" / "__pycache__").mkdir()
    (handout / "starter" / "__pycache__" / "old.py").write_text("")
    first, second = grader(handout, "submission"), grader(handout, "submission", "--out", "again.zip")
    assert (first.returncode, first.stderr, second.returncode) == (0, "", 0)
    assert "submission.zip holds attention.py, block.py, helpers.py, multi_head.py" in first.stdout
    assert (handout / "submission.zip").read_bytes() == (handout / "again.zip").read_bytes()
    handed_in = read_submission(handout / "submission.zip", assignment.files)
    assert handed_in.files == read_submission(handout / "starter", assignment.files).files
    assert set(handed_in.parts) == set(assignment.parts)


def test_submission_of_stubs_warns(handout: Path) -> None:
    """It is written all the same; so is what would cost a part its points."""
    operator = "import torch\nclass ScaledDotProductAttention(torch.nn.Module):\n    def forward(self, q, k, v, mask=None):\n        return torch.nn.functional.scaled_dot_product_attention(q, k, v), None\n"
    write(handout, {"attention.py": operator})
    done = grader(handout, "submission")
    assert done.returncode == 0
    assert "multi_head.py:29 is not filled in yet" in done.stderr
    assert "attention.py:4 uses" in done.stderr
    assert "attention.py is not from scratch" in done.stderr
    assert (handout / "submission.zip").is_file()


def test_submission_refuses_what_cannot_be_graded(handout: Path) -> None:
    """A file is missing, another does not parse: said with the line; only `--anyway` writes."""
    write(handout, {"block.py": "import torch\ndef f(:\n"})
    (handout / "starter" / "attention.py").unlink()
    refused = grader(handout, "submission")
    assert refused.returncode == 2
    assert "attention.py is not in starter" in refused.stderr
    assert "block.py:2: importing block.py raised SyntaxError" in refused.stderr
    assert "--anyway" in refused.stderr
    assert not (handout / "submission.zip").exists()

    assert grader(handout, "submission", "--anyway").returncode == 0
    assert (handout / "submission.zip").is_file()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("submission", "--path", "nowhere"), "no such path"),
        (("submission", "--out", "no/where.zip"), "--out must be a file that can be written"),
        (
            ("check", "attn"),
            "a part must be one of attention, multi_head, block, a check is named by id or number, got attn",
        ),
        (("grade", "starter"), "invalid choice: 'grade'"),
    ],
)
def test_bad_arguments_get_one_line(handout: Path, arguments: tuple[str, ...], complaint: str) -> None:
    """Name, rule, got; and there is no `grade` here."""
    write(handout, reference())
    done = grader(handout, *arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert complaint in done.stderr


# --- make ----------------------------------------------------------------------------------------


def make(handout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make with the interpreter of these tests as its environment."""
    venv = Path(sys.executable).parent.parent
    ours = ("PYTHONPATH", "MAKEFLAGS", "ARGS")  # of the `make test ARGS=...` that runs these tests
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    command = ["make", f"VENV={venv}", f"--old-file={venv}/ready", *arguments]
    return subprocess.run(command, cwd=handout, capture_output=True, text=True, env=environment, timeout=300)


def test_make_does_not_call_a_failed_check_an_error(handout: Path) -> None:
    """It ends well, with the table; a mistake in the arguments is still one."""
    done = make(handout, "test", "PART=attention")
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 of 18 points" in done.stdout
    assert make(handout, "test", "PART=attn").returncode == 2


def test_make_submission(handout: Path) -> None:
    """Writes the zip."""
    done = make(handout, "submission")
    assert done.returncode == 0
    assert (handout / "submission.zip").is_file()
