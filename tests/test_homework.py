"""The homework itself: stubs and solutions agree, and the solutions are right."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from torch import nn

from grader.cases.block import BlockCase
from grader.cases.multi_head import MultiHeadCase
from grader.checks.public import oracles
from grader.recorded import recorded
from reference.attention import ScaledDotProductAttention
from reference.block import TransformerBlock
from reference.multi_head import MultiHeadSelfAttention
from tests.submissions import ROOT

PARTS = sorted(path.name for path in (ROOT / "starter").glob("*.py"))


@pytest.mark.parametrize("file", PARTS)
def test_stub_and_solution_have_the_same_signatures_and_docstrings(file: str) -> None:
    """What a student is told is what the solution does."""
    assert _interface(ROOT / "starter" / file) == _interface(ROOT / "reference" / file)


@pytest.mark.parametrize("file", PARTS)
def test_a_stub_holds_no_solution(file: str) -> None:
    """Every body of a stub ends in NotImplementedError, and does nothing before."""
    functions = [n for n in ast.walk(_tree(ROOT / "starter" / file)) if isinstance(n, ast.FunctionDef)]
    assert functions
    for function in functions:
        *before, last = function.body[1:]
        assert isinstance(last, ast.Raise)
        assert [ast.unparse(statement) for statement in before] in ([], ["super().__init__()"])


def test_the_examples_in_the_docstrings_are_right() -> None:
    """The worked examples, computed."""
    ln3 = torch.tensor(3.0).log()
    q, k, v = torch.ones(1, 1), torch.tensor([[0.0], [ln3]]), torch.tensor([[0.0], [8.0]])
    output, weights = ScaledDotProductAttention()(q, k, v)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.75]]))
    torch.testing.assert_close(output, torch.tensor([[6.0]]))
    output, weights = ScaledDotProductAttention()(q, k, v, torch.tensor([[False, True]]))
    assert (output.tolist(), weights.tolist()) == ([[0.0]], [[1.0, 0.0]])

    attention = MultiHeadSelfAttention(1, 1)
    for name, parameter in attention.named_parameters():
        nn.init.constant_(parameter, 1.0 if name.endswith("weight") else 0.0)
    x = torch.tensor([[[0.0], [ln3]]])
    assert attention(x)[0, 0].item() == 0.0
    padded = attention(x, key_padding_mask=torch.tensor([[True, False]]))
    torch.testing.assert_close(padded, torch.tensor([[[0.0], [ln3]]]))

    for norm_first, factor in ((True, 1.0), (False, 0.0)):
        block = TransformerBlock(3, 1, 4, norm_first)
        for parameter in block.parameters():
            nn.init.zeros_(parameter)
        x = torch.randn(1, 2, 3)
        torch.testing.assert_close(block(x), factor * x)


@pytest.mark.parametrize(
    ("sizes", "count"),
    [((64, 4, 256), 49_984), ((512, 8, 2048), 3_152_384), ((768, 12, 3072), 7_087_872)],
)
def test_the_block_has_the_published_number_of_parameters(sizes: tuple[int, ...], count: int) -> None:
    """GPT-2's and the paper's sizes."""
    assert sum(p.numel() for p in TransformerBlock(*sizes).parameters()) == count


def test_multi_head_agrees_with_torch() -> None:
    """With copied weights it is nn.MultiheadAttention, under causal and padding masks."""
    for case in recorded()["multi_head_padded"]:
        assert isinstance(case, MultiHeadCase)
        ours = MultiHeadSelfAttention(case.D, case.n_heads).double()
        ours.load_state_dict(case.weights)
        theirs = nn.MultiheadAttention(case.D, case.n_heads, batch_first=True).double()
        _copy_attention(ours, theirs)
        future = torch.ones(case.T, case.T, dtype=torch.bool).triu(1) if case.causal else None
        expected, _ = theirs(case.x, case.x, case.x, key_padding_mask=case.padded, attn_mask=future)
        alive = case.seen.any(-1)  # torch gives NaN to queries that see nobody
        torch.testing.assert_close(ours(case.x, **case.masks)[alive], expected[alive])


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_block_agrees_with_torch(norm_first: bool) -> None:
    """With copied weights it is nn.TransformerEncoderLayer, in both norm placements."""
    family = "block_pre_norm" if norm_first else "block_post_norm"
    for case in recorded()[family]:
        assert isinstance(case, BlockCase)
        ours = TransformerBlock(**case.config).double()
        ours.load_state_dict(case.weights)
        theirs = nn.TransformerEncoderLayer(
            case.D, case.n_heads, case.d_ff, 0.0, "gelu", batch_first=True, norm_first=norm_first
        ).double()
        _copy_attention(ours.attn, theirs.self_attn)
        for own, other in (
            (ours.ln1, theirs.norm1),
            (ours.ln2, theirs.norm2),
            (ours.ffn[0], theirs.linear1),
            (ours.ffn[2], theirs.linear2),
        ):
            other.load_state_dict(own.state_dict())
        future = torch.ones(case.T, case.T, dtype=torch.bool).triu(1) if case.causal else None
        expected = theirs(case.x, src_mask=future, src_key_padding_mask=case.padded)
        sequences = case.seen.any(-1).all(-1)  # where every query sees somebody
        torch.testing.assert_close(ours(case.x, **case.masks)[sequences], expected[sequences])


def test_the_oracle_gives_the_bias_where_nobody_is_seen() -> None:
    """Torch's attention, completed by the contract's rule for queries with no key left."""
    for case in recorded()["multi_head_dead"]:
        assert isinstance(case, MultiHeadCase)
        ours = MultiHeadSelfAttention(case.D, case.n_heads).double()
        ours.load_state_dict(case.weights)
        expected = oracles.multi_head(case.x, case.weights, case.n_heads, case.seen)
        torch.testing.assert_close(ours(case.x, **case.masks), expected)


def _copy_attention(ours: MultiHeadSelfAttention, theirs: nn.MultiheadAttention) -> None:
    names = {
        "in_proj_weight": ours.qkv.weight,
        "in_proj_bias": ours.qkv.bias,
        "out_proj.weight": ours.proj.weight,
        "out_proj.bias": ours.proj.bias,
    }
    theirs.load_state_dict(names)


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _interface(path: Path) -> list[tuple[str, str, str | None]]:
    """Name, signature and docstring of the module, its classes and their methods."""
    tree = _tree(path)
    found = [("", "", ast.get_docstring(tree))]
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = ", ".join(map(ast.unparse, node.bases))
            found.append((node.name, bases, ast.get_docstring(node)))
        elif isinstance(node, ast.FunctionDef):
            signature = f"{ast.unparse(node.args)} -> {ast.unparse(node.returns)}"
            found.append((node.name, signature, ast.get_docstring(node)))
    return found
