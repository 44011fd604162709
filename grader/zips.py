"""Zips with the same bytes for the same content."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path


def write_zip(out: Path, files: Mapping[str, bytes], executable: tuple[str, ...] = ()) -> None:
    """Write a zip whose bytes follow from names and contents alone: no times, no owners, one order."""
    temporary = out.with_name(f".{out.name}")
    with zipfile.ZipFile(temporary, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name)
            entry.create_system = 3  # Unix, whose modes follow
            entry.external_attr = (0o100755 if name in executable else 0o100644) << 16
            # Not compressed: what zlib makes differs from version to version.
            archive.writestr(entry, files[name], zipfile.ZIP_STORED)
    temporary.replace(out)
