"""The recorded cases are what the families promise."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict, fields

import pytest
import torch

from grader.cases.attention import AttentionCase
from grader.cases.block import BlockCase
from grader.cases.multi_head import MultiHeadCase
from grader.cases.sequence import SequenceCase
from grader.recorded import from_json, recorded, to_json
from grader.simplest import simpler, size
from grader.strategies.drawing import RECORD_SEED, draw, families

ALL = [(name, case) for name, cases in recorded().items() for case in cases]


def test_every_family_is_recorded_with_about_25_cases() -> None:
    """Nothing is missing from the file, and nothing is left over."""
    assert set(recorded()) == set(families())
    for name, cases in recorded().items():
        assert 20 <= len(cases) <= 50, name
        assert len(set(cases)) == len(cases), name


def test_a_case_survives_json() -> None:
    """What is recorded is what was drawn."""
    for _, case in ALL:
        assert from_json(to_json(case)) == case


def test_equal_cases_give_equal_tensors() -> None:
    """A case says everything: built twice, its tensors have the same bits."""
    for _, case in ALL:
        twin = from_json(to_json(case))
        for name in ("x", "q", "k", "v", "blocked", "padded"):
            if isinstance(getattr(case, name, None), torch.Tensor):
                assert torch.equal(getattr(case, name), getattr(twin, name))


@pytest.mark.parametrize("name", sorted(families()))
def test_both_modes_and_every_choice_are_met(name: str) -> None:
    """Train and eval mode come about equally often; every mask and padding of the family is there."""
    cases = recorded()[name]
    training = sum(case.training for case in cases)
    assert abs(2 * training - len(cases)) <= 3
    drawn = draw(families()[name], RECORD_SEED + 1)
    for field in fields(cases[0]):
        if field.type in ("str", "bool"):
            assert {getattr(c, field.name) for c in drawn} == {getattr(c, field.name) for c in cases}


def test_sequences_meet_the_coincidences() -> None:
    """B = T, T = 1, B = 1, H = 1, H = D and a long one are in every family of whole sequences."""
    for name in ("multi_head", "multi_head_mixed", "block", "block_mixed"):
        cases = [case for case in recorded()[name] if isinstance(case, SequenceCase)]
        assert any(c.B == c.T for c in cases), name
        assert any(c.T == 1 for c in cases), name
        assert any(c.B == 1 for c in cases), name
        assert any(c.n_heads == 1 for c in cases), name
        assert any(c.n_heads == c.D for c in cases), name
        assert any(40 <= c.T <= 80 for c in cases), name
        distinct = [c for c in cases if len({c.B, c.T, c.n_heads, c.d_head}) == 4]
        assert len(distinct) >= 10, name


def test_attention_meets_the_coincidences() -> None:
    """0 to 3 leading dimensions, T_q != T_k and equal, d_v != d_head, single queries and keys."""
    cases = [case for case in recorded()["attention"] if isinstance(case, AttentionCase)]
    assert {len(c.lead) for c in cases} == {0, 1, 2, 3}
    assert any(c.T_q > c.T_k for c in cases)
    assert any(c.T_q < c.T_k for c in cases)
    assert any(c.T_q == c.T_k for c in cases)
    assert any(c.T_q == 1 for c in cases)
    assert any(c.T_k == 1 for c in cases)
    assert any(c.T_k > 40 for c in cases)
    assert sum(c.d_head != c.d_v for c in cases) > 15


def test_masks_are_what_their_family_says() -> None:
    """Dead rows where there should be some, and nowhere else; in masked cases something is blocked."""
    for name, case in ALL:
        if isinstance(case, AttentionCase):
            dead = case.blocked_everywhere.all(-1)
            assert bool(dead.any()) is case.dead, (name, case)
            if name == "attention_masked":
                assert case.blocked is not None
    masked = [c for c in recorded()["attention_masked"] if isinstance(c, AttentionCase)]
    assert sum(bool(c.blocked_everywhere.any()) for c in masked) > len(masked) * 0.8


def test_dead_sequences_have_dead_queries() -> None:
    """The family of left paddings meets queries with no key left, and others."""
    cases = [c for c in recorded()["multi_head_dead"] if isinstance(c, MultiHeadCase)]
    dead = [~c.seen.any(-1) for c in cases]
    assert sum(bool(d.any()) for d in dead) > len(cases) / 2
    assert sum(not bool(d.all()) for d in dead) > len(cases) / 2


def test_small_blocks_feed_their_norms_small_values() -> None:
    """Where eps should count, both norms read a variance near 1e-6."""
    from reference.block import TransformerBlock

    for case in recorded()["block_small"]:
        assert isinstance(case, BlockCase)
        block = TransformerBlock(**case.config).double()
        block.load_state_dict(case.weights)
        read: list[torch.Tensor] = []
        for norm in (block.ln1, block.ln2):
            norm.register_forward_pre_hook(lambda _, given, read=read: read.append(given[0]))
        with torch.no_grad():
            block(case.x)
        assert len(read) == 2
        assert all(float(x.var(-1).mean()) < 3e-5 for x in read)


def test_drawing_again_gives_the_same_cases() -> None:
    """One number, one draw."""
    family = families()["multi_head"]
    assert draw(family, 5) == draw(family, 5)
    assert draw(family, 5) != draw(family, 6)


@pytest.mark.parametrize("name", sorted(families()))
def test_every_case_has_simpler_ones(name: str) -> None:
    """They are smaller and no odder, the plainest first; the last are of the case's own kind, mode and ways."""
    family = recorded()[name]
    for case in family:
        tried = simpler(case, family)
        assert len(set(tried)) == len(tried) <= 110
        assert all(size(each) < size(case) for each in tried)
        if size(case) > 25:
            assert tried, case.describe()
            own = {n: v for n, v in asdict(case).items() if isinstance(v, (bool, str))}
            assert own == {n: v for n, v in asdict(tried[-1]).items() if isinstance(v, (bool, str))}
            assert tried[-1].by_position is case.by_position
            assert getattr(tried[0], "causal", True) or name == "multi_head_free"


def test_grading_does_not_need_hypothesis() -> None:
    """Neither at home nor for staff: what it would shrink to depends on its version and on what is loaded."""
    probe = "import sys, grader.home, grader.grading, grader.batch; print('hypothesis' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_a_case_prints_on_one_line() -> None:
    """All that differs between two cases is told."""
    for _, case in ALL:
        told = case.describe()
        assert "\n" not in told
        assert f"seed={case.seed}" in told
        values = asdict(case)
        for name in ("T", "T_k", "n_heads", "d_ff", "causal"):
            assert name not in values or f"{name}={values[name]}" in told
