"""Error carried forward: who is wrong once pays once."""

from __future__ import annotations

import pytest

from tests.conftest import Grade, outcomes, output
from tests.submissions import edited, reference, submission

NO_SCALE = (" / math.sqrt(d_head)", "")
TOGETHER = {"multi_head.together", "block.together"}


def _wrong_attention(source: str | None) -> dict[str, str]:
    files = reference()
    del files["attention.py"]
    return files if source is None else files | {"attention.py": source}


ONE_FILE = "\n".join(
    source.replace("from .attention import ScaledDotProductAttention\n", "").replace(
        "from .multi_head import MultiHeadSelfAttention\n", ""
    )
    for source in reference().values()
)

BROKEN = {
    "wrong": edited("attention", NO_SCALE),
    "missing": submission(_wrong_attention(None)),
    "does not parse": submission(_wrong_attention("def (")),
    "raises when imported": submission(_wrong_attention("1 / 0")),
    "ends the process": submission(_wrong_attention("import os; os._exit(0)")),
    "defines no class": submission(_wrong_attention("helper = 1")),
    "defines no module": submission(_wrong_attention("class ScaledDotProductAttention: pass")),
    "not implemented": edited("attention", ("d_head = q.shape[-1]", "raise NotImplementedError")),
    "asks for more": submission(
        reference()
        | {
            "attention.py": reference()["attention.py"].replace(*NO_SCALE),
            "multi_head.py": reference()["multi_head.py"].replace(
                "ScaledDotProductAttention()", "ScaledDotProductAttention(dropout=0.0)"
            ),
        }
    ),
    "all in one file": submission(
        {
            "attention.py": ONE_FILE.replace(*NO_SCALE),
            "multi_head.py": "from starter.attention import MultiHeadSelfAttention",
            "block.py": "from attention import *",
        }
    ),
    "under another name": submission(
        reference()
        | {
            "attention.py": reference()["attention.py"].replace(*NO_SCALE),
            "multi_head.py": reference()["multi_head.py"]
            .replace("import ScaledDotProductAttention", "import ScaledDotProductAttention as Attention")
            .replace("ScaledDotProductAttention()", "Attention()"),
        }
    ),
    "inherited from": submission(
        reference()
        | {
            "attention.py": reference()["attention.py"].replace(*NO_SCALE),
            "multi_head.py": reference()["multi_head.py"]
            .replace("class MultiHeadSelfAttention(nn.Module)", "class Heads(ScaledDotProductAttention)")
            .replace("        self.attention = ScaledDotProductAttention()\n", "")
            .replace("def forward(", "def heads(")
            .replace("self.attention(q", "super().forward(q")
            + "\n\nclass MultiHeadSelfAttention(Heads):\n"
            "    def forward(self, x, causal=True, key_padding_mask=None):\n"
            "        return self.heads(x, causal, key_padding_mask)\n",
        }
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_attention_costs_its_own_points(grade: Grade, name: str) -> None:
    """The later parts keep all their points but those for working together."""
    document = grade(BROKEN[name], simplify=False)
    lost = {check for check, outcome in outcomes(document).items() if outcome != "passed"}
    assert {check for check in lost if not check.startswith("attention.")} == TOGETHER
    assert document["extra_data"]["parts"]["attention"]["score"] < 20
    assert "attention.py" in output(document, "multi_head.together")
    for test in document["tests"]:
        if test["extra_data"]["outcome"] == "passed" and "at_fault" in test["extra_data"]:
            assert "its points stand" in test["output"]
            assert test["extra_data"]["at_fault"] == "attention.py"


def test_helpers_of_a_wrong_part_are_kept(grade: Grade) -> None:
    """Only the contract's class is replaced in a file that imports."""
    files = reference()
    files["attention.py"] = (
        files["attention.py"].replace(*NO_SCALE) + "\n\ndef doubled(x):\n    return 2 * x\n"
    )
    files["multi_head.py"] = (
        files["multi_head.py"]
        .replace("import ScaledDotProductAttention", "import ScaledDotProductAttention, doubled")
        .replace("self.proj(heads", "0.5 * doubled(self.proj(heads")
        .replace("reshape(B, T, D))", "reshape(B, T, D)))")
    )
    found = outcomes(grade(submission(files), "multi_head", simplify=False))
    assert [check for check, outcome in found.items() if outcome != "passed"] == ["multi_head.together"]


def test_the_part_at_fault_is_named(grade: Grade) -> None:
    """A block over a wrong multi_head.py says so; attention.py is not blamed."""
    wrong = edited("multi_head", ("mask = mask | key_padding_mask", "mask = mask & key_padding_mask"))
    document = grade(wrong, simplify=False)
    blamed = {test["extra_data"].get("at_fault") for test in document["tests"]}
    assert blamed == {None, "multi_head.py"}
    assert document["extra_data"]["parts"]["block"]["score"] == 29


def test_two_mistakes_are_told_apart(grade: Grade) -> None:
    """What is wrong with right parts before it is told as the part's own mistake."""
    files = reference()
    files["attention.py"] = files["attention.py"].replace(*NO_SCALE)
    files["multi_head.py"] = files["multi_head.py"].replace(".triu(1)", ".triu(2)")
    document = grade(submission(files), "multi_head", "block")
    found = outcomes(document)
    assert found["multi_head.future_perturbation"] == "failed"
    assert found["multi_head.permutation"] == "passed"
    assert "attention.py" not in output(document, "multi_head.head_slices")
    assert document["extra_data"]["parts"]["block"]["score"] == 29


def test_nobody_borrows_a_stand_in(grade: Grade) -> None:
    """Where a part earns its own points there is no stand-in, by import or in memory; nor may others use it."""
    thief = (
        "import gc, torch\nfrom torch import nn\n"
        "def others():\n"
        "    for kind in nn.Module.__subclasses__():\n"
        "        if kind.__name__ == 'ScaledDotProductAttention' and kind is not ScaledDotProductAttention:\n"
        "            yield kind\n"
        "class ScaledDotProductAttention(nn.Module):\n"
        "    def forward(self, q, k, v, mask=None):\n"
        "        try:\n"
        "            from grader.stand_ins.attention import ScaledDotProductAttention as right\n"
        "        except ImportError:\n"
        "            right = next(others())\n"
        "        return right()(q, k, v, mask)\n"
    )
    document = grade(submission(reference() | {"attention.py": thief}), simplify=False)
    assert document["extra_data"]["parts"]["attention"]["score"] == 0


def test_a_stand_in_exempts_only_itself(grade: Grade) -> None:
    """The operators that a stand-in uses stay forbidden for who takes them from it."""
    files = reference()
    files["attention.py"] = files["attention.py"].replace(*NO_SCALE)
    files["multi_head.py"] = files["multi_head.py"].replace(
        "heads, _ = self.attention(q, k, v, mask)",
        "names = vars(type(self.attention))['forward'].__globals__\n"
        "        for value in list(names.values()):\n"
        "            for name in dir(value):\n"
        "                if name == 'scaled_dot_product_attention'[::1]:\n"
        "                    heads = getattr(value, name)(q, k, v, attn_mask=~mask)\n"
        "        heads, _ = self.attention(q, k, v, mask)",
    )
    document = grade(submission(files), "multi_head", simplify=False)
    assert set(outcomes(document).values()) == {"forbidden"}
