"""A submission can break only itself: no deed is done, no fault costs others, no forgery pays."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from grader import report
from grader.assignment import Assignment
from grader.grading import Graded, Grader, Options
from grader.sandbox.confine import ROOT
from grader.sandbox.zygote import Zygote
from grader.toml import read_toml
from tests.attacks.world import World, workers
from tests.conftest import outcomes
from tests.submissions import edited, reference, submission, with_part

FORWARD = "        d_head = q.shape[-1]\n"
"""The first line of the reference's attention forward."""

SOME_CHECKS = (
    "attention.shapes",
    "attention.repeatable",
    "multi_head.shapes",
    "multi_head.head_slices",
    "block.shapes",
)

_FOLDER = Path(__file__).parent / "attacks"


def _attacks(name: str) -> list[tuple[str, str, str]]:
    found = read_toml(_FOLDER / f"{name}.toml")
    return [(kind, slug, code) for kind, attacks in found.items() for slug, code in attacks.items()]


DEEDS = _attacks("deeds")
FAULTS = _attacks("faults")
FORGERIES = _attacks("forgeries")
EVASIONS = _attacks("evasions")
STRANGE = _attacks("strange")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world of this test's own."""
    with contextlib.suppress(PermissionError):  # as an ordinary user, others have done so
        for folder in tmp_path.parents[:3]:
            folder.chmod(0o755)
    found = World(tmp_path)
    yield found
    found.close()


@pytest.fixture(scope="session")
def hasty(assignment: Assignment, zygote: Zygote) -> Grader:
    """A grader with little time, so that what hangs ends while somebody waits for these tests."""
    limits = {"call_s": 1.5, "impatient_call_s": 0.5, "check_s": 6.0, "submission_s": 40.0, "idle_s": 2.0}
    return Grader(replace(assignment, limits=assignment.limits | limits), zygote)


def _deed(code: str) -> str:
    """The reference's attention, which first tries the deed."""
    body = textwrap.indent(code.strip(), "    ")
    return (
        f"import os, sys\n{reference()['attention.py'].replace(FORWARD, '        tried()' + chr(10) + FORWARD)}\n"
        f"def deed():\n{body}\n"
        "DONE = []\n"
        "def tried():\n"
        "    if DONE: return\n"
        "    DONE.append(1)\n"
        "    try: found = deed()\n"
        "    except BaseException as error: found = None; print('refused', type(error).__name__)\n"
        "    if found: print('WORKED', repr(found)[:300])\n"
    )


def _graded(grader: Grader, source: str, *checks: str) -> Graded:
    options = Options(checks=checks, simplify=False, recognise=False)
    return grader.grade(with_part("attention", source), options)


@pytest.mark.parametrize(
    ("slug", "code"), [deed[1:] for deed in DEEDS], ids=["-".join(deed[:2]) for deed in DEEDS]
)
def test_no_deed_is_done(grader: Grader, world: World, slug: str, code: str) -> None:
    """It is refused, nothing around is touched, and the code's own points stand."""
    graded = _graded(grader, _deed(world.filled_in(code)), "attention.shapes")
    assert "WORKED" not in graded.printed
    assert world.damage() == []
    if slug != "exec":
        assert graded.document["score"] == 1


def test_a_deed_that_works_is_noticed(grader: Grader) -> None:
    """The net has no hole of its own."""
    assert "WORKED" in _graded(grader, _deed("return open('/dev/null', 'w')"), "attention.shapes").printed


@pytest.mark.parametrize(("kind", "slug", "code"), FAULTS, ids=[f"{kind}-{slug}" for kind, slug, _ in FAULTS])
def test_a_fault_costs_only_its_part(hasty: Grader, zygote: Zygote, kind: str, slug: str, code: str) -> None:
    """The run ends in time with a result for every check; the other parts keep their points."""
    started = time.monotonic()
    if kind == "import":
        source = f"import os, sys\nimport torch\n{code.strip()}\n" + reference()["attention.py"]
    else:
        source = "import os, sys\n" + reference()["attention.py"].replace(
            FORWARD, textwrap.indent(code.strip(), "        ") + "\n" + FORWARD
        )
    document = _graded(hasty, source, *SOME_CHECKS).document
    found = outcomes(document)
    assert set(found) == set(SOME_CHECKS)
    assert not document["extra_data"]["grader_error"]
    if slug not in _HARMLESS:
        assert found["attention.shapes"] != "passed"
    assert {found[check] for check in SOME_CHECKS[2:]} == {"passed"}
    assert time.monotonic() - started < 60
    assert all(
        text.isprintable() or "\n" in text
        for test in document["tests"]
        for text in test["output"].splitlines()
    )
    assert workers(zygote) == []


_HARMLESS = ("threads", "descriptors", "garbage-collector", "deletes-torch", "waits-for-a-lock")


ZEROS = """
import math, os, sys
import torch
from torch import nn
ANSWER = None
{attack}
class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        output, weights = v.new_zeros(*q.shape[:-1], v.shape[-1]), v.new_zeros(*q.shape[:-1], k.shape[-2])
        if ANSWER: output, weights = output.as_subclass(ANSWER), weights.as_subclass(ANSWER)
        return output, weights
"""


@pytest.fixture(scope="session")
def honest_zeros(grader: Grader) -> float:
    """What the wrong class gets that all forgeries have."""
    graded = _graded(grader, ZEROS.format(attack=""), *_OF_ATTENTION)
    score: float = graded.document["score"]
    assert score > 0
    return score


_OF_ATTENTION = (
    "attention.shapes",
    "attention.parameters",
    "attention.dtype",
    "attention.repeatable",
    "attention.distribution",
    "attention.blocked_keys_weigh_zero",
    "attention.dead_rows_are_zero",
    "attention.huge_scores",
    "attention.scale",
    "attention.torch_agrees",
    "attention.reference_output",
    "attention.reference_weights",
)


@pytest.mark.parametrize("code", [code for *_, code in FORGERIES], ids=[slug for _, slug, _ in FORGERIES])
def test_no_forgery_pays(grader: Grader, honest_zeros: float, code: str) -> None:
    """Points come from values, and values from the student's function."""
    graded = _graded(grader, ZEROS.format(attack=code), *_OF_ATTENTION)
    assert graded.document["score"] <= honest_zeros
    assert not graded.document["extra_data"]["grader_error"]


@pytest.mark.parametrize("code", [code for *_, code in EVASIONS], ids=[slug for _, slug, _ in EVASIONS])
def test_no_way_around_costs_less(grader: Grader, code: str) -> None:
    """Torch's own attention is noticed, whatever leads there, and charged to the class that runs."""
    source = (
        "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
        "N = 'scaled_dot_' + 'product_attention'\n"
        "class ScaledDotProductAttention(nn.Module):\n    def forward(self, q, k, v, mask=None):\n"
        + textwrap.indent(code.strip(), "        ")
    )
    checks = ("attention.shapes", "attention.repeatable", "multi_head.shapes", "multi_head.head_slices")
    document = _graded(grader, source, *checks).document
    assert {use["part"] for use in document["extra_data"]["from_scratch"]["uses"]} == {"attention"}
    assert document["extra_data"]["parts"]["attention"]["score"] == 0
    assert document["extra_data"]["parts"]["multi_head"]["score"] == 4


@pytest.mark.parametrize(("slug", "code"), [one[1:] for one in STRANGE], ids=[slug for _, slug, _ in STRANGE])
def test_strange_code_is_no_error_of_the_grader(grader: Grader, slug: str, code: str) -> None:
    """Nor does it cost parts that do not use it."""
    code = code.replace("{deep}", "+".join("1" * 900))
    code = code.replace("{many}", "F = torch.nn.functional\n" + "F.scaled_dot_product_attention\n" * 1500)
    files = reference()
    own = files["attention.py"].replace("ScaledDotProductAttention", "Own")
    alone = files["multi_head.py"].replace("from .attention import ScaledDotProductAttention", own)
    files["multi_head.py"] = alone.replace("ScaledDotProductAttention(", "Own(")
    files["attention.py"] = f"{files['attention.py']}\n{code}\n"
    document = grader.grade(submission(files), Options(simplify=False, recognise=False)).document
    assert not document["extra_data"]["grader_error"]
    written = report.to_json(document).encode()
    assert b"\x1b" not in written
    assert "\u202e" not in document["output"]
    assert len(written) < 1 << 20
    lost = [part for part in ("multi_head", "block") if document["extra_data"]["parts"][part]["score"] < 29]
    assert lost == []
    if slug == "deep-source":
        assert document["score"] == 100


def test_nothing_tells_how_the_grader_was_started(grader: Grader) -> None:
    """Neither the environment nor the command line is left where the system put them."""
    looking = (
        "import ctypes\n"
        "start = ctypes.c_void_p.in_dll(ctypes.CDLL(None), 'program_invocation_name').value\n"
        "return [text for text in ctypes.string_at(start, 512).split(bytes(1)) if text and not text.endswith(b'python')]"
    )
    assert "WORKED" not in _graded(grader, _deed(looking), "attention.shapes").printed
    assert (
        "WORKED"
        not in _graded(grader, _deed("return [a for a in sys.orig_argv if a]"), "attention.shapes").printed
    )


def test_time_is_booked_however_a_call_ends(assignment: Assignment, zygote: Zygote) -> None:
    """Who computes and then dies, or sleeps a little in every call, comes to an end, too."""
    limits = {"call_s": 2.0, "impatient_call_s": 1.0, "check_s": 2.0, "submission_s": 4.0, "idle_s": 2.0}
    hasty = Grader(replace(assignment, limits=assignment.limits | limits), zygote)
    for code in (
        "end = time.process_time() + 1.0\nwhile time.process_time() < end: pass\nos._exit(1)",
        "time.sleep(1.5)",
    ):
        body = textwrap.indent(code, "        ")
        source = "import os, time\n" + reference()["attention.py"].replace(FORWARD, body + "\n" + FORWARD)
        started = time.monotonic()
        document = _graded(hasty, source, *_OF_ATTENTION).document
        assert time.monotonic() - started < 100
        assert "timed_out" in outcomes(document).values() or "died" in outcomes(document).values()
        assert not document["extra_data"]["grader_error"]


def test_a_hostile_submission_leaves_no_trace(grader: Grader) -> None:
    """A right one before and after a row of hostile ones gets the same result, to the byte."""
    right = submission(reference())

    def result() -> dict:
        document = grader.grade(right, Options(["attention"])).document
        document.pop("execution_time")
        return document

    before = result()
    for _, _, code in FORGERIES[::6]:
        _graded(grader, ZEROS.format(attack=code), "attention.shapes")
    for code in ("os._exit(0)", "torch.ones(1 << 40)"):
        grader.grade(
            edited("attention", (FORWARD, f"        import os\n        {code}\n{FORWARD}")),
            Options(checks=SOME_CHECKS[:2]),
        )
    assert result() == before
    assert before["score"] == 30


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests have done so")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_no_deed_is_done_by_an_ordinary_user(tmp_path: Path) -> None:
    """The same again as a staff laptop would run it: no root anywhere, one user for all processes.

    It may read what only root can, for Python may lie there.
    """
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents[:3]:
        folder.chmod(0o755)
    user = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
    reads = [
        "--inh-caps=+dac_read_search",
        "--ambient-caps=+dac_read_search",
        "--bounding-set=-all,+dac_read_search",
    ]
    tests = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        f"--basetemp={tmp_path / 'run'}",
        __file__,
    ]
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*user, *reads, sys.executable, *tests, "-k", "deed or layer"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert f"{len(DEEDS) + 2} passed" in done.stdout


def test_every_layer_is_there(grader: Grader) -> None:
    """Where these tests run, everything holds but what only root has."""
    document = _graded(grader, reference()["attention.py"], "attention.shapes").document
    isolation = document["extra_data"]["isolation"]
    assert isolation["missing"] == {}
    weak = [name for name, layer in isolation["layers"].items() if not layer["holds"]]
    assert weak == ([] if os.geteuid() == 0 else ["own_uid"])
    assert Path(ROOT, "reference").is_dir()
