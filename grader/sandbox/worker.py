"""The worker's side: read a frame, let the student's code answer it, write a frame.

Frames in: ``{"open": …}`` with the submission's files, then any number of ``{"call": …}``. Frames
out: ``{"opened": …}``, ``{"answer": …}`` or ``{"error": …}``, always with the id that was asked.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from grader.adapters import Adapter
from grader.from_scratch.source import uses_in_source
from grader.loader import SubmissionModules
from grader.sandbox.confine import ROOT, Layer
from grader.sandbox.protocol import (
    Kept,
    pack_answer,
    pack_error,
    pack_layers,
    pack_uses,
    unpack_call,
    unpack_targets,
)
from grader.stand_ins import from_json
from grader.submission import SubmissionError
from grader.wire import HEADER, decode_header, decode_trusted, encode

SOCKET_FD = 3


Frame = tuple[int, dict[str, Any], dict[str, torch.Tensor]]
"""The call's id, the head, the tensors."""

_CHUNK = 1 << 17


def serve(frames: Iterator[Frame], write: Callable[[bytes], None], layers: Mapping[str, Layer]) -> None:
    """Answer frames until the grader closes its end; never returns anything to a caller that matters."""
    call_id, head, tensors = next(frames)
    modules = SubmissionModules(
        {path: bytes(tensors[f"file.{i}"].numpy()) for i, path in enumerate(head["open"]["files"])},
        head["open"]["parts"],
    )
    # The source is searched before any of it runs, so this first answer is the harness' own word.
    targets = unpack_targets(head["open"]["targets"])
    class_names = {part: target.class_name for part, target in targets.items()}
    uses = uses_in_source(modules, class_names)
    opened = {"layers": pack_layers(layers), "uses": pack_uses(uses)}
    write(encode(call_id, {"opened": opened}, {}))

    hide_harness()
    kept: Kept = {}
    adapter = Adapter(modules, class_names, stand_ins=from_json(head["open"]["stand_ins"]))
    gc.freeze()  # what stays need not be looked through again and again
    with adapter.ready():
        for call_id, head, tensors in frames:
            gc.collect()  # what the last call left in cycles: few objects, but perhaps large tensors
            reported = len(adapter.uses)
            try:
                reply, body = pack_answer(adapter.answer(unpack_call(head["call"], tensors, targets, kept)))
            except SubmissionError as error:
                reply, body = pack_error(error), {}
            reply["uses"] = pack_uses(list(adapter.uses)[reported:])
            write(encode(call_id, reply, body))
            if head["call"]["operation"] == "load":
                gc.collect()
                gc.freeze()  # nor the submission's own modules


def hide_harness() -> None:
    """Take the harness out of what `import` finds; a submission's own `grader.py` then counts."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "grader"]:
        del sys.modules[name]
    sys.path[:] = [entry for entry in sys.path if entry and os.path.abspath(entry) != ROOT]
    sys.argv[:] = [""]


def read_frames(fd: int) -> Iterator[Frame]:
    """Yield frame after frame; the end of the stream ends the process.

    All that have come are read together: done after each forward anew, the reading takes much longer.
    """
    received = bytearray()
    while True:
        chunk = os.read(fd, _CHUNK)
        if not chunk:
            os._exit(0)
        received += chunk
        yield from _whole_frames(received)


def write_all(fd: int) -> Callable[[bytes], None]:
    """Return a writer of whole frames."""

    def write(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    return write


def _whole_frames(received: bytearray) -> list[Frame]:
    """Take out the frames that are there to their end."""
    frames = []
    start = 0
    while start + HEADER.size <= len(received):
        call_id, head_bytes, body_bytes = decode_header(received[start : start + HEADER.size])
        body_start = start + HEADER.size + head_bytes
        end = body_start + body_bytes
        if end > len(received):
            break
        packed, body = received[start + HEADER.size : body_start], received[body_start:end]
        frames.append((call_id, *decode_trusted(packed, body)))
        start = end
    del received[:start]
    return frames
