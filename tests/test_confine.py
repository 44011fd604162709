"""The layers around a worker: each is tried out, and what is missing is said."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict

import pytest

from grader.sandbox import confine, landlock, syscalls, zygote
from grader.sandbox.confine import Layer, Limits, missing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux'")


def confined(
    *, before: Callable[[], object] = lambda: None, after: Callable[[], object] = lambda: None
) -> dict:
    """The layers of a process that confines itself, and what `after` says in it."""
    confine.prepare()
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            before()
            layers = confine.confine(Limits(64 << 20))
            said = json.dumps({"after": after(), **{name: asdict(layer) for name, layer in layers.items()}})
            os.write(theirs, said.encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours) as pipe:
        found = json.load(pipe)
    os.waitpid(pid, 0)
    said = found.pop("after")
    return {"after": said, "layers": {name: Layer(**layer) for name, layer in found.items()}}


def without_filter() -> None:
    """Make as if the library were not there."""
    syscalls.compiled = lambda **_: "install libseccomp2 and pyseccomp (no such library)"


def without_landlock() -> None:
    """Make as if the kernel were old."""
    landlock.version = lambda: 0


def open_for_writing() -> str:
    """The first file that could be opened, of some that must not."""
    for path in ("/tmp/was-here", "/dev/shm/was-here", __file__):  # noqa: S108 - must not work
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
        except OSError:
            continue
        return path
    return ""


def test_all_layers_hold() -> None:
    """Where these tests run, nothing needed is missing."""
    found = confined(after=open_for_writing)
    assert missing(found["layers"]) == {}
    assert found["after"] == ""


def test_a_missing_filter_is_said() -> None:
    """What it would have kept is not claimed; the other layers stand."""
    found = confined(before=without_filter)
    assert not found["layers"]["seccomp"].holds
    assert found["layers"]["landlock"].holds
    assert list(missing(found["layers"])) == ["seccomp"]
    assert "libseccomp2" in missing(found["layers"])["seccomp"]


def test_without_landlock_the_filter_refuses_to_write() -> None:
    """Old kernels: what anybody may read is readable, so the grader says that its files are."""
    found = confined(before=without_landlock, after=open_for_writing)
    assert found["after"] == ""
    assert found["layers"]["nothing_written"].holds
    assert found["layers"]["seccomp"].holds
    readable = os.geteuid() != 0 or confine._open_to_all(confine.__file__)
    assert ("grader_hidden" in missing(found["layers"])) is readable


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a user of its own")
def test_without_the_filter_nothing_outlives_a_worker() -> None:
    """What it started is killed with it, a daemon, too."""

    def daemon() -> int:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            time.sleep(1000)
        return pid

    confine.prepare()
    daemon_ours, daemon_theirs = os.pipe()
    worker = os.fork()
    if worker == 0:
        without_filter()
        confine.confine(Limits(64 << 20))
        os.write(daemon_theirs, str(daemon()).encode())
        time.sleep(1000)
    started = int(os.read(daemon_ours, 20))
    monkey = syscalls.compiled
    try:
        without_filter()
        assert zygote._end(worker) == -9
    finally:
        syscalls.compiled = monkey
    for pipe in (daemon_ours, daemon_theirs):
        os.close(pipe)
    patience = time.monotonic() + 20  # a signal is sent at once, and takes effect when the machine gets to it
    while _alive(started) and time.monotonic() < patience:
        time.sleep(0.01)
    assert not _alive(started)


def _alive(pid: int) -> bool:
    """Whether it runs; one that is dead and not yet reaped by init does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_limits_are_lowered_never_raised() -> None:
    """A system that allows less is no failure."""

    def low() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    assert confined(before=low)["layers"]["limits"].holds


@pytest.mark.parametrize("name", ["limits", "seccomp", "grader_hidden"])
def test_what_is_needed(name: str) -> None:
    """Each of them, with what to do about it; one that was never reported is missing, too."""
    held = {layer: Layer(True, "") for layer in ("limits", *confine.LINUX_LAYERS)}
    assert missing(held) == {}
    assert list(missing(held | {name: Layer(False, "")})) == [name]
    assert name in missing({layer: found for layer, found in held.items() if layer != name})


def test_an_ordinary_user_needs_no_user_of_its_own() -> None:
    """Only root can give one; where root could not, that is said."""
    held = {layer: Layer(True, "") for layer in ("limits", *confine.LINUX_LAYERS)}
    assert missing(held | {"own_uid": Layer(False, confine._NOT_ROOT)}) == {}
    assert list(missing(held | {"own_uid": Layer(False, "could not change the user")})) == ["own_uid"]
