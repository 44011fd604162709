"""Who sees whom, found by editing one position at a time; and the picture of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from grader import expect
from grader.cases import Case
from grader.cases.attention import AttentionCase
from grader.cases.sequence import SequenceCase
from grader.client import Outputs, PartClient
from grader.submission import SubmissionError

CHANGE = 1e-9
"""What is less than this is rounding, not seeing."""

GENTLE = 0.5
"""What inputs are multiplied with, to keep scores small: then every key in sight has a weight that shows,
in float32, too."""

MAX_SHOWN = 12
"""Positions of the longest sequence that is edited everywhere, and drawn."""

TELLING = 5
"""Positions that a picture has if the same goes wrong there: fewer say little."""


def expect_visibility(client: PartClient, case: SequenceCase, *, note: str = "") -> None:
    """The output at t changes after an edit of x at s exactly where `case.seen[b, t, s]`.

    A query reads its own position whether or not it may look at it as a key, so that there only "it
    changes" can be asked for.
    """
    positions = list(range(case.T)) if case.T <= MAX_SHOWN else [0, case.T // 2, case.T - 1]
    changed = _changed(client, case, positions, note=note)
    wanted = case.seen[..., positions]
    own = torch.eye(case.T, dtype=torch.bool)[:, positions]
    wrong = (changed & ~wanted & ~own) | (~changed & wanted)  # (B, T, positions)
    if bool(wrong.any()):
        b, t, index = (int(i) for i in wrong.nonzero()[0])
        should = bool(wanted[b, t, index])
        with drawing_who_sees_whom(client, case):
            happens, edit = ("is the same", "changes"), f"after an edit of x[{b}, {positions[index]}]"
            raise expect.CheckFailure(
                f"output[{b}, {t}] {happens[should]} {edit}",
                f"output[{b}, {t}] {happens[not should]} {edit}"
                + expect.counted(int(wrong.sum()), wrong.numel(), "wrong", "pairs of query and key"),
                note,
            )


def expect_past_unchanged(
    before: Outputs, after: Sequence[Outputs], cuts: Sequence[int], *, note: str = ""
) -> None:
    """The output at 0..t is the same, to the bit, after an edit of all that stands behind t.

    Args:
        after: for each cut t what came of such an edit.
    """
    for t, edited in zip(cuts, after, strict=True):
        expect.identical(
            edited.output[:, : t + 1],
            before.output[:, : t + 1],
            f"output[:, :{t + 1}]",
            f"is the same after an edit of x[:, {t + 1}:]",
            note=note,
        )


@contextlib.contextmanager
def drawing_who_sees_whom(client: PartClient, case: SequenceCase, **options: Any) -> Iterator[None]:
    """Give a failure inside the picture of who sees whom, if that is where it goes wrong.

    Args:
        options: how the part is called, see `PartClient.forwards`.
    """
    try:
        yield
    except expect.CheckFailure as failure:
        smooth = replace(case, sharp=False)  # sharp attention does not see most of what it may
        for shown in (replace(smooth, T=max(case.T, TELLING)), smooth):
            if not failure.grid and shown.T <= MAX_SHOWN:
                with contextlib.suppress(SubmissionError, expect.CheckFailure):
                    _expect_steady(client, shown, {"x": shown.x} | shown.masks | options)
                    changed = _changed(client, shown, list(range(shown.T)), **options)
                    own = torch.eye(shown.T, dtype=torch.bool)
                    failure.grid = _grid(shown.seen, changed, own, "" if shown == case else f"T={shown.T}")
        raise


@contextlib.contextmanager
def drawing_who_looks_where(client: PartClient, case: AttentionCase) -> Iterator[None]:
    """The same for attention: which queries notice an edit of one key and its value."""
    try:
        yield
    except expect.CheckFailure as failure:
        larger = replace(case, T_q=max(case.T_q, TELLING - 1), T_k=max(case.T_k, TELLING))
        for shown in (larger, case):
            if not failure.grid and max(shown.T_q, shown.T_k) <= MAX_SHOWN:
                with contextlib.suppress(SubmissionError, expect.CheckFailure):
                    _expect_steady(client, shown, shown.inputs)
                    changed = _noticed(client, shown).reshape(-1, shown.T_q, shown.T_k)
                    wanted = ~shown.blocked_everywhere.reshape(-1, shown.T_q, shown.T_k)
                    sizes = "" if shown == case else f"T_q={shown.T_q}, T_k={shown.T_k}"
                    failure.grid = _grid(wanted, changed, torch.zeros_like(wanted[0]), sizes)
        raise


def _expect_steady(client: PartClient, case: Case, inputs: Mapping[str, Any]) -> None:
    """A second call gives the same: of what changes by chance a picture tells nothing."""
    first, second = client.forwards(case, [{}, {}], **inputs)
    expect.identical(second.output, first.output, "output", "is the same in a second call")


def _changed(
    client: PartClient, case: SequenceCase, positions: list[int], *, note: str = "", **options: Any
) -> torch.Tensor:
    """Whether the output changes after an edit of x at one position: ``(B, T, positions)``."""
    edits = [case.edited(torch.arange(case.T) == s) for s in positions]
    common = case.masks | options

    before, *after = client.forwards(case, [{"x": GENTLE * x} for x in (case.x, *edits)], **common)

    outputs = torch.stack([run.output for run in after], dim=-1).double()  # (B, T, D, positions)
    expect.finite(before.output, "output", note=note)
    expect.finite(outputs, "output after an edit", note=note)
    return ((outputs - before.output.double().unsqueeze(-1)).abs() > CHANGE).any(2)


def _noticed(client: PartClient, case: AttentionCase) -> torch.Tensor:
    """Whether the output of a query changes after an edit of one key and value: ``(*lead, T_q, T_k)``."""
    other_k, other_v = case.randn("other k", *case.k.shape), case.randn("other v", *case.v.shape)
    inputs = case.inputs | {"q": GENTLE * case.q}
    runs = [inputs]
    for s in range(case.T_k):
        here = (torch.arange(case.T_k) == s).unsqueeze(-1)
        runs.append(
            inputs | {"k": torch.where(here, other_k, case.k), "v": torch.where(here, other_v, case.v)}
        )

    before, *after = client.forwards(case, runs)

    outputs = torch.stack([run.output for run in after], dim=-1).double()
    expect.finite(before.output, "output")
    expect.finite(outputs, "output after an edit")
    return ((outputs - before.output.double().unsqueeze(-1)).abs() > CHANGE).any(-2)


def _grid(wanted: torch.Tensor, observed: torch.Tensor, own: torch.Tensor, sizes: str) -> str:
    """Draw the first sequence that is wrong: queries down, keys across; empty if none is.

    Args:
        wanted: who should see whom, ``(sequences, queries, keys)``.
        observed: who does.
        own: places that say nothing, since a query reads its own position in any case.
        sizes: of the case that is drawn, if it is another than the one that failed.
    """
    wrong = (wanted != observed) & ~(own & ~wanted)
    if not bool(wrong.any()):
        return ""
    which = int(wrong.any(-1).any(-1).nonzero()[0])
    keys = range(wanted.shape[-1])
    gap = " " * 4
    header = "keys     " + " ".join(str(s % 10) for s in keys)
    lines = [f"{'expected':<{len(header)}}{gap}observed", header + gap + " ".join(str(s % 10) for s in keys)]
    for t in range(wanted.shape[-2]):
        should = [
            "o" if _silent(own, wanted, which, t, s) else _mark(bool(wanted[which, t, s])) for s in keys
        ]
        does = [
            should[s] if should[s] == "o" else _mark(bool(observed[which, t, s]), bool(wrong[which, t, s]))
            for s in keys
        ]
        lines.append(f"query {t:<3}{' '.join(should)}{gap}{' '.join(does)}")
    where = [f"the same with {sizes}"] if sizes else []
    where += [f"sequence {which}"] if wanted.shape[0] > 1 else []
    legend = "# looks, . does not; wrong: X looks and must not, ? must look and does not"
    own_shown = bool((own & ~wanted[which]).any())
    legend += "; o its own position" if own_shown else ""
    return "\n".join([legend, *([", ".join(where)] if where else []), *lines])


def _silent(own: torch.Tensor, wanted: torch.Tensor, which: int, t: int, s: int) -> bool:
    return bool(own[t, s]) and not bool(wanted[which, t, s])


def _mark(looks: bool, wrong: bool = False) -> str:
    if wrong:
        return "X" if looks else "?"
    return "#" if looks else "."
