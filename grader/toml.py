"""Read a TOML file, on every Python that is supported."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_toml(path: Path) -> dict[str, Any]:
    """Return the whole file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not TOML.
    """
    found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return found
