"""Landlock: which files a process may open, and that it may neither connect nor signal, for good.

Three system calls and a few structures of `linux/landlock.h`. What a kernel does not know yet is left
out: the rights that it has are asked for first.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All rights on files, by the version that brought the last of them."""

_TCP = 0b11  # bind, connect; since version 4
_SCOPES = 0b11  # abstract sockets, signals; since version 6


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The version that the kernel has; 0 for none, or none that it lets us use."""
    return max(0, _system_call(_CREATE_RULESET, None, 0, _VERSION_FLAG))


def restrict(readable: Iterable[str], writable: Iterable[str]) -> int:
    """Let this process open what lies under these paths, and nothing else; return the version used.

    Needs `no_new_privs`. Paths that do not exist are left out.

    Args:
        readable: files, and folders with all below them.
        writable: files.

    Raises:
        OSError: the kernel has Landlock and refuses.
    """
    known = version()
    if not known:
        return 0
    files = max(rights for since, rights in _FILES.items() if since <= known)
    rules = _Ruleset(files, _TCP if known >= 4 else 0, _SCOPES if known >= 6 else 0)
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    ruleset = _checked(_system_call(_CREATE_RULESET, ctypes.byref(rules), size, 0))
    try:
        for path in readable:
            _allow(ruleset, path, _READ_FILE, _READ_FILE | _READ_DIR)
        for path in writable:
            _allow(ruleset, path, _READ_FILE | _WRITE_FILE, 0)
        _checked(_system_call(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)
    return known


def _allow(ruleset: int, path: str, of_file: int, of_folder: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = of_folder if os.path.isdir(path) else of_file
        rule = _PathBeneath(allowed, parent)
        _checked(_system_call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(parent)


def _system_call(number: int, *arguments: object) -> int:
    """The result, or minus the error's number."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    result = int(libc.syscall(ctypes.c_long(number), *arguments))
    return result if result >= 0 else -ctypes.get_errno()


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result
