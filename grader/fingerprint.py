"""Which grader it was: one that differs in anything may come to another result."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parent.parent


@cache
def fingerprint() -> str:
    """Hash of the grader's files and the reference's, and of the torch and the Python that run them."""
    digest = hashlib.sha256(f"{version('torch')} {platform.python_version()}".encode())
    for folder in ("grader", "reference"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
