"""A clean, warm process that forks a worker for each submission, in milliseconds.

It has torch and the worker's own modules in memory; never the reference, the checks or a result. A
grading process makes its zygote before it imports any of those (`start_by_fork`); a process that holds
them already, or runs where forking after torch is unsafe, starts a fresh one (`start_by_exec`).

The control socket carries one JSON line per request, ``spawn`` with the worker's two ends as file
descriptors, or ``reap``; and one JSON line per reply.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from dataclasses import asdict, dataclass
from typing import Any

from grader.sandbox.confine import (
    ROOT,
    Limits,
    confine,
    forget_how_it_was_started,
    give_memory_back,
    hide_memory,
    may_have_started_others,
    prepare,
    uid_of,
)

TORCH_VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "THP_MEM_ALLOC_ENABLE": "1",
}
"""A fork after a multi-threaded torch operator hangs; with one thread there is none to lose. And large
tensors come in huge pages: they go back to the system when they are freed (see `confine.give_memory_back`),
and fetching each of their small pages anew takes longer than much of what is computed with them."""

PRELOADABLE = ("torch._dynamo",)
"""What some submissions need, and a confined worker could not import: it wants a folder to write to.
It costs as much again as torch does, so the zygote takes it in only when one asks."""

_BOOT = "import sys; sys.path.insert(0, {root!r}); from grader.sandbox.zygote import main; main({fd})"


class ZygoteGone(Exception):
    """The zygote does not answer: the grader's own fault, never the student's."""


@dataclass
class WorkerProcess:
    """The grader's hold on a worker.

    Attributes:
        pid: its process id, in the grader's eyes.
        frames: frames go in and come out here.
        output: what it prints comes out here.
    """

    pid: int
    frames: socket.socket
    output: socket.socket

    def close(self) -> None:
        """Give up both ends."""
        self.frames.close()
        self.output.close()


class Zygote:
    """The grader's hold on its zygote."""

    def __init__(self, control: socket.socket, pid: int) -> None:
        self._control = control
        self._replies = control.makefile("rb")
        self.pid = pid

    @classmethod
    def start(cls) -> Zygote:
        """Start the zygote as this system allows; call it before anything secret is imported."""
        zygote = cls.start_by_fork() if sys.platform == "linux" else cls.start_by_exec()
        hide_memory()  # of the grader, from workers that run as the same user
        return zygote

    @classmethod
    def start_by_fork(cls) -> Zygote:
        """Import torch here, then fork; call it before anything secret is imported."""
        _warm_up()
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            _become_zygote(theirs)
        theirs.close()
        return cls(ours, pid)

    @classmethod
    def start_by_exec(cls) -> Zygote:
        """Start a new Python process that knows nothing of this one."""
        ours, theirs = socket.socketpair()
        boot = _BOOT.format(root=ROOT, fd=theirs.fileno())
        process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own code
            [sys.executable, "-I", "-c", boot],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env=TORCH_VARIABLES | {"PYTHONHASHSEED": "0"},
        )
        process.returncode = 0  # reaped in `close`; Popen need not warn about it
        theirs.close()
        return cls(ours, process.pid)

    def spawn(self, limits: Limits, *, preload: str | None = None) -> WorkerProcess:
        """Fork a worker, confined to `limits`.

        Args:
            preload: one of `PRELOADABLE`, to be in memory before.
        """
        ours, theirs = socket.socketpair()
        output, printed = socket.socketpair()
        try:
            reply = self._ask(
                {"spawn": asdict(limits), "preload": preload}, [theirs.fileno(), printed.fileno()]
            )
        except ZygoteGone:
            ours.close()
            output.close()
            raise
        finally:
            theirs.close()
            printed.close()
        ours.setblocking(False)
        output.setblocking(False)
        return WorkerProcess(reply["pid"], ours, output)

    def reap(self, worker: WorkerProcess) -> int:
        """Kill the worker and return how it ended: its exit code, or minus the signal's number."""
        worker.close()
        status: int = self._ask({"reap": worker.pid})["status"]
        return status

    def gone(self) -> bool:
        """Whether it has ended."""
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True

    def close(self) -> None:
        """End the zygote and every worker that is left."""
        self._replies.close()
        self._control.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _ask(self, request: dict[str, Any], fds: list[int] | None = None) -> dict[str, Any]:
        line = json.dumps(request).encode() + b"\n"
        try:
            if fds:
                socket.send_fds(self._control, [line], fds)
            else:
                self._control.sendall(line)
            reply = self._replies.readline()
        except OSError as error:
            raise ZygoteGone(f"the zygote does not answer ({error})") from error
        if not reply:
            raise ZygoteGone("the zygote has ended")
        found: dict[str, Any] = json.loads(reply)
        return found


def main(fd: int) -> None:
    """Where `start_by_exec` begins in the new process."""
    _warm_up()
    _become_zygote(socket.socket(fileno=fd))


def _warm_up() -> None:
    """Import what workers need, and use once what is slow at first use, in one thread."""
    os.environ.update(TORCH_VARIABLES)
    import torch

    torch.set_num_threads(1)
    # Some of torch's modules ask for it when they are imported; a worker cannot try out where it may write.
    tempfile.tempdir = "/tmp"  # noqa: S108 - nothing is written there
    import grader.sandbox.worker  # noqa: F401 - workers find it in memory

    torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()
    prepare()


def _become_zygote(control: socket.socket) -> None:
    status = 1
    try:
        forget_how_it_was_started()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the grader to act on
        hide_memory()
        gc.freeze()
        _serve(control)
        status = 0
    finally:
        os._exit(status)


def _serve(control: socket.socket) -> None:
    workers: set[int] = set()
    pending = b""
    while True:
        received, fds, _, _ = socket.recv_fds(control, 65536, 2)
        if not received:
            break
        pending += received
        while b"\n" in pending:
            line, _, pending = pending.partition(b"\n")
            request = json.loads(line)
            if "spawn" in request:
                if request["preload"] in PRELOADABLE:
                    importlib.import_module(request["preload"])
                pid = os.fork()
                if pid == 0:
                    _become_worker(control, fds, Limits(**request["spawn"]))
                for fd in fds:
                    os.close(fd)
                workers.add(pid)
                reply = {"pid": pid}
            else:
                reply = {"status": _end(request["reap"])}
                workers.discard(request["reap"])
            control.sendall(json.dumps(reply).encode() + b"\n")
    for pid in workers:
        _end(pid)


def _end(pid: int) -> int:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if may_have_started_others():
        _sweep(uid_of(pid))
    return status


def _sweep(uid: int) -> None:
    """Kill every process of a user, all at once, so that none can make others meanwhile."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def _become_worker(control: socket.socket, fds: list[int], limits: Limits) -> None:
    status = 1
    try:
        from grader.sandbox import worker

        os.setsid()
        os.chdir("/")
        control.close()
        rpc, printed = (os.dup(fd) for fd in fds)
        null = os.open(os.devnull, os.O_RDONLY)
        for target, source in ((0, null), (1, printed), (2, printed), (worker.SOCKET_FD, rpc)):
            os.dup2(source, target)
        os.closerange(worker.SOCKET_FD + 1, os.sysconf("SC_OPEN_MAX"))
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - lives as long as the process
        for name, fd in (("stdout", 1), ("stderr", 2)):
            stream = open(fd, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)

        give_memory_back()
        layers = confine(limits)
        worker.serve(worker.read_frames(worker.SOCKET_FD), worker.write_all(worker.SOCKET_FD), layers)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
