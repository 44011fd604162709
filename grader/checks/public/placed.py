"""Outputs have the input's dtype, and all that a module holds goes where the module goes."""

from __future__ import annotations

from typing import Any

import torch

from grader import expect
from grader.cases import Case
from grader.client import PartClient


def expect_dtype_and_device(client: PartClient, case: Case, **inputs: Any) -> None:
    """Call in float32 and in float64; in some cases once more as if on another device."""
    for dtype in (torch.float32, torch.float64):
        returned = client.forward(case, dtype=dtype, **inputs)
        for name, tensor in returned.by_name.items():
            expect.that(
                tensor.dtype is dtype,
                f"{name} has the dtype of the input, {dtype}",
                f"{name} has dtype {tensor.dtype}",
            )
    if case.narrow_dtype is not None:  # some are enough
        client.forward(case, elsewhere=True, **inputs)
