"""What a submission can set for a whole process, and how it is turned back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def without_compiler() -> Iterator[None]:
    """Let `torch.compile` give code back as it is: to compile takes seconds, and other processes."""

    def as_it_is(model: Any = None, **_options: object) -> Any:
        return model if model is not None else lambda decorated: decorated

    before = torch.compile
    torch.compile = as_it_is
    try:
        yield
    finally:
        torch.compile = before


def reset_switches() -> None:
    """Turn back what is not as it should be: to ask is cheaper than to turn."""
    if getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None) is not None:
        torch.set_default_device(None)
    if torch.is_inference_mode_enabled():
        torch.inference_mode(False).__enter__()
    if not torch.is_grad_enabled():
        torch.set_grad_enabled(True)
    if torch.get_default_dtype() is not torch.float32:
        torch.set_default_dtype(torch.float32)
    if torch.is_anomaly_enabled():
        torch.set_anomaly_enabled(False)
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)  # several wait for each other longer than such small tensors take
