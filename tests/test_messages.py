"""What a student reads, word for word.

After a deliberate change: `UPDATE_GOLDENS=1 make test ARGS="-k messages"`, and read the difference as a
tired student would.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.intake import SubmissionFiles
from tests.conftest import Grade
from tests.submissions import edited, reference, submission, with_part

GOLDENS = Path(__file__).parent / "goldens"

BEFORE_BLOCKING = "        # -inf blocks exactly"

CASES: dict[str, tuple[SubmissionFiles, list[str]]] = {
    "no-scale": (
        edited("attention", (" / math.sqrt(d_head)", "")),
        ["attention.scale", "attention.torch_agrees", "attention.reference_output"],
    ),
    "wrong-and-in-use": (
        edited("attention", (" / math.sqrt(d_head)", "")),
        ["multi_head.head_slices", "multi_head.together", "block.together"],
    ),
    "mask-transposed": (
        edited("attention", (BEFORE_BLOCKING, f"        mask = mask.mT if mask.dim() > 1 else mask\n{BEFORE_BLOCKING}")),
        ["attention.blocked_keys_weigh_zero", "attention.torch_agrees"],
    ),
    "finite-fill": (
        edited(
            "attention",
            ("scores.masked_fill(mask, -math.inf)", "scores.masked_fill(mask, -1e9)"),
            ("        weights = weights.masked_fill(mask, 0.0)  # (..., T_q, T_k)\n", ""),
        ),
        ["attention.dead_rows_are_zero"],
    ),
    "small-fill": (
        edited("attention", ("masked_fill(mask, -math.inf)", "masked_fill(mask, -20.0)"), ("weights.masked_fill(mask, 0.0)", "weights")),
        ["attention.blocked_keys_weigh_zero", "attention.blocked_keys_do_not_matter", "attention.huge_scores"],
    ),
    "nan-to-num": (
        edited(
            "attention",
            ("        weights = weights.masked_fill(mask, 0.0)  # (..., T_q, T_k)\n", "        weights = weights + 0 * scores\n        return torch.nan_to_num(weights @ v), torch.nan_to_num(weights)\n"),
        ),
        ["attention.dead_rows_have_finite_gradients"],
    ),
    "sees-the-next": (
        edited("multi_head", (".triu(1)", ".triu(2)")),
        ["multi_head.future_perturbation", "multi_head.both_masks", "multi_head.head_slices"],
    ),
    "padding-on-queries": (
        edited("multi_head", ("key_padding_mask[:, None, None, :]", "key_padding_mask[:, None, :, None]")),
        ["multi_head.padding_does_not_matter", "multi_head.padded_equals_unpadded", "multi_head.both_masks"],
    ),
    "other-names": (
        edited("multi_head", ("self.proj = nn", "self.out = nn"), ("self.proj(", "self.out(")),
        ["multi_head.parameters", "multi_head.head_slices", "multi_head.reference_output"],
    ),
    "no-value-error": (
        edited("multi_head", ("if d_model % n_heads != 0", "if False")),
        ["multi_head.indivisible_heads"],
    ),
    "raises": (
        edited("multi_head", ("        B, T, D = x.shape\n", "        B, T, D = x.shape\n        assert T > 1, 'too short'\n")),
        ["multi_head.shapes"],
    ),
    "writes-into-x": (
        edited("block", ("            x = x + self.attn(self.ln1(x)", "            x += self.attn(self.ln1(x)")),
        ["block.repeatable", "block.reference_gradients"],
    ),
    "unbiased-variance": (
        with_part(
            "block",
            reference()["block.py"].replace("nn.LayerNorm(", "Norm(")
            + "\n\nclass Norm(nn.LayerNorm):\n    def forward(self, x):\n        var = x.var(-1, keepdim=True)\n        return (x - x.mean(-1, keepdim=True)) / (var + self.eps).sqrt() * self.weight + self.bias\n",
        ),
        ["block.attention_sublayer", "block.post_norm_is_normalised"],
    ),
    "wrong-shape": (edited("block", ("            return x + self.ffn", "            return x[:, -1] + self.ffn")), ["block.shapes"]),
    "forbidden": (
        edited("attention", ("        d_head = q", "        return torch.nn.functional.scaled_dot_product_attention(q, k, v, ~mask), None\n        d_head = q")),
        ["attention.shapes"],
    ),
    "syntax-error": (with_part("block", "class TransformerBlock(nn.Module)\n    pass\n"), ["block.shapes"]),
    "missing": (submission({"attention.py": reference()["attention.py"]}), ["multi_head.shapes"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_messages(grade: Grade, name: str) -> None:
    """Given, expected, observed, look at."""
    files, checks = CASES[name]
    document = grade(files, *sorted({check.partition(".")[0] for check in checks}))
    messages = {test["extra_data"]["check"]: test["output"] for test in document["tests"]}
    rows = [f"{check}\n{messages[check]}" for check in checks]
    told = "\n\n".join([document["output"], *rows]) + "\n"

    golden = GOLDENS / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDENS"):
        golden.write_text(told, encoding="utf-8")
    assert told == golden.read_text(encoding="utf-8")
    assert all(messages[check] for check in checks)
