"""Who sees whom, found by editing one position at a time."""

from __future__ import annotations

import torch

from grader import expect
from grader.cases import SequenceCase
from grader.client import PartClient

CHANGE = 1e-9
"""What is less than this is rounding, not seeing."""


def expect_visibility(client: PartClient, case: SequenceCase, seen: torch.Tensor, *, note: str = "") -> None:
    """The output at t changes after an edit of x at s exactly where `seen[b, t, s]`.

    A query reads its own position whether or not it may look at it as a key, so that there only "it
    changes" can be asked for.

    Args:
        seen: query, key, ``(B, T, T)`` or ``(T, T)``.
    """
    positions = list(range(case.T)) if case.T <= 12 else [0, case.T // 2, case.T - 1]
    edits = [case.edited(torch.arange(case.T) == s) for s in positions]

    before, *after = client.forwards(case, [{"x": x} for x in (case.x, *edits)], **case.masks)

    outputs = torch.stack([run.output for run in after], dim=-1).double()  # (B, T, D, positions)
    expect.finite(before.output, "output", note=note)
    expect.finite(outputs, "output after an edit", note=note)
    changed = ((outputs - before.output.double().unsqueeze(-1)).abs() > CHANGE).any(2)
    wanted = seen.expand(case.B, case.T, case.T)[..., positions]
    own = torch.eye(case.T, dtype=torch.bool)[:, positions]
    wrong = (changed & ~wanted & ~own) | (~changed & wanted)  # (B, T, positions)
    if bool(wrong.any()):
        b, t, index = (int(i) for i in wrong.nonzero()[0])
        should = bool(wanted[b, t, index])
        raise expect.CheckFailure(
            f"output[{b}, {t}] {'changes' if should else 'is the same'} "
            f"after an edit of x[{b}, {positions[index]}]",
            f"it {'is the same' if should else 'changes'}; {int(wrong.sum())} of {wrong.numel()} pairs "
            "of query and key are wrong",
            note,
        )
