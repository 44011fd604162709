"""How much memory processes take, each page that several share counted once."""

from __future__ import annotations

from pathlib import Path


def tree_pss_mb(pid: int) -> float:
    """Proportional set size of a process and of all below it, in MB; of one that has ended, 0."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0
    own_kb = sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return own_kb / 1024 + sum(tree_pss_mb(int(child)) for child in children)
