"""What stands around a worker: a file that anybody may write, a process, sockets that listen."""

from __future__ import annotations

import codecs
import contextlib
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from grader.sandbox.confine import ROOT
from grader.sandbox.zygote import Zygote

NEEDLE = codecs.encode("scores.masked_fill(mask, -math.inf)", "rot13")
"""A line of the reference, made unreadable."""

_BYSTANDER = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
_SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - where anybody may write


class World:
    """All that an attack could reach for."""

    def __init__(self, folder: Path) -> None:
        folder.chmod(0o777)
        self.canary = folder / "canary"
        self.canary.write_text("sings")
        self.canary.chmod(0o666)
        other = folder / "other"
        other.mkdir()
        (other / "attention.py").write_text("# another student's")
        self.bystander = subprocess.Popen(
            [sys.executable, "-c", _BYSTANDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.unix = socket.socket(socket.AF_UNIX)
        self._short = tempfile.TemporaryDirectory()  # a socket's path must not be long
        Path(self._short.name).chmod(0o755)
        called = Path(self._short.name, "socket")
        self.unix.bind(str(called))
        self.unix.listen()
        called.chmod(0o666)
        self.values = {
            "canary": str(self.canary),
            "folder": str(folder),
            "root": ROOT,
            "bystander": str(self.bystander.pid),
            "grader": str(os.getpid()),
            "tcp": str(self.tcp.getsockname()[1]),
            "udp": str(self.udp.getsockname()[1]),
            "unix": str(called),
            "needle!r": repr(NEEDLE),
        }
        self._before = self._state()

    def filled_in(self, code: str) -> str:
        """The code of an attack, with what it is aimed at."""
        for name, value in self.values.items():
            code = code.replace("{" + name + "}", value)
        return code

    def damage(self) -> list[str]:
        """What is not as it was."""
        found = [name for name, value in self._state().items() if self._before[name] != value]
        heard = select.select([self.tcp, self.udp, self.unix], [], [], 0)[0]
        return found + [f"somebody called {one.getsockname()}" for one in heard]

    def close(self) -> None:
        """End it."""
        self.bystander.kill()
        self.bystander.wait()
        for pipe in (self.bystander.stdin, self.bystander.stdout):
            assert pipe is not None
            pipe.close()
        for one in (self.tcp, self.udp, self.unix):
            one.close()
        self._short.cleanup()

    def _state(self) -> dict[str, object]:
        shared = {folder: sorted(_named(Path(folder))) for folder in _SHARED_FOLDERS}
        own = sorted(path.name for path in self.canary.parent.iterdir())
        status = self.canary.stat() if self.canary.exists() else None
        return shared | {
            "own folder": own,
            "canary": status and (self.canary.read_text(), status.st_mode, status.st_uid, status.st_mtime_ns),
            "bystander": self._answer(),
            "its priority": os.getpriority(os.PRIO_PROCESS, self.bystander.pid),
            "its processors": os.sched_getaffinity(self.bystander.pid),
            "reference": Path(ROOT, "reference", "attention.py").stat().st_mtime_ns,
        }

    def _answer(self) -> str:
        stdin, stdout = self.bystander.stdin, self.bystander.stdout
        assert stdin is not None
        assert stdout is not None
        with contextlib.suppress(OSError):
            stdin.write("there?\n")
            stdin.flush()
            if select.select([stdout], [], [], 10)[0]:
                return stdout.readline()
        return "no answer"


def workers(zygote: Zygote) -> list[str]:
    """The process ids of all that a zygote's workers have left."""
    children = Path(f"/proc/{zygote.pid}/task/{zygote.pid}/children")
    return children.read_text().split()


def _named(folder: Path) -> Iterator[str]:
    for path in folder.iterdir():
        if path.name.startswith(("was", "psm_")):
            yield path.name
