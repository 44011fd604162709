"""`SandboxSubmission`: the seam over a worker process, the only backend that a grade comes from."""

from __future__ import annotations

import re
import signal
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from grader.abreast import Answers, ask
from grader.sandbox.budget import Budget, Stopwatch
from grader.sandbox.channel import CallTimedOut, Channel, ChannelClosed
from grader.sandbox.confine import Layer, Limits
from grader.sandbox.protocol import (
    MAX_USES,
    pack_call,
    pack_targets,
    unpack_answer,
    unpack_error,
    unpack_layers,
    unpack_uses,
)
from grader.sandbox.zygote import WorkerProcess
from grader.stand_ins import StandIn, to_json
from grader.submission import Answer, Call, Died, OutOfTime, SubmissionError, TimedOut
from grader.terms import Target, Use
from grader.text import clean, one_line
from grader.wire import MalformedFrame

FORGIVEN_CALL_S = 5.0
"""CPU seconds for a call that need not be answered."""

MAX_RESTARTS = 200
"""Fresh workers for one submission; dying costs little, but not nothing."""

_WANTS_DYNAMO = re.compile(rb"\b(checkpoint|optim|compile|_dynamo)\b")
"""`torch.utils.checkpoint`, every optimizer and `torch.compile` import torch._dynamo when first used."""


class WorkerSource(Protocol):
    """Who makes workers and ends them: a `Zygote`."""

    def spawn(self, limits: Limits, *, preload: str | None = None) -> WorkerProcess: ...
    def reap(self, worker: WorkerProcess) -> int: ...


@dataclass(frozen=True)
class Source:
    """A submission as it goes to the worker.

    Attributes:
        files: bytes of the Python files, by POSIX path.
        parts: path of each part's file.
        targets: the contract's class of each part, and how it is called.
        stand_ins: parts that are replaced by right ones.
    """

    files: Mapping[str, bytes]
    parts: Mapping[str, str]
    targets: Mapping[str, Target]
    stand_ins: Sequence[StandIn] = ()

    @property
    def preload(self) -> str | None:
        """What must be in the worker's memory before it is confined, by what the source mentions."""
        return "torch._dynamo" if any(map(_WANTS_DYNAMO.search, self.files.values())) else None


class SandboxSubmission:
    """A submission that runs in a worker, and in a fresh one after every fatal outcome."""

    def __init__(self, source: Source, workers: WorkerSource, budget: Budget, limits: Limits) -> None:
        self.budget = budget
        self.layers: dict[str, Layer] = {}
        self._source = source
        self._workers = workers
        self._limits = limits
        self._channel: Channel | None = None
        self._loaded: dict[str, SubmissionError | None] = {}
        self._restarts = 0
        self._kept: dict[Hashable, int] = {}
        self._stopwatch: Stopwatch | None = None
        self._output = bytearray()
        self._uses: dict[Use, None] = {}

    def call(self, call: Call) -> Answer:
        """Ask the worker; see `Submission.call`."""
        return ask(self, call)

    def answers(self, calls: Sequence[Call]) -> Answers:
        """Ask the worker several questions about one part at once; see `abreast.Asked`.

        The part is imported first, once: one that dies or hangs while it is imported does so only once.
        """
        try:
            known = self.load_error(calls[0].target)
        except OutOfTime as error:
            known = error
        if known is None:
            yield from self._answers(calls)
        else:
            yield type(known)(known.sentence, known.where)

    def open(self) -> None:
        """Start the worker, which tells its layers; nothing of the submission is imported yet."""
        if self._channel is None:
            self._start_worker()

    def load_error(self, target: Target) -> SubmissionError | None:
        """Why the part does not load, or None; asked of the worker once."""
        part = target.part
        if part not in self._loaded:
            with closing(self._answers([Call(target, "load")])) as answers:
                answer = next(answers)
            if isinstance(answer, OutOfTime):
                raise answer
            self._loaded[part] = answer if isinstance(answer, SubmissionError) else None
        return self._loaded[part]

    def _note_uses(self, uses: Iterable[Use]) -> None:
        for use in uses:
            if len(self._uses) < MAX_USES:
                self._uses.setdefault(use)

    def begin_check(self) -> None:
        """See `Submission.begin_check`."""
        self.budget.begin_check()

    def forbidden_uses(self) -> list[Use]:
        """See `Submission.forbidden_uses`; of the files sent, nothing else can be named."""
        sent = {one_line(path, 200) for path in self._source.files}
        return sorted(use for use in self._uses if use.file in sent)

    @property
    def output(self) -> str:
        """What the submission printed, cut to `MAX_OUTPUT_BYTES`."""
        if self._channel is not None:
            self._channel.drain()
        printed = self._output + (self._channel.output if self._channel else b"")
        return clean(printed.decode(errors="replace"), limit=64 << 10)

    def close(self) -> None:
        """End the worker."""
        if self._channel is not None:
            self._end_worker()

    # --- the worker ------------------------------------------------------------------------------

    def _answers(self, calls: Sequence[Call]) -> Answers:
        """Send all of them and yield the answers, up to one after which the worker is gone."""
        try:
            self._expect_time()
            channel = self._channel or self._start_worker()
        except SubmissionError as error:
            yield error
            return
        for call in calls:
            channel.send(*self._packed(call))
        self._stopwatch = None
        awaited = deque(calls)
        try:
            while awaited and self._channel is channel:
                yield self._next_answer(channel, awaited.popleft())
        finally:
            if awaited and self._channel is channel:
                # Nobody wants the others any more. They take no time, and leave nothing behind.
                self._restarts -= 1
                self._end_worker()

    def _next_answer(self, channel: Channel, call: Call) -> Answer | SubmissionError:
        try:
            self._expect_time()
            head, tensors = self._receive(channel, forgiven=call.forgiven)
            self._note_uses(self._checked(unpack_uses, head.get("uses")))
            if "error" in head:
                error: SubmissionError = self._checked(unpack_error, head["error"])
                return error
            answer: Answer = self._checked(unpack_answer, head.get("answer"), tensors, call)
        except SubmissionError as error:
            return error
        return answer

    def _expect_time(self) -> None:
        """Raise `OutOfTime`, and end the worker, where there is none left."""
        if self.budget.exhausted:
            self.close()
            limit_s = self.budget.limits.submission_s
            in_time = self.budget.wall_left_s > 0
            spent = f"the submission has used up its {limit_s:g} s" if in_time else "time was up"
            raise OutOfTime(f"{spent}; this was not run")

    def _packed(self, call: Call) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        kept, send = None, True
        if call.weights is not None and call.weights_name is not None:
            send = call.weights_name not in self._kept
            kept = self._kept.setdefault(call.weights_name, len(self._kept))
        head, tensors = pack_call(call, kept, send=send)
        return {"call": head}, tensors

    def _receive(
        self, channel: Channel, *, forgiven: bool = False
    ) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        limit_s = self.budget.next_call_s()
        if forgiven:
            limit_s = min(limit_s, FORGIVEN_CALL_S)
        stopwatch = Stopwatch(channel.process.pid, limit_s, self.budget, since=self._stopwatch)
        self._stopwatch = stopwatch
        try:
            answer = channel.receive(stopwatch)
            self.budget.spend(stopwatch)
            return answer
        except CallTimedOut:
            self.budget.spend(stopwatch)
            if not forgiven:
                self.budget.count_timeout()
            self._end_worker()
            raise TimedOut(f"no answer within {limit_s:g} s of computing") from None
        except ChannelClosed:
            self.budget.spend(stopwatch)
            status = self._end_worker()
            if status == -signal.SIGKILL:
                self.budget.count_killed()
            raise Died(self._how_it_ended(status)) from None
        except MalformedFrame as error:
            self.budget.spend(stopwatch)
            self._end_worker()
            raise Died(f"the worker's answer could not be read: {error}") from error

    def _start_worker(self) -> Channel:
        if self._restarts >= MAX_RESTARTS:
            raise Died(f"the process had ended {MAX_RESTARTS} times; it was not started again")
        self._restarts += 1
        process = self._workers.spawn(self._limits, preload=self._source.preload)
        channel = self._channel = Channel(process)
        self._kept = {}
        paths = list(self._source.files)
        opening = {
            "files": paths,
            "parts": dict(self._source.parts),
            "targets": pack_targets(self._source.targets),
            "stand_ins": to_json(self._source.stand_ins),
        }
        tensors = {
            f"file.{index}": _bytes_tensor(self._source.files[path]) for index, path in enumerate(paths)
        }
        channel.send({"open": opening}, tensors)
        self._stopwatch = None
        head, _ = self._receive(channel)
        self.layers = unpack_layers(head["opened"]["layers"])
        self._note_uses(unpack_uses(head["opened"]["uses"]))
        return channel

    def _end_worker(self) -> int:
        channel = self._channel
        assert channel is not None  # noqa: S101 - only called while there is one
        self._channel = None
        channel.drain()
        self._output += channel.output
        return self._workers.reap(channel.process)

    def _checked(self, unpack: Any, *arguments: Any) -> Any:
        """Unpack a part of the worker's answer; one that is malformed ends the worker."""
        try:
            return unpack(*arguments)
        except MalformedFrame as error:
            if self._channel is not None:
                self._end_worker()
            raise Died(f"the worker's answer could not be read: {error}") from error

    @staticmethod
    def _how_it_ended(status: int) -> str:
        if status >= 0:
            return f"the code ended its own process (exit code {status})"
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"the process that ran the code was ended by {name}"


def _bytes_tensor(data: bytes) -> torch.Tensor:
    if not data:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


__all__ = ["SandboxSubmission", "Source", "SubmissionError"]
