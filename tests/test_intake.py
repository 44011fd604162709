"""What is read of a submission, and what is not."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from grader import intake
from grader.intake import InputError, Unreadable, read_submission

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


def test_what_is_installed_beside_a_part_is_not_read(tmp_path: Path) -> None:
    """Environments, under whatever name; told, and the same in a folder and in a zip."""
    content = {"x/attention.py": "a", "x/env/pyvenv.cfg": "", "node_modules/x/y.js": "", "pyvenv.cfg": ""}
    content |= {f"x/env/lib/{number}.py": "" for number in range(2100)}
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)
        archive.extractall(tmp_path / "folder")
    read = read_submission(tmp_path / "folder", FILES)
    assert dict(read.files) == {"x/attention.py": b"a"}
    assert read.skipped == {"node_modules": "installed packages", "x/env": "installed packages"}
    assert read_submission(tmp_path / "z.zip", FILES) == read


def test_parts_are_read_before_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However late their names come; what is left out is told, and not all of it."""
    monkeypatch.setattr(intake, "MAX_FILES", 2)
    monkeypatch.setattr(intake, "MAX_SKIPPED", 1)
    (tmp_path / "z").mkdir()
    for name in ("0.py", "1.py", "2.py", "z/attention.py"):
        (tmp_path / name).write_text("")
    read = read_submission(tmp_path, FILES)
    assert list(read.files) == ["0.py", "z/attention.py"]
    assert read.skipped == {"1.py": "too many", "and 1 more": "left out, too"}


@pytest.mark.parametrize("name", ["bob\x1b]0;pwned\x07.py", "\u202e.py"])
def test_names_are_shown_without_what_a_terminal_obeys(tmp_path: Path, name: str) -> None:
    """In whatever is said of a submission, a folder or a zip."""
    (tmp_path / "folder\x1b[2J").mkdir()
    (tmp_path / "folder\x1b[2J" / name).write_text("")
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr(name, "")
    for path in (tmp_path / "folder\x1b[2J", tmp_path / "z.zip"):
        with pytest.raises(InputError, match=r"must hold one of attention\.py, got") as caught:
            read_submission(path, FILES)
        assert str(caught.value).isprintable()


def test_a_zip_of_too_many_entries_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name, rule, got."""
    monkeypatch.setattr(intake, "MAX_ENTRIES", 2)
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for number in range(3):
            archive.writestr(f"{number}.py", "")
    with pytest.raises(InputError, match="at most 2 entries, got"):
        read_submission(tmp_path / "z.zip", FILES)


def test_many_files_are_read_no_further_than_the_total(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bomb of many entries costs no more than the cap; what was left out is said."""
    monkeypatch.setattr(intake, "MAX_TOTAL_BYTES", 100)
    with zipfile.ZipFile(tmp_path / "z.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("attention.py", "x")
        for number in range(9):
            archive.writestr(f"bomb{number}.py", b" " * 60)
    read = read_submission(tmp_path / "z.zip", FILES)
    assert list(read.files) == ["attention.py", "bomb0.py", "bomb1.py"]
    assert set(read.skipped.values()) == {"too many"}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_of_a_zip(tmp_path: Path) -> None:
    """The last of several counts; backslashes part folders; a drive leads outside; case tells files apart."""
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("hw3\\attention.py", "first")
        archive.writestr("hw3/attention.py", "last")
        archive.writestr("hw3/Attention.py", "other")
        archive.writestr("C:\\evil.py", "outside")
        archive.writestr("..\\evil.py", "outside")
    read = read_submission(tmp_path / "z.zip", FILES)
    assert dict(read.files) == {"hw3/Attention.py": b"other", "hw3/attention.py": b"last"}


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """A file system knows bytes only; such a file is read, hashed, and named so that it can be shown."""
    (tmp_path / "attention.py").write_text("x")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/h\xff.py")).write_text("y")
    read = read_submission(tmp_path, FILES)
    assert len(read.files) == 2
    assert len(read.sha256) == 64


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED])
def test_a_zip_that_is_broken_inside(tmp_path: Path, method: int) -> None:
    """Whatever the method, one line."""
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("attention.py", "x" * 5000)
    data = bytearray(path.read_bytes())
    data[45:60] = b"\xff" * 15
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"got .*z\.zip"):
        read_submission(path, FILES)


def test_a_zip_without_its_beginning(tmp_path: Path) -> None:
    """It is the student's, though the system says "invalid argument" of it."""
    path = tmp_path / "z.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("attention.py", "x" * 100)
    path.write_bytes(path.read_bytes()[20:])
    with pytest.raises(InputError, match=r"got .*z\.zip"):
        read_submission(path, FILES)


def test_what_is_not_there_is_no_students_fault(tmp_path: Path) -> None:
    """It is told apart from what was handed in and cannot be graded."""
    with pytest.raises(Unreadable, match=r"got .*nowhere \(no such path\)"):
        read_submission(tmp_path / "nowhere", FILES)


def test_an_entry_without_a_name(tmp_path: Path) -> None:
    """It is passed over."""
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("attention.py", "x")
        archive.writestr("no", "y")
    data = (tmp_path / "z.zip").read_bytes().replace(b"no", b"\0o")
    (tmp_path / "z.zip").write_bytes(data)
    assert list(read_submission(tmp_path / "z.zip", FILES).files) == ["attention.py"]


def test_a_name_in_utf8_that_does_not_say_so(tmp_path: Path) -> None:
    """As many tools write it."""
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("hxx/attention.py", "x")
    data = (tmp_path / "z.zip").read_bytes().replace(b"hxx", "hé".encode())
    (tmp_path / "z.zip").write_bytes(data)
    assert list(read_submission(tmp_path / "z.zip", FILES).files) == ["hé/attention.py"]


@pytest.mark.parametrize("zip64", [False, True])
def test_a_table_of_contents_that_is_far_too_long_is_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zip64: bool
) -> None:
    """Its size is known from the last record alone."""
    monkeypatch.setattr(intake, "MAX_DIRECTORY_BYTES", 1000)
    if zip64:
        monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        for number in range(30):
            archive.writestr(f"{number}.py", "")
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(InputError, match=r"entries, got .* with more"):
        read_submission(tmp_path / "z.zip", FILES)
