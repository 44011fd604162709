"""A submission's files become modules, whatever their layout, encoding and import style."""

from __future__ import annotations

import importlib
import sys
import time

import pytest

from grader.loader import SubmissionModules, find_parts
from tests.conftest import Grade, outcomes, output
from tests.submissions import reference, submission

FILES = {"attention": "attention.py", "multi_head": "multi_head.py", "block": "block.py"}


@pytest.mark.parametrize(
    ("paths", "chosen"),
    [
        (["attention.py", "starter/attention.py"], "attention.py"),
        (["starter/attention.py", "a/attention.py"], "starter/attention.py"),
        (["hw3-main/starter/attention.py", "hw3-main/attention.py"], "hw3-main/attention.py"),
        (["x/hw3/starter/attention.py"], "x/hw3/starter/attention.py"),
        (["a/attention.py", "b/attention.py", "b/block.py"], "b/attention.py"),
        (["__MACOSX/attention.py", "hw3/starter/attention.py"], "hw3/starter/attention.py"),
        ([".git/attention.py", "venv/attention.py", "a/b/attention.py"], "a/b/attention.py"),
    ],
)
def test_the_shallowest_file_is_the_part(paths: list[str], chosen: str) -> None:
    """Then the one in `starter/`, then the one in the fullest folder; noise does not count."""
    assert find_parts(paths, FILES)["attention"] == chosen


@pytest.mark.parametrize(
    ("paths", "chosen"),
    [
        (["attention-2.py"], "attention-2.py"),
        (["hw3/attention (1).py", "hw3/attention_utils.py"], "hw3/attention (1).py"),
        (["Attention.py"], "Attention.py"),
        (["attention copy.py", "attention-2.py", "attention-10.py", "attention (3).py"], "attention-10.py"),
        (["smithbob_LATE_340934_208490284_attention-1.py"], "smithbob_LATE_340934_208490284_attention-1.py"),
        (["attention-2.py", "old/attention.py"], "old/attention.py"),
        (["attention_final_v2.py", "attention_old.py", "my_attention.py"], "attention_final_v2.py"),
    ],
)
def test_a_name_that_means_the_same_counts(paths: list[str], chosen: str) -> None:
    """Only where none has the name itself; of several uploads the last."""
    assert find_parts(paths, FILES)["attention"] == chosen


@pytest.mark.parametrize(
    "paths", [["multi-head.py"], ["MultiHead.py"], ["multi head (2).py"], ["x_1_2_multi_head.py"]]
)
def test_marks_in_a_name_do_not_count(paths: list[str]) -> None:
    """Underscores become spaces and dashes on the way."""
    assert find_parts(paths, {"multi_head": "multi_head.py"}) == {"multi_head": paths[0]}


@pytest.mark.parametrize("name", ["-" * 60_000 + "x.py", "_1" * 30_000 + "x.py", " (1)" * 10_000 + "x.py"])
def test_a_name_of_a_zips_length_costs_nothing(name: str) -> None:
    """It means no part."""
    started = time.process_time()
    assert find_parts([name, "Attention.py"], FILES) == {"attention": "Attention.py"}
    assert time.process_time() - started < 1


def test_a_submission_under_other_names_is_graded(grade: Grade) -> None:
    """Imports mean the parts, whatever their files are called; places are told by the real names."""
    files = {f"{name.removesuffix('.py')}-2.py": text for name, text in reference().items()}
    files["attention-2.py"] = files["attention-2.py"].replace(
        "d_head = q.", "raise NotImplementedError; d_head = q."
    )
    document = grade(submission(files))
    assert document["extra_data"]["submission"]["parts"]["multi_head"] == "multi_head-2.py"
    assert document["extra_data"]["parts"]["multi_head"]["score"] == 39
    assert document["extra_data"]["parts"]["block"]["score"] == 29
    assert "attention-2.py:41" in output(document, "attention.shapes")


def test_a_part_that_is_nowhere_is_not_found() -> None:
    """Too deep, or under another name."""
    assert find_parts(["a/b/c/d/attention.py", "Attention.txt"], FILES) == {}


STYLES = {
    "package": "from starter.{} import {}",
    "relative": "from .{} import {}",
    "plain": "from {} import {}",
}


@pytest.mark.parametrize("folder", ["", "starter/", "hw3-main/starter/"])
@pytest.mark.parametrize("style", STYLES)
def test_every_style_in_every_place_is_one_module(grade: Grade, style: str, folder: str) -> None:
    """Parts and helpers import each other in any style; classes are the same objects."""
    files = {f"{folder}{name}": text for name, text in reference().items()}
    for name in ("attention.ScaledDotProductAttention", "multi_head.MultiHeadSelfAttention"):
        module, class_name = name.split(".")
        user = f"{folder}{'multi_head' if module == 'attention' else 'block'}.py"
        old = STYLES["relative"].format(module, class_name)
        assert old in files[user]
        files[user] = files[user].replace(old, STYLES[style].format(module, class_name))
    same = "\n".join(
        [
            "import attention, starter.attention",
            "from . import attention as relative",
            "from .helpers import HELP",
            "import helpers",
            "assert attention is starter.attention is relative and helpers.HELP is HELP",
            "assert attention.__name__ == 'starter.attention'",
            "assert attention.__spec__.name == 'starter.attention'",
        ]
    )
    files[f"{folder}block.py"] += same
    files[f"{folder}helpers.py"] = "HELP = object()\n"
    assert grade(submission(files))["score"] == 100


def test_encodings_and_line_ends_are_pythons_affair(grade: Grade) -> None:
    """CRLF, a byte order mark, tabs, a coding line."""
    files: dict[str, bytes | str] = dict(reference())
    files["attention.py"] = files["attention.py"].replace("\n", "\r\n").encode()
    files["multi_head.py"] = b"\xef\xbb\xbf" + files["multi_head.py"].replace("    ", "\t").encode()
    files["block.py"] = ("# -*- coding: latin-1 -*-\nname = 'Müller'\n" + files["block.py"]).encode("latin-1")
    assert grade(submission(files))["score"] == 100


def test_what_stands_at_the_top_level_is_harmless(grade: Grade) -> None:
    """Prints, seeds, process-wide switches, and a main block that would fail."""
    noise = (
        "import torch, random\nprint('hello')\ntorch.manual_seed(0)\nrandom.seed(0)\n"
        "torch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(False)\ntorch.set_num_threads(2)\n"
    )
    main = "\nif __name__ == '__main__':\n    raise SystemExit('main ran')\n"
    files = {name: noise + text + main for name, text in reference().items()}
    assert grade(submission(files))["score"] == 100


def test_files_named_like_modules_shadow_nothing(grade: Grade) -> None:
    """`torch.py`, `json.py` and pytest's files do nothing; `grader.py` is what this submission imports."""
    trap = "raise SystemExit('imported')\n"
    names = (
        "torch",
        "json",
        "numpy",
        "conftest",
        "sitecustomize",
        "pytest",
        "test_attention",
        "usercustomize",
    )
    files = reference() | {f"{name}.py": trap for name in names} | {"pytest.ini": "[pytest]\naddopts = -x"}
    files |= {"grader.py": "MINE = 1\n", "random.py": "MINE = 2\n"}
    files["block.py"] += "\nimport json\nfrom grader import MINE\nfrom .random import MINE as two\n"
    files["block.py"] += "assert (MINE, two) == (1, 2) and json.dumps\n"
    assert grade(submission(files))["score"] == 100


def test_helpers_in_packages_and_above_the_parts(grade: Grade) -> None:
    """A package beside the parts, and a module in the folder above them."""
    files = {f"hw3/starter/{name}": text for name, text in reference().items()}
    files |= {
        "hw3/starter/utils/__init__.py": "",
        "hw3/starter/utils/masks.py": "from ..utils import sizes\nONE = sizes.ONE\n",
        "hw3/starter/utils/sizes.py": "ONE = 1\n",
        "hw3/above.py": "TWO = 2\n",
        "hw3/starter/loose/inner.py": "THREE = 3\n",
    }
    files["hw3/starter/block.py"] += (
        "\nfrom utils.masks import ONE\nfrom starter.utils.masks import ONE as same\nfrom above import TWO\n"
        "from .loose.inner import THREE\nassert (ONE, same, TWO, THREE) == (1, 1, 2, 3)\n"
    )
    assert grade(submission(files))["score"] == 100


BROKEN = {
    "syntax": ("def f(:\n    pass\n", "not_importable", "SyntaxError", "attention.py:1"),
    "indentation": ("class A:\npass\n", "not_importable", "IndentationError", "attention.py:2"),
    "raises": (
        "x = 1\ny = x / 0\n",
        "not_importable",
        "ZeroDivisionError: division by zero",
        "attention.py:2",
    ),
    "import": ("import nonexistent_thing\n", "not_importable", "ModuleNotFoundError", "attention.py:1"),
    "null bytes": ("x = '\0'\n", "not_importable", "null bytes", "attention.py"),
    "exit": ("import sys\nsys.exit('bye')\n", "not_importable", "SystemExit: bye", "attention.py:2"),
    "other class": ("class Attention: pass\n", "missing", "defines Attention, not Scaled", "attention.py"),
    "no module": ("class ScaledDotProductAttention: pass\n", "bad_return", "not a subclass", "attention.py"),
    "stub": ("raise NotImplementedError\n", "not_implemented", "not implemented yet", "attention.py:1"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_part_that_cannot_be_imported_leaves_the_others(grade: Grade, name: str) -> None:
    """It says which file, which line, what; a block that does not need it keeps its points."""
    source, outcome, sentence, where = BROKEN[name]
    files = reference() | {"attention.py": source}
    files["multi_head.py"] = files["multi_head.py"].replace("from .attention", "from .own")
    files["own.py"] = reference()["attention.py"]

    document = grade(submission(files))

    assert document["score"] == 70
    found = outcomes(document)
    assert {found[check] for check in found if check.startswith("attention.")} == {outcome}
    told = " ".join(output(document, "attention.shapes").split())
    assert sentence in told
    assert where in told


def test_a_missing_part_is_missing(grade: Grade) -> None:
    """Its rows say so, and the others are graded."""
    files = reference()
    del files["block.py"]
    document = grade(submission(files))
    assert document["score"] == 70
    assert "block.py is not in the submission" in output(document, "block.shapes")


def test_nothing_of_a_submission_stays_in_this_process() -> None:
    """Outside `installed()` its modules are gone, and what they covered is back."""
    before = dict(sys.modules)
    files = {"attention.py": b"from . import pytest", "pytest.py": b"x = 1"}
    modules = SubmissionModules(files, {"attention": "attention.py"})
    with modules.installed():
        assert modules.import_part("attention").pytest.x == 1
        assert "attention" in sys.modules
    assert sys.modules["pytest"] is pytest
    assert {"attention", "starter", "starter.attention"}.isdisjoint(sys.modules.keys() - before.keys())


def test_what_was_imported_before_under_its_names_does_not_count() -> None:
    """A `starter` that this process knows already is set aside while a submission is installed."""
    importlib.import_module("starter.attention")
    stub = sys.modules["starter.attention"]
    modules = SubmissionModules({"attention.py": b"x = 1"}, {"attention": "attention.py"})
    for _ in range(2):
        with modules.installed():
            assert modules.import_part("attention").x == 1
        assert sys.modules["starter.attention"] is stub
