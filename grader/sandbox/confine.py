"""What a worker gives up before a student's code is imported, layer by layer, for good.

Each layer is put on, tried out, and reported, so that the grader can say what stood between it and the
submission. One that is missing is no error here: who grades decides what is enough (`missing`).

The order matters. Limits and Landlock need rights that the drop to a user of its own takes away; the
signal at the parent's death is forgotten by that drop; the filter of system calls forbids all the rest.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader.sandbox import landlock, syscalls

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The grader's own folder, which no worker may read."""

FIRST_UID, UIDS = 60_500, 4_000
"""Workers of root run under one of these users, which nobody else should have."""

MAX_THREADS = 64
MAX_OPEN_FILES = 256

_SYSTEM_FILES = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/dev/urandom",
    "/dev/random",
    "/dev/zero",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
)
_MMAP_THRESHOLD = -3  # in malloc.h
_DEATH_SIGNAL, _DUMPABLE, _KEEP_CAPABILITIES, _NO_NEW_PRIVILEGES = 1, 4, 8, 38
_CAPABILITY_VERSION, _READ_SEARCH = 0x20080522, 1 << 2


@dataclass(frozen=True)
class Limits:
    """What one worker may use, beside what the zygote already holds.

    Attributes:
        memory_bytes: growth of its data.
        cpu_s: CPU time, should nobody be left to end it sooner.
    """

    memory_bytes: int
    cpu_s: int = 3600


@dataclass(frozen=True)
class Layer:
    """One layer around a worker.

    Attributes:
        holds: it was put on, and stood a try.
        note: what it gives, or why it is not there.
    """

    holds: bool
    note: str


def prepare() -> None:
    """Do what need be done only once for all workers; call it where files may still be read."""
    if sys.platform == "linux":
        for read_only in (True, False):
            syscalls.compiled(read_only=read_only)


def confine(limits: Limits) -> dict[str, Layer]:
    """Put on every layer that this system has."""
    layers = {"limits": _limit(limits)}
    if sys.platform != "linux":
        return layers | dict.fromkeys(LINUX_LAYERS, Layer(False, f"not on {sys.platform}"))
    parent = os.getppid()
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # should memory run out, this process goes first
    layers["no_new_privs"] = _no_new_privileges()
    layers["landlock"] = _landlock()
    layers["own_uid"] = _own_user(keep_reading=layers["landlock"].holds)
    layers["dies_with_parent"] = _die_with(parent)
    layers["not_dumpable"] = _not_dumpable()
    layers["seccomp"] = _filter_system_calls(read_only=not layers["landlock"].holds)
    layers["grader_hidden"] = _grader_hidden()
    layers["nothing_written"] = _nothing_written()
    return layers


def uid_of(worker: int) -> int:
    """The user that a worker with this process id runs under, if root made it."""
    return FIRST_UID + worker % UIDS


def may_have_started_others() -> bool:
    """Whether a worker of root's could make processes that outlive it, for want of the filter."""
    return (
        sys.platform == "linux" and os.geteuid() == 0 and isinstance(syscalls.compiled(read_only=True), str)
    )


LINUX_LAYERS = (
    "no_new_privs",
    "landlock",
    "own_uid",
    "dies_with_parent",
    "not_dumpable",
    "seccomp",
    "grader_hidden",
    "nothing_written",
)


def missing(layers: Mapping[str, Layer]) -> dict[str, str]:
    """The layers that are needed where code is graded that nobody has read, with what to do about each.

    As root: a user of its own, limits, the filter of system calls, and Landlock where the kernel has it.
    As an ordinary user: limits, the filter and Landlock, for only Landlock hides the grader's files.
    """
    advice = {
        "limits": "run on Linux",
        "seccomp": "install libseccomp2 and pyseccomp",
        "grader_hidden": "use a kernel with Landlock (5.13 or newer), or let root grade and nobody else read",
    }
    if "own_uid" in layers and layers["own_uid"].note != _NOT_ROOT:
        advice["own_uid"] = "let root change the user (the capabilities SETUID and SETGID)"
    if "landlock" in layers and layers["landlock"].note != _NO_LANDLOCK:
        advice["landlock"] = "let the kernel restrict the process"
    return {name: todo for name, todo in advice.items() if name not in layers or not layers[name].holds}


# --- limits ----------------------------------------------------------------------------------------


def _limit(limits: Limits) -> Layer:
    if sys.platform == "win32":
        return Layer(False, "Windows has no such limits")
    held = _held_bytes()
    wanted = {"CORE": 0, "FSIZE": 0, "NOFILE": MAX_OPEN_FILES, "CPU": limits.cpu_s, "MSGQUEUE": 0}
    if held is not None:
        # RLIMIT_DATA counts private writable memory, RLIMIT_AS also what is mapped and shared.
        wanted["DATA"] = held["VmData"] + limits.memory_bytes
        wanted["AS"] = held["VmSize"] + 2 * limits.memory_bytes
    if os.geteuid() == 0:
        wanted["NPROC"] = MAX_THREADS  # counted by user: of an ordinary user's, others use some
    failed = [name for name, value in wanted.items() if not _set_limit(f"RLIMIT_{name}", value)]
    if held is None or failed:
        return Layer(False, f"not limited: {', '.join(failed) or 'memory'}")
    return Layer(True, f"{limits.memory_bytes >> 20} MB beside torch, {limits.cpu_s} s, files do not grow")


def _set_limit(name: str, value: int) -> bool:
    import resource

    kind = getattr(resource, name, None)
    if kind is None:
        return name == "RLIMIT_MSGQUEUE"  # only Linux has those queues
    try:
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    except (ValueError, OSError):
        return False
    return resource.getrlimit(kind) == (value, value)


def give_memory_back() -> None:
    """Have every large block go back to the system when it is freed, with glibc.

    By itself glibc takes ever larger blocks from the heap, in whose holes blocks of megabytes soon find no
    room: it grows, and what a submission has long freed counts against its limit.
    """
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 1 << 20)


def _held_bytes() -> dict[str, int] | None:
    """The process' own sizes, as Linux counts them."""
    if not os.path.exists("/proc/self/status"):
        return None
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status if ":" in line)
    return {name: int(fields[name].split()[0]) * 1024 for name in ("VmData", "VmSize")}


# --- Linux -----------------------------------------------------------------------------------------

_NOT_ROOT = "only root can give each worker a user of its own"
_NO_LANDLOCK = "the kernel has no Landlock, or does not let us use it"


def _no_new_privileges() -> Layer:
    return Layer(_process_control(_NO_NEW_PRIVILEGES, 1) == 0, "no program gives it more rights")


def _landlock() -> Layer:
    try:
        version = landlock.restrict(_readable(), ["/dev/null"])
    except OSError as error:
        return Layer(False, f"the kernel refused: {error.strerror}")
    if not version:
        return Layer(False, _NO_LANDLOCK)
    given = ["opens only Python, torch and system libraries; writes nothing"]
    given += ["no TCP"] if version >= 4 else []
    given += ["no signals to others, no abstract sockets"] if version >= 6 else []
    return Layer(True, f"version {version}: {', '.join(given)}")


def _readable() -> list[str]:
    """Python, its packages and the system's libraries; never a folder that the grader lies in.

    What else is on `sys.path` may be anybody's: the folder that the grader was started in, for one.
    """
    libraries = [os.path.join(prefix, "lib") for prefix in (sys.prefix, sys.base_prefix)]
    packages = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    installed = [os.path.dirname(os.path.dirname(path)) for path in _torch_file()]
    paths = dict.fromkeys(os.path.realpath(path) for path in [*libraries, *packages, *installed])
    return [*(path for path in paths if not _holds(path, ROOT)), *_SYSTEM_FILES]


def _holds(folder: str, path: str) -> bool:
    return os.path.commonpath([folder, os.path.realpath(path)]) == folder


def _own_user(*, keep_reading: bool) -> Layer:
    """Become a user that nobody else is.

    Args:
        keep_reading: files that only root can read stay readable if Python is among them. Landlock
            says which files there are at all.
    """
    if os.geteuid() != 0:
        return Layer(False, _NOT_ROOT)
    uid = uid_of(os.getpid())
    keep = keep_reading and not all(map(_open_to_all, (os.__file__, *_torch_file())))
    try:
        if keep:
            _process_control(_KEEP_CAPABILITIES, 1)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        if keep:
            _set_capabilities(_READ_SEARCH)
    except OSError as error:
        return Layer(False, f"could not change the user: {error.strerror}")
    note = "a user that nobody else is"
    if keep:
        note += "; may read what only root can, as far as Landlock lets it, since Python lies there"
    elif not _can_read(os.__file__):
        note += f"; cannot read Python ({os.__file__}), so that code may fail to import more of it"
    return Layer(os.getresuid() == (uid, uid, uid) and os.getgroups() == [], note)


def _torch_file() -> list[str]:
    torch = sys.modules.get("torch")
    return [torch.__file__] if torch is not None and torch.__file__ else []


def _open_to_all(path: str) -> bool:
    """Whether any user may read this file, by the modes on the way to it."""
    path = os.path.realpath(path)
    if not os.stat(path).st_mode & 0o004:
        return False
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & 0o001:
            return False
    return True


def _set_capabilities(wanted: int) -> None:
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    data = (ctypes.c_uint32 * 6)(wanted, wanted, 0, 0, 0, 0)  # effective, permitted, inheritable; twice
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset(ctypes.byref(header), ctypes.byref(data)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _die_with(parent: int) -> Layer:
    set_up = _process_control(_DEATH_SIGNAL, signal.SIGKILL) == 0
    if os.getppid() != parent:
        os._exit(1)  # it died before the signal was asked for
    return Layer(set_up, "killed when the process that made it ends")


def _not_dumpable() -> Layer:
    return Layer(hide_memory(), "its memory is hidden from processes of the same user")


def hide_memory() -> bool:
    """Keep other processes of the same user out of this one's memory, on Linux; say whether it worked."""
    return sys.platform == "linux" and _process_control(_DUMPABLE, 0) == 0


def forget_how_it_was_started() -> None:
    """Wipe the environment and the command line, also where the system put them at the start."""
    texts = [sys.orig_argv, sys.argv]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        _wipe_strings(ctypes.POINTER(ctypes.c_void_p).in_dll(libc, "environ"))
        start = ctypes.c_void_p.in_dll(libc, "program_invocation_name").value
        # The arguments lie one behind the other from there, each with its end.
        length = sum(len(os.fsencode(argument)) + 1 for argument in sys.orig_argv)
        if start is not None and ctypes.string_at(start, length).startswith(os.fsencode(sys.orig_argv[0])):
            ctypes.memset(start, 0, length)
    os.environ.clear()
    for text in texts:
        text[:] = [""]


def _wipe_strings(pointers: Any) -> None:
    index = 0
    while pointers and pointers[index]:
        ctypes.memset(pointers[index], 0, len(ctypes.string_at(pointers[index])))
        index += 1


def _filter_system_calls(*, read_only: bool) -> Layer:
    code = syscalls.compiled(read_only=read_only)
    if isinstance(code, str):
        return Layer(False, code)
    try:
        syscalls.load(code)
    except OSError as error:
        return Layer(False, f"the kernel refused: {error.strerror}")
    return Layer(_refused(), "no network, no new processes, no reach into other processes")


def _refused() -> bool:
    """Whether a worker is really kept from what the filter is there for."""
    import socket

    with contextlib.suppress(PermissionError):
        socket.socket().close()
        return False
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return True
    return False


def _grader_hidden() -> Layer:
    if _can_read(os.path.join(ROOT, "grader", "__main__.py")):
        return Layer(False, "the files of the grader can be read")
    return Layer(True, "the files of the grader cannot be read")


def _nothing_written() -> Layer:
    try:
        os.close(os.open("/tmp/hw3-grader-probe", os.O_WRONLY | os.O_CREAT, 0o600))  # noqa: S108 - a probe
    except OSError:
        return Layer(True, "no file can be made")
    os.unlink("/tmp/hw3-grader-probe")  # noqa: S108
    return Layer(False, "files can be made where any user may make some")


def _can_read(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError:
        return False
    return True


def _process_control(option: int, value: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0)
    return result
