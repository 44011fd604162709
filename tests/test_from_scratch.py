"""Forbidden operators are found where they are used, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.assignment import Assignment
from grader.from_scratch.source import uses_in_source
from grader.grading import Grader, Options
from grader.loader import SubmissionModules, find_parts
from grader.sandbox.zygote import Zygote
from grader.terms import Use
from tests.conftest import Grade, outcomes, output
from tests.submissions import edited, reference, submission

CLASSES = {
    "attention": "ScaledDotProductAttention",
    "multi_head": "MultiHeadSelfAttention",
    "block": "TransformerBlock",
}
HEAD = "class ScaledDotProductAttention:\n    def forward(self, q, k, v):\n        "


def found(**files: str) -> list[tuple[str, str, int, str]]:
    """Uses in the source, as (part, file, line, last name of the operator)."""
    data = {f"{name}.py": text.encode() for name, text in files.items()}
    parts = find_parts(list(data), {part: f"{part}.py" for part in CLASSES})
    uses = uses_in_source(SubmissionModules(data, parts), CLASSES)
    return [(use.part, use.file, use.line, use.operator.rpartition(".")[2]) for use in uses]


USED = {
    "attribute": (
        "import torch.nn.functional as F\n" + HEAD + "return F.scaled_dot_product_attention(q, k, v)",
        4,
    ),
    "full name": ("import torch\n" + HEAD + "return torch.nn.functional.scaled_dot_product_attention(q)", 4),
    "from import": (
        "from torch.nn.functional import scaled_dot_product_attention as sdpa\n" + HEAD + "return sdpa(q)",
        4,
    ),
    "import inside": (
        HEAD + "from torch.nn import functional\n        return functional.multi_head_attention_forward(q)",
        4,
    ),
    "star": (
        "from torch.nn.functional import *\n" + HEAD + "return scaled_dot_product_attention(q, k, v)",
        4,
    ),
    "module": ("from torch import nn\n" + HEAD + "return nn.MultiheadAttention(4, 2)(q, k, v)", 4),
    "base class": (
        "from torch import nn\nclass ScaledDotProductAttention(nn.TransformerEncoderLayer):\n    pass",
        2,
    ),
    "getattr": (
        "from torch.nn import functional as F\n"
        + HEAD
        + "return getattr(F, 'scaled_dot_product_attention')(q)",
        4,
    ),
    "aten": (
        "import torch\n" + HEAD + "return torch.ops.aten.scaled_dot_product_attention.default(q, k, v)",
        4,
    ),
    "private": ("import torch\n" + HEAD + "return torch._C._nn.scaled_dot_product_attention(q, k, v)", 4),
    "flex": (
        "from torch.nn.attention.flex_attention import flex_attention as f\n" + HEAD + "return f(q, k, v)",
        4,
    ),
    "own function": (
        "import torch.nn.functional as F\ndef g(q):\n    return F.scaled_dot_product_attention(q, q, q)\n"
        + HEAD
        + "return g(q)",
        3,
    ),
    "top level": ("from torch import nn\nlayer = nn.TransformerDecoder\n" + HEAD + "return layer", 2),
}


@pytest.mark.parametrize("name", USED)
def test_a_use_is_found(name: str) -> None:
    """However torch's operator is named, with file and line."""
    source, line = USED[name]
    assert [use[:3] for use in found(attention=source)] == [("attention", "attention.py", line)]


NOT_USED = {
    "own function": "def scaled_dot_product_attention(q):\n    return q\n"
    + HEAD
    + "return scaled_dot_product_attention(q)",
    "own class": "from torch import nn\nclass MultiheadAttention(nn.Module):\n    pass\n"
    + HEAD
    + "return MultiheadAttention()",
    "own method": HEAD + "return self.scaled_dot_product_attention(q)",
    "words": '"""nn.MultiheadAttention and F.scaled_dot_product_attention"""\n'
    + HEAD
    + "return 'nn.Transformer'  # nn.Transformer",
    "unused import": "from torch.nn import MultiheadAttention\n" + HEAD + "return q",
    "annotation": "from torch import nn\n"
    + HEAD.replace("(self, q, k, v)", "(self, q: nn.Transformer)")
    + "x: nn.Transformer = q",
    "main block": HEAD
    + "return q\nif __name__ == '__main__':\n    from torch.nn import functional as F\n    F.scaled_dot_product_attention",
    "main and more": "import sys\nfrom torch import nn\n"
    + HEAD
    + "return q\nif __name__ == '__main__' and len(sys.argv) > 1:\n    nn.Transformer()",
    "only main calls it": "from torch import nn\ndef compare():\n    return nn.MultiheadAttention(2, 1)\n"
    + HEAD
    + "return q\nif __name__ == '__main__':\n    compare()",
    "same name in main": HEAD
    + "attend = q\n        return attend\nif __name__ == '__main__':\n    from torch.nn.functional import scaled_dot_product_attention as attend",
    "allowed": "from torch import nn\nfrom torch.nn import functional as F\n"
    + HEAD
    + "return F.softmax(nn.LayerNorm(2)(F.gelu(q)), -1)",
    "does not parse": "def f(:",
}


@pytest.mark.parametrize("name", NOT_USED)
def test_what_is_no_use_is_not_found(name: str) -> None:
    """Own names, words, annotations, and what only the main block reaches."""
    assert found(attention=NOT_USED[name]) == []


def test_a_helper_charges_the_parts_that_reach_the_use() -> None:
    """Not those which import something else from the same file, nor those behind another part's class."""
    helpers = "from torch.nn import functional as F\ndef cheat(q):\n    return F.scaled_dot_product_attention(q, q, q)\ndef mask(q):\n    return q\n"
    attention = "from .helpers import cheat\n" + HEAD + "return cheat(q)"
    multi_head = "from .attention import ScaledDotProductAttention\nfrom .helpers import mask\nclass MultiHeadSelfAttention:\n    a = ScaledDotProductAttention, mask"
    block = "import starter.helpers as h\nclass TransformerBlock:\n    def forward(self, x):\n        return h.mask(x)"
    use = ("helpers.py", 3, "scaled_dot_product_attention")
    assert found(helpers=helpers, attention=attention, multi_head=multi_head, block=block) == [
        ("attention", *use)
    ]
    block = block.replace("h.mask", "h.cheat")
    both = found(helpers=helpers, attention=attention, multi_head=multi_head, block=block)
    assert both == [("attention", *use), ("block", *use)]


def test_what_a_part_borrows_from_another_is_its_own() -> None:
    """A function beside a part's class is no part; its user answers for it."""
    attention = (
        "import torch\ndef cheat(q):\n    return torch.nn.functional.scaled_dot_product_attention(q, q, q)\n"
        + HEAD
        + "return q"
    )
    block = "from attention import cheat\nclass TransformerBlock:\n    f = cheat"
    assert [use[0] for use in found(attention=attention, block=block)] == ["block"]


FORWARD = "        d_head = q.shape[-1]\n"


@pytest.mark.parametrize(
    "call",
    [
        "getattr(torch.nn.functional, 'scaled_dot' + '_product_attention')(q, k, v)",
        "getattr(torch.ops.aten, 'scaled_dot' + '_product_attention')(q, k, v)",
        "getattr(torch._C._nn, 'scaled_dot' + '_product_attention')(q, k, v)",
        "getattr(nn, 'Multihead' + 'Attention')(q.shape[-1], 1, dtype=q.dtype)(q[:0], q[:0], q[:0]) if q.dim() == 2 else 0",
    ],
)
def test_a_use_that_the_source_hides_is_seen_at_run_time(grade: Grade, call: str) -> None:
    """The points of the part are withheld, with file, line and operator."""
    document = grade(edited("attention", (FORWARD, f"        {call}\n{FORWARD}")))
    parts = document["extra_data"]["parts"]
    assert parts["attention"]["score"] == 0
    assert parts["multi_head"]["score"] == 40
    assert {outcomes(document)[f"attention.{c}"] for c in ("shapes", "scale")} == {"forbidden"}
    told = output(document, "attention.shapes")
    assert "attention.py:41" in told
    assert "attention" in told.partition("uses")[2]
    assert document["extra_data"]["from_scratch"]["uses"][0]["part"] == "attention"


def test_comparing_in_the_main_block_costs_nothing(grade: Grade) -> None:
    """Students may test themselves against torch."""
    main = "\n\ndef compare():\n    return nn.MultiheadAttention(4, 2)\n\n\nif __name__ == '__main__':\n    compare()\n"
    files = {name: text + main for name, text in reference().items()}
    assert grade(submission(files))["score"] == 100


def test_the_policy_can_be_to_flag(assignment: Assignment, zygote: Zygote) -> None:
    """Then the points stand, and the result names the use for staff."""
    flagging = Grader(replace(assignment, from_scratch="flag"), zygote)
    line = "        torch.nn.functional.scaled_dot_product_attention(q, k, v)\n"
    document = flagging.grade(edited("attention", (FORWARD, line + FORWARD)), Options(["attention"])).document
    assert document["score"] == 30
    assert document["extra_data"]["from_scratch"]["policy"] == "flag"
    operator = "torch.nn.functional.scaled_dot_product_attention"
    use = Use("attention", "attention.py", 41, operator)
    assert document["extra_data"]["from_scratch"]["uses"] == [vars(use)]


def test_no_name_of_a_file_hides_a_use(grade: Grade) -> None:
    """Nor one that is longer than a message may be."""
    helper = "h" * 230
    files = {
        "attention.py": reference()["attention.py"].replace(
            "        d_head = q.shape[-1]\n",
            f"        from {helper} import attend\n        attend(q, k, v)\n        d_head = q.shape[-1]\n",
        ),
        f"{helper}.py": "import torch.nn.functional as F\ndef attend(q, k, v):\n    F.scaled_dot_product_attention(q, k, v)\n",
    }
    document = grade(submission(files), "attention", simplify=False)
    assert document["score"] == 0
    assert set(outcomes(document).values()) == {"forbidden"}
