"""Which system calls a worker may make: what Python and torch need to compute, and no more.

A filter is compiled once, in the zygote; each worker loads it. Everything that is not named fails with
EPERM: sockets, processes, other processes' memory, and whatever a kernel will know one day.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from functools import lru_cache
from typing import Any

_ALLOWED = """
read readv write writev pread64 preadv pwrite64 lseek close fstat stat lstat newfstatat statx access
faccessat faccessat2 getdents getdents64 readlink readlinkat getcwd dup dup2 dup3 pipe pipe2
poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2
mmap munmap mremap mprotect madvise brk mincore membarrier
futex futex_waitv set_robust_list get_robust_list rseq set_tid_address exit exit_group sched_yield
getpid gettid getppid getuid geteuid getgid getegid getgroups getresuid getresgid getpgrp getpgid getsid
uname sysinfo getrlimit getrusage times getpriority getcpu
sched_getaffinity sched_getparam sched_getscheduler sched_get_priority_max sched_get_priority_min
clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time setitimer getitimer alarm pause
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack
restart_syscall getrandom arch_prctl fadvise64
""".split()  # noqa: SIM905 - read line by line

_FCNTL_COMMANDS = (0, 1, 2, 3, 4, 1030)
"""F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC; none that makes a file send signals."""

_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX."""

_PRCTLS = (3, 15, 16, 21, 23, 27, 30, 39, 0x53564D41)
"""PR_SET_NAME, PR_SET_VMA, and a few that only ask."""

_CLONE_THREAD = 0x10000
_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY
_OWN_PID = 0x7A11FED1
"""Stands in the compiled filter where a worker's own process id goes."""

_SET_SECCOMP, _FILTER_MODE = 22, 2


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


@lru_cache(maxsize=2)
def compiled(*, read_only: bool) -> bytes | str:
    """The filter's code; or a sentence that says why there is none.

    Args:
        read_only: refuse to open any file for writing. Where Landlock decides that, it need not.
    """
    try:
        import pyseccomp as seccomp
    except (ImportError, RuntimeError, OSError) as error:
        return f"install libseccomp2 and pyseccomp ({error})"
    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))

    def allow(name: str, *conditions: Any) -> None:
        # Not every architecture has every name.
        if seccomp.resolve_syscall(seccomp.Arch.NATIVE, name) >= 0:
            rules.add_rule(seccomp.ALLOW, name, *conditions)

    def argument(position: int, *values: int) -> list[Any]:
        return [seccomp.Arg(position, seccomp.EQ, value) for value in values]

    for name in _ALLOWED:
        allow(name)
    for name, position in (("open", 1), ("openat", 2)):
        conditions = [seccomp.Arg(position, seccomp.MASKED_EQ, _TO_WRITE, 0)] if read_only else []
        allow(name, *conditions)
    for name, position, values in (
        ("fcntl", 1, _FCNTL_COMMANDS),
        ("ioctl", 1, _IOCTLS),
        ("prctl", 0, _PRCTLS),
        ("kill", 0, (_OWN_PID,)),
        ("tgkill", 0, (_OWN_PID,)),
        ("prlimit64", 0, (0, _OWN_PID)),
        ("sched_setaffinity", 0, (0, _OWN_PID)),
    ):
        for condition in argument(position, *values):
            allow(name, condition)
    allow("clone", seccomp.Arg(0, seccomp.MASKED_EQ, _CLONE_THREAD, _CLONE_THREAD))
    # Libraries fall back from what a kernel does not have; a refusal they take for final.
    for name in ("clone3", "openat2"):
        if seccomp.resolve_syscall(seccomp.Arch.NATIVE, name) >= 0:
            rules.add_rule(seccomp.ERRNO(errno.ENOSYS), name)
    return _exported(rules)


def load(code: bytes) -> None:
    """Put the filter on this process, for good; needs `no_new_privs`.

    Raises:
        OSError: the kernel refuses.
    """
    own = code.replace(struct.pack("=I", _OWN_PID), struct.pack("=I", os.getpid()))
    program = _Program(len(own) // 8, own)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER_MODE), ctypes.byref(program), 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _exported(rules: Any) -> bytes:
    with open(os.memfd_create("filter"), "w+b") as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()
