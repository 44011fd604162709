"""A misconception is named when the values say so, and only then."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from grader.assignment import Assignment
from grader.grading import Grader, Options
from grader.intake import SubmissionFiles
from grader.sandbox.zygote import Zygote
from tests.conftest import Grade, output
from tests.submissions import edited, reference, submission, with_part


def recognised(document: dict[str, Any]) -> list[str]:
    """Slugs, in order."""
    return [entry["misconception"] for entry in document["extra_data"]["recognised"]]


OWN_ATTENTION = """
import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        scores = torch.einsum("...id,...jd->...ij", q, k) {scale}
        if mask is not None:
            scores = torch.where({mask}, {fill}, scores)
        top = scores.amax(-1, keepdim=True)
        weights = (scores - top.clamp_min(-1e30)).exp()
        weights = weights / weights.sum(-1, keepdim=True){guard}
        {last}
        return torch.einsum("...ij,...je->...ie", weights, v){out}, weights{shown}
"""


def attention(**changes: str) -> SubmissionFiles:
    """Another way to write attention, right but for the changes."""
    parts = {
        "scale": "* q.shape[-1] ** -0.5",
        "mask": "mask",
        "fill": "float('-inf')",
        "guard": ".clamp_min(1e-30)",
        "last": "",
        "out": "",
        "shown": "",
    }
    return with_part("attention", OWN_ATTENTION.format(**(parts | changes)))


@pytest.mark.parametrize(
    ("slug", "files"),
    [
        ("no-scale", attention(scale="")),
        ("scale-by-d-head", attention(scale="/ q.size(-1)")),
        ("mask-inverted", attention(mask="~mask")),
        ("small-fill", attention(fill="-20.0")),
        ("finite-fill", attention(fill="-1e9", guard="")),
        ("unguarded-inf", attention(guard="")),
        ("nan-on-the-way-back", attention(guard="", out=".nan_to_num()", shown=".nan_to_num()")),
        ("weights-detached", attention(last="weights = weights.detach()")),
        ("keys-as-values", attention(last="v = k")),
    ],
)
def test_the_same_idea_in_other_words(grade: Grade, slug: str, files: SubmissionFiles) -> None:
    """Values count, not texts."""
    assert recognised(grade(files, "attention", simplify=False)) == [slug]


def test_errors_alone_say_little(grade: Grade) -> None:
    """What always raises is not taken for another idea that always does."""
    document = grade(
        edited("multi_head", ("return self.proj(", "return self.proj.cuda()(")), "multi_head", simplify=False
    )
    assert recognised(document) == []


def test_right_code_has_no_misconception(grade: Grade) -> None:
    """Nothing failed, so nothing is asked."""
    document = grade(attention(), "attention")
    assert document["score"] == 30
    assert recognised(document) == []


@pytest.mark.parametrize(
    "files",
    [
        attention(scale="* 0.37"),
        attention(last="weights = weights * 0.999"),
        edited("attention", ("math.sqrt(d_head)", "(math.sqrt(d_head) + 1e-3)")),
        with_part("attention", "class ScaledDotProductAttention: pass"),
        edited("attention", ("d_head = q", "raise ValueError\n        d_head = q")),
    ],
    ids=["other scale", "too small", "nearly right", "no module", "raises"],
)
def test_what_is_not_known_is_not_named(grade: Grade, files: SubmissionFiles) -> None:
    """None fits, none is said."""
    assert recognised(grade(files, "attention", simplify=False)) == []


def test_a_later_part_is_asked_with_right_ones_before_it(grade: Grade) -> None:
    """Two files, one idea each: both are named."""
    files = reference()
    files["attention.py"] = files["attention.py"].replace(" / math.sqrt(d_head)", "")
    files["multi_head.py"] = files["multi_head.py"].replace(".triu(1)", ".triu(2)")
    document = grade(submission(files), "attention", "multi_head", simplify=False)
    assert recognised(document) == ["no-scale", "sees-the-next"]


def test_errors_are_those_that_stand_ins_raise(grade: Grade) -> None:
    """What the student's own part before it says to a wrong call does not matter."""
    files = reference()
    asked = "if key_padding_mask is not None:"
    files["multi_head.py"] = files["multi_head.py"].replace(
        asked, f"{asked}\n            key_padding_mask.dim()"
    )
    files["block.py"] = files["block.py"].replace("causal, key_padding_mask)", "key_padding_mask, causal)")
    assert recognised(grade(submission(files), "block", simplify=False)) == ["masks-swapped"]


def test_two_mistakes_in_one_file(grade: Grade) -> None:
    """Together they equal no known idea; what shows alone in some checks' cases is named for those."""
    document = grade(attention(fill="-1e9", guard="", scale=""), "attention", simplify=False)
    assert recognised(document) == ["no-scale"]
    assert "The scores are not scaled" in output(document, "attention.scale")
    assert "1.8 A query with every key blocked gives 0" in document["output"]


def test_parameters_and_constructor(grade: Grade) -> None:
    """Two ways to show at once: both are named, each for its own checks."""
    files = edited(
        "multi_head",
        ("if d_model % n_heads != 0", "if False"),
        ("nn.Linear(d_model, d_model)", "nn.Linear(d_model, d_model, bias=False)"),
    )
    document = grade(files, "multi_head", simplify=False)
    assert recognised(document) == ["divisibility-unchecked", "proj-without-bias"]
    assert "proj has no bias" in output(document, "multi_head.parameters")
    assert "Nothing is raised" in output(document, "multi_head.indivisible_heads")


def test_the_report_leads_with_it(grade: Grade) -> None:
    """Told once in full, on top, with what it costs; the rows refer to it by name."""
    document = grade(edited("multi_head", (".triu(1)", ".triu(2)")), "multi_head")
    assert "Look at this first:\n- multi_head.py: Every position sees the next one." in document["output"]
    assert "Which diagonal" in document["output"]
    for check in ("multi_head.future_perturbation", "multi_head.reference_output"):
        assert output(document, check).startswith("cause     Every position sees the next one\n")


def test_the_report_leads_with_what_has_no_name(grade: Grade) -> None:
    """A part that is missing, a syntax error, a failure that nobody knows: part by part, once."""
    files = reference()
    files["attention.py"] = files["attention.py"].replace(
        "return weights @ v, weights", "return 1.7 * (weights @ v), weights"
    )
    del files["multi_head.py"]
    files["block.py"] = "class TransformerBlock\n    pass\n"
    leading = [line for line in grade(submission(files))["output"].splitlines() if line.startswith("- ")]
    assert [line.partition(" ")[2].split(" ")[0] for line in leading] == [
        "attention.py:",
        "multi_head.py",
        "block.py:1:",
    ]
    assert "then check 1.14; 2 points)" in leading[0]
    assert "is not in the submission (checks 2.1 to 2.18; 24 points)" in leading[1]
    assert "expected ':', in `class TransformerBlock`" in leading[2]


def test_what_only_hidden_checks_see_does_not_lead(grade: Grade) -> None:
    """The summary is visible before the hidden checks are."""
    document = grade(attention(last="weights = weights.detach()"), "attention")
    assert "No gradient reaches queries" not in document["output"]
    assert "points lost in checks that are shown when the grades are published" in document["output"]
    assert "No gradient reaches queries" in output(document, "attention.reference_gradients")


@pytest.mark.parametrize(("told", "shown"), [("question", "How does the size"), ("nothing", "")])
def test_how_much_is_told(assignment: Assignment, zygote: Zygote, told: str, shown: str) -> None:
    """The name, the question only, or nothing; staff can count it in any case."""
    quiet = Grader(dataclasses.replace(assignment, misconceptions=told), zygote)
    document = quiet.grade(attention(scale=""), Options(["attention"])).document
    told_anywhere = document["output"] + "".join(test["output"] for test in document["tests"])
    assert "not scaled" not in told_anywhere
    assert shown in document["output"]
    assert ("cause" in told_anywhere) is bool(shown)
    assert recognised(document) == ["no-scale"]


def test_our_own_trouble_costs_nothing(
    assignment: Assignment, zygote: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault while recognising is for staff to see; the score stands."""
    grader = Grader(assignment, zygote)
    monkeypatch.setattr(grader._recogniser, "matching", lambda *_: 1 / 0)
    document = grader.grade(attention(scale=""), Options(["attention"])).document
    assert "ZeroDivisionError" in document["extra_data"]["recognition_error"]
    assert document["extra_data"]["grader_error"] is False
    assert document["score"] > 0
