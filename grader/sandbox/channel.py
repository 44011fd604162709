"""The grader's end of a worker's socket: frames out, as many frames in, under caps and a deadline.

Nothing that the worker does can make the grader wait longer than the stopwatch allows, or hold more
than the caps; what the worker prints is drained meanwhile, so that it never blocks on it.
"""

from __future__ import annotations

import secrets
import select
from collections import deque
from typing import Any

import torch

from grader.sandbox.budget import Stopwatch
from grader.sandbox.zygote import WorkerProcess
from grader.wire import HEADER, MalformedFrame, decode, decode_header, encode

MAX_OUTPUT_BYTES = 64 << 10
"""What is kept of a submission's output."""

MAX_LATE_PIECES = 1000
"""Pieces of an answer that are taken after time was up; no honest one has more."""

_CHUNK = 1 << 17
_MAX_DRAINED_PIECES = 64
"""More than a socket holds at a time."""


class ChannelClosed(Exception):
    """The worker has closed its end: its process has ended, or acts as if."""


class CallTimedOut(Exception):
    """The stopwatch ran out before the answer was there."""


class Channel:
    """Asks one worker: frames are sent in order, and answered in order."""

    def __init__(self, process: WorkerProcess) -> None:
        self.process = process
        self.output = bytearray()
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._unanswered: deque[int] = deque()
        self._poll = select.poll()
        self._poll.register(process.frames, select.POLLIN)
        self._poll.register(process.output, select.POLLIN)
        self._output_open = True
        self._late_pieces = 0

    def send(self, head: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        """Put a frame into the queue; it leaves, with those before it, while an answer is waited for."""
        call_id = secrets.randbits(63)
        self._unanswered.append(call_id)
        self._outgoing += encode(call_id, head, tensors)

    def receive(self, stopwatch: Stopwatch) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """Return the answer to the first frame that has none yet.

        Raises:
            ChannelClosed, CallTimedOut: there will be no answer.
            MalformedFrame: what came is no answer to this frame.
        """
        call_id = self._unanswered.popleft()
        needed = HEADER.size
        head_end = 0
        self._late_pieces = MAX_LATE_PIECES
        self._send()
        while True:
            if not head_end and len(self._incoming) >= HEADER.size:
                answered, head_bytes, body_bytes = decode_header(
                    self._incoming[: HEADER.size], of_answer=True
                )
                if answered != call_id:
                    raise MalformedFrame("the answer belongs to another call")
                head_end = HEADER.size + head_bytes
                needed = head_end + body_bytes
            if len(self._incoming) >= needed:
                break
            self._wait(stopwatch)
            self._receive()
            self._send()
        packed, body = bytes(self._incoming[HEADER.size : head_end]), self._incoming[head_end:needed]
        del self._incoming[:needed]
        if self._incoming and not self._unanswered:
            raise MalformedFrame("the answer is followed by more than was asked for")
        return decode(packed, body)

    def drain(self) -> None:
        """Take what the worker has printed so far; one that goes on printing is not waited for."""
        for _ in range(_MAX_DRAINED_PIECES):
            if not (self._output_open and self._read_output()):
                return

    def _send(self) -> None:
        """Let go what the socket takes."""
        while self._outgoing:
            try:
                del self._outgoing[: self.process.frames.send(self._outgoing)]
            except BlockingIOError:
                return
            except OSError:  # it has ended; what it answered before is still to be read
                self._outgoing.clear()

    def _receive(self) -> None:
        """Take what has come, one piece."""
        try:
            chunk = self.process.frames.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            raise ChannelClosed from error
        if not chunk:
            raise ChannelClosed
        self._incoming += chunk

    def _wait(self, stopwatch: Stopwatch) -> None:
        """Return when the socket can be read, or written where there is something to write.

        What the worker prints is taken meanwhile.
        """
        self._poll.modify(self.process.frames, select.POLLIN | (select.POLLOUT if self._outgoing else 0))
        while True:
            wait_s = stopwatch.wait_s()
            ready = dict(self._poll.poll(max(1, wait_s * 1000) if wait_s > 0 else 0))
            if self.process.output.fileno() in ready:
                self._read_output()
            if self.process.frames.fileno() in ready and (wait_s > 0 or self._late_pieces > 0):
                # An answer that was there in time counts, however late it is looked at.
                self._late_pieces -= wait_s <= 0
                return
            if wait_s <= 0:
                raise CallTimedOut

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
