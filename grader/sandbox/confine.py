"""What a worker gives up before a student's code is imported, layer by layer.

Each layer is tried and reported, so that the grader can say what stood between it and the submission.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one worker may use, beside what the zygote already holds.

    Attributes:
        memory_bytes: growth of its data.
    """

    memory_bytes: int


def confine(limits: Limits) -> dict[str, bool]:
    """Put on every layer that this system has; return which of them hold."""
    return {
        "memory_limit": _limit_memory(limits.memory_bytes),
        "no_core_dump": _limit("RLIMIT_CORE", 0),
        "no_file_writes": _limit("RLIMIT_FSIZE", 0),
    }


def _limit_memory(growth_bytes: int) -> bool:
    held = _held_bytes()
    if held is None:
        return False
    # RLIMIT_DATA counts private writable memory, RLIMIT_AS also what is mapped and shared.
    return _limit("RLIMIT_DATA", held["VmData"] + growth_bytes) and _limit(
        "RLIMIT_AS", held["VmSize"] + 2 * growth_bytes
    )


def _limit(name: str, value: int) -> bool:
    if sys.platform == "win32":
        return False
    import resource

    kind = getattr(resource, name, None)
    if kind is None:
        return False
    try:
        resource.setrlimit(kind, (value, value))
    except (ValueError, OSError):
        return False
    return True


def _held_bytes() -> dict[str, int] | None:
    """The process' own sizes, as Linux counts them."""
    if not os.path.exists("/proc/self/status"):
        return None
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status if ":" in line)
    return {name: int(fields[name].split()[0]) * 1024 for name in ("VmData", "VmSize")}
