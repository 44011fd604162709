"""What is handed out: zips with the same bytes for the same content."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

from grader.toml import read_toml

ROOT = Path(__file__).parent.parent
_SCRIPTS = ROOT / "grader" / "gradescope"


def autograder(out: Path) -> None:
    """Build Gradescope's zip: two scripts at its root, the grader, the reference, what pip must install."""
    files = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for folder in ("grader", "reference")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    for name in ("setup.sh", "run_autograder"):
        files[name] = files.pop(f"grader/gradescope/{name}")
    files["constraints.txt"] = (ROOT / "constraints.txt").read_bytes()
    dependencies = read_toml(ROOT / "pyproject.toml")["project"]["dependencies"]
    files["requirements.txt"] = "".join(f"{one}\n" for one in dependencies).encode()
    write_zip(out, files, executable=("setup.sh", "run_autograder"))


def write_zip(out: Path, files: Mapping[str, bytes], executable: tuple[str, ...] = ()) -> None:
    """Write a zip whose bytes follow from names and contents alone: no times, no owners, one order."""
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.name}")
    with zipfile.ZipFile(temporary, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name)
            entry.create_system = 3  # Unix, whose modes follow
            entry.external_attr = (0o100755 if name in executable else 0o100644) << 16
            # Not compressed: what zlib makes differs from version to version.
            archive.writestr(entry, files[name], zipfile.ZIP_STORED)
    temporary.replace(out)
