"""The grader's end of a worker's socket: one frame out, one frame in, under caps and a deadline.

Nothing that the worker does can make the grader wait longer than the stopwatch allows, or hold more
than the caps; what the worker prints is drained meanwhile, so that it never blocks on it.
"""

from __future__ import annotations

import secrets
import select
from typing import Any

import torch

from grader.sandbox.budget import Stopwatch
from grader.sandbox.zygote import WorkerProcess
from grader.wire import HEADER, MalformedFrame, decode, decode_header, encode

MAX_OUTPUT_BYTES = 64 << 10
"""What is kept of a submission's output."""

_CHUNK = 1 << 17


class ChannelClosed(Exception):
    """The worker has closed its end: its process has ended, or acts as if."""


class CallTimedOut(Exception):
    """The stopwatch ran out before the answer was there."""


class Channel:
    """Asks one worker, one frame at a time."""

    def __init__(self, process: WorkerProcess) -> None:
        self.process = process
        self.output = bytearray()
        self._poll = select.poll()
        self._poll.register(process.frames, select.POLLIN)
        self._poll.register(process.output, select.POLLIN)
        self._output_open = True

    def ask(
        self, head: dict[str, Any], tensors: dict[str, torch.Tensor], stopwatch: Stopwatch
    ) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """Send a frame and return the one that answers it.

        Raises:
            ChannelClosed, CallTimedOut: there will be no answer.
            MalformedFrame: what came is no answer to this frame.
        """
        call_id = secrets.randbits(63)
        self._send(encode(call_id, head, tensors), stopwatch)
        received = bytearray()
        needed = HEADER.size
        head_end = 0
        while len(received) < needed:
            self._wait(select.POLLIN, stopwatch)
            received += self._read()
            if not head_end and len(received) >= HEADER.size:
                answered, head_bytes, body_bytes = decode_header(received[: HEADER.size])
                if answered != call_id:
                    raise MalformedFrame("the answer belongs to another call")
                head_end = HEADER.size + head_bytes
                needed = head_end + body_bytes
        if len(received) > needed:
            raise MalformedFrame("the answer is followed by more than was asked for")
        return decode(bytes(received[HEADER.size : head_end]), received[head_end:])

    def drain(self) -> None:
        """Take what the worker has printed so far."""
        while self._output_open and self._read_output():
            pass

    def _send(self, frame: bytes, stopwatch: Stopwatch) -> None:
        view = memoryview(frame)
        while view:
            try:
                view = view[self.process.frames.send(view) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, stopwatch)
            except OSError as error:
                raise ChannelClosed from error

    def _read(self) -> bytes:
        try:
            chunk = self.process.frames.recv(_CHUNK)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise ChannelClosed from error
        if not chunk:
            raise ChannelClosed
        return chunk

    def _wait(self, event: int, stopwatch: Stopwatch) -> None:
        """Return when the socket is ready; drain output until then."""
        self._poll.modify(self.process.frames, event)
        while True:
            wait_s = stopwatch.wait_s()
            if wait_s <= 0:
                raise CallTimedOut
            ready = dict(self._poll.poll(max(1, wait_s * 1000)))
            if self.process.output.fileno() in ready:
                self._read_output()
            if self.process.frames.fileno() in ready:
                return

    def _read_output(self) -> bool:
        """Take one piece of output, keep what fits, and say whether there may be more."""
        try:
            chunk = self.process.output.recv(_CHUNK)
        except OSError as error:
            if not isinstance(error, BlockingIOError):
                self._close_output()
            return False
        if not chunk:
            self._close_output()
            return False
        self.output += chunk[: MAX_OUTPUT_BYTES - len(self.output)]
        return True

    def _close_output(self) -> None:
        if self._output_open:
            self._poll.unregister(self.process.output)
            self._output_open = False
