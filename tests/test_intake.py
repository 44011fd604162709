"""What is read of a submission, and what is not."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from grader import intake
from grader.intake import InputError, read_submission

FILES = {"attention": "attention.py"}


def test_a_folder_and_its_zip_are_the_same_submission(tmp_path: Path) -> None:
    """Same files, same hash; what is no Python and what is noise is left out."""
    folder = tmp_path / "folder"
    content = {"hw3/attention.py": "a", "hw3/utils/b.py": "b", "hw3/readme.txt": "c", "hw3/.git/d.py": "d"}
    content |= {"__MACOSX/attention.py": "e", "hw3/__pycache__/attention.py": "f"}
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for name, text in content.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
            archive.writestr(name, text)
    read, unzipped = read_submission(folder, FILES), read_submission(tmp_path / "z.zip", FILES)
    assert list(read.files) == ["hw3/attention.py", "hw3/utils/b.py"]
    assert read.parts == {"attention": "hw3/attention.py"}
    assert read == unzipped
    assert read.sha256 == unzipped.sha256


def test_the_hash_tells_names_from_contents(tmp_path: Path) -> None:
    """Moving bytes between a name and a content, or between files, changes it."""
    hashes = set()
    for number, files in enumerate(
        [{"attention.py": "ab"}, {"attention.py": "a", "b.py": ""}, {"attention.py": "", "b.py": "a"}]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        hashes.add(read_submission(folder, FILES).sha256)
    assert len(hashes) == 3


def test_links_and_paths_out_of_a_zip_are_not_followed(tmp_path: Path) -> None:
    """Neither a symbolic link nor `..` reads what lies elsewhere."""
    secret = tmp_path / "secret.py"
    secret.write_text("secret")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "attention.py").write_text("x")
    os.symlink(secret, folder / "link.py")
    os.symlink(tmp_path, folder / "up")
    os.mkfifo(folder / "pipe.py")
    assert list(read_submission(folder, FILES).files) == ["attention.py"]

    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("attention.py", "x")
        archive.writestr("../secret.py", "y")
        archive.writestr("/etc/secret.py", "y")
        link = zipfile.ZipInfo("link.py")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(secret))
    assert list(read_submission(tmp_path / "z.zip", FILES).files) == ["attention.py"]


def test_what_is_too_large_is_skipped_and_said(tmp_path: Path) -> None:
    """A bomb is read no further than the cap."""
    with zipfile.ZipFile(tmp_path / "z.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("attention.py", "x")
        archive.writestr("bomb.py", b"\0" * (64 << 20))
    read = read_submission(tmp_path / "z.zip", FILES)
    assert (list(read.files), dict(read.skipped)) == (["attention.py"], {"bomb.py": "too large"})


def test_a_zip_of_too_many_entries_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name, rule, got."""
    monkeypatch.setattr(intake, "MAX_ENTRIES", 2)
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for number in range(3):
            archive.writestr(f"{number}.py", "")
    with pytest.raises(InputError, match="at most 2 entries, got"):
        read_submission(tmp_path / "z.zip", FILES)
