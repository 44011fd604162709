"""A class's download, whoever made it, becomes one submission per person or group."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import yaml

from grader.ingest import Entry, Export, Student, read_export
from grader.ingest import contents as ingest_contents
from grader.ingest.contents import taken
from grader.ingest.ids import MAX_BYTES, MAX_CHARACTERS, safe
from grader.intake import InputError
from tests import exports
from tests.exports import ANA, BOB, ZOE, lay, pack, zipped

FILES = {"attention": "attention.py", "multi_head": "multi_head.py"}
CODE = {"attention.py": "a", "multi_head.py": "m", "utils.py": "u"}


def export(where: Path, files: exports.Files, layout: str = "") -> Export:
    """Read a download that holds these files, and its zip, which must say the same."""
    from_folder = read_export(lay(where / "download", files), FILES, layout)
    from_zip = read_export(pack(where / "download.zip", files), FILES, layout)
    assert told(from_folder) == told(from_zip)
    return from_zip


def told(found: Export) -> object:
    """All that an export says."""
    entries = [
        (e.id, e.source, e.students, e.late, e.submitted_at, e.notes, read_or_reason(e))
        for e in found.entries
    ]
    return found.layout, entries, dict(found.unmatched)


def read_or_reason(entry: Entry) -> object:
    """The submission, or why there is none."""
    try:
        return entry.read()
    except InputError as error:
        return str(error)


def by_id(found: Export) -> dict[str, Entry]:
    """The entries by their ids."""
    return {entry.id: entry for entry in found.entries}


def contents(entry: Entry) -> dict[str, str]:
    """What is read of an entry."""
    return {path: data.decode() for path, data in entry.read().files.items()}


# --- Gradescope -----------------------------------------------------------------------------------


@pytest.mark.parametrize("top", ["assignment_77_export/", "", "hw 3/x/"])
def test_a_gradescope_export_says_whose_is_what(tmp_path: Path, top: str) -> None:
    """Names, addresses and student numbers with their zeros come from the metadata, wherever it lies."""
    found = export(tmp_path, exports.gradescope([(BOB, CODE), (ZOE, CODE)], top))
    assert found.layout == "gradescope"
    assert [(e.id, e.students) for e in found.entries] == [
        ("submission_101", (Student(BOB.name, BOB.email, "00123"),)),
        ("submission_102", (Student(ZOE.name, ZOE.email),)),
    ]
    assert found.entries[0].submitted_at == "2026-04-26 17:34:00.861687000 Z"
    assert found.entries[0].source == f"{top}submission_101"
    assert contents(found.entries[0]) == CODE
    assert not found.unmatched


METADATA = """\
--- !ruby/hash:ActiveSupport::HashWithIndifferentAccess
submission_1:
  :submitters:
  - :name: &who Bob
    :sid: 00123
    :email: null
  - :name: Ana
    :sid:
  :created_at: &when 2026-04-26 17:34:00 Z
submission_2:
  :submitters:
  :created_at: *when
submission_3:
  :submitters: []
submission_4:
  :submitters:
  - {":name": *who}
7.pdf:
  :submitters:
  - :name: Zoe
submission_9: ~
"""


def test_metadata_as_it_may_come(tmp_path: Path) -> None:
    """Groups, nobody, bare numbers, aliases, tags, exams; a folder and a person without the other."""
    files = {f"submission_{number}/attention.py": "a" for number in (1, 2, 3, 4, 8)}
    files |= {"submission_metadata.yml": METADATA, "7.pdf": "%PDF", "readme.txt": "hello"}
    files |= {".DS_Store": "x", "__MACOSX/._7.pdf": "x"}
    found = export(tmp_path, files)
    entries = by_id(found)
    assert entries["submission_1"].students == (Student("Bob", sid="00123"), Student("Ana"))
    assert entries["submission_2"].submitted_at == "2026-04-26 17:34:00 Z"
    assert entries["submission_2"].notes == ("submission_metadata.yml names no student",)
    assert entries["submission_3"].notes == entries["submission_2"].notes
    assert entries["submission_4"].students == (Student("Bob"),)
    assert entries["submission_7"].students == (Student("Zoe"),)
    assert read_or_reason(entries["submission_7"]) == (
        "the submission must hold one of attention.py, multi_head.py; got 7.pdf"
    )
    assert entries["submission_8"].notes == ("submission_metadata.yml does not name it",)
    assert found.unmatched == {
        "readme.txt": "submission_metadata.yml does not name it",
        "submission_9": "no files in the export",
    }


@pytest.mark.parametrize("text", ["a: [", "- 1", "", "a: \x01", b"\xff\xfe\x00", "a: 1\nb"])
def test_metadata_that_cannot_be_read(tmp_path: Path, text: str | bytes) -> None:
    """One line, and nothing is guessed."""
    files = {"submission_1/attention.py": "a", "submission_metadata.yml": text}
    with pytest.raises(InputError, match=r"submission_metadata\.yml must be"):
        read_export(lay(tmp_path, files), FILES)


@pytest.mark.parametrize("depth", [60, 700, 5000])
def test_metadata_that_goes_down_forever(tmp_path: Path, depth: int) -> None:
    """It is this file that is wrong, and not the zip."""
    text = f"submission_1:\n  :submitters: {'[' * depth}{']' * depth}"
    files = {"submission_1/attention.py": "a", "submission_metadata.yml": text}
    with pytest.raises(InputError, match=r"submission_metadata\.yml must be (nested at most 50 deep|valid)"):
        read_export(pack(tmp_path / "z.zip", files), FILES)


def test_metadata_without_the_fast_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML came without libyaml, the same is read."""
    root = lay(tmp_path, exports.gradescope([(BOB, CODE), (ZOE, CODE)]))
    fast = read_export(root, FILES)
    monkeypatch.delattr(yaml, "CBaseLoader", raising=False)
    assert told(read_export(root, FILES)) == told(fast)


def test_metadata_without_pyyaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads other downloads does not need it; who does is told."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(InputError, match="pip install pyyaml"):
        read_export(lay(tmp_path / "g", exports.gradescope([(BOB, CODE)])), FILES)
    assert read_export(lay(tmp_path / "f", {"a/attention.py": ""}), FILES).layout == "folders"


# --- Canvas ---------------------------------------------------------------------------------------


def test_a_canvas_download_is_grouped_by_student(tmp_path: Path) -> None:
    """Loose files get their own names back; a late one is late; the number is the gradebook's."""
    found = export(tmp_path, exports.canvas([(BOB, CODE), (ZOE, {"hw3.zip": zipped(CODE)})], late=[BOB]))
    bob, zoe = found.entries[1], found.entries[0]
    assert found.layout == "canvas"
    assert (bob.id, bob.students) == ("smithbob_340934", (Student("smithbob", lms_id="340934"),))
    assert (zoe.id, zoe.students[0].name) == ("oneillmüllerzoë_340936", "oneillmüllerzoë")
    assert (bob.late, zoe.late) == (True, False)
    assert contents(bob) == contents(zoe) == CODE
    assert not bob.notes


CANVAS_NAMES = {
    "smithbob_340934_208490284_hw3_2_attention.py": ("smithbob_340934", False, "hw3_2_attention.py"),
    "smithbob_340934_208490284_my_12_34_attention.py": ("smithbob_340934", False, "my_12_34_attention.py"),
    "smith_bob_LATE_340934_2084_attention.py": ("smith_bob_340934", True, "attention.py"),
    "anon_AbC12_208490284_attention.py": ("anon_AbC12", False, "attention.py"),
    "anon_AbC12_LATE_208490284_attention.py": ("anon_AbC12", True, "attention.py"),
    "LATE_anon_AbC12_208490284_attention.py": ("anon_AbC12", True, "attention.py"),
    "शर्माआशा_12_34_attention.py": ("शर्माआशा_12", False, "attention.py"),
    "_12_34_attention.py": ("_12", False, "attention.py"),
    "smithbob_1_2_late_3_4_attention.py": ("smithbob_1", False, "late_3_4_attention.py"),
    "group_1_341_208490284_attention.py": ("group_1_341", False, "attention.py"),
    "group_1_LATE_341_208490284_attention.py": ("group_1_341", True, "attention.py"),
    "smithbob_340934_208490284_2_attention.py": ("smithbob_340934", False, "2_attention.py"),
}


@pytest.mark.parametrize("name", CANVAS_NAMES)
def test_canvas_names_are_read_from_the_left(tmp_path: Path, name: str) -> None:
    """What a student called the file may look like anything."""
    who, late, file = CANVAS_NAMES[name]
    (entry,) = read_export(lay(tmp_path, {name: "a"}), {"part": file}).entries
    assert (entry.id, entry.late, list(entry.read().files)) == (who, late, [file])


def test_same_names_with_other_numbers_are_other_students(tmp_path: Path) -> None:
    """And two names with one number are told, not merged."""
    names = ("smithbob_1_10_attention.py", "smithbob_2_11_attention.py", "smythbob_2_12_attention.py")
    found = export(tmp_path, dict.fromkeys(names, "a"))
    assert [e.id for e in found.entries] == ["smithbob_1", "smithbob_2", "smythbob_2"]
    assert [e.notes for e in found.entries] == [
        (),
        ("2 stands behind smythbob_2, too: not merged",),
        ("2 stands behind smithbob_2, too: not merged",),
    ]


def test_of_several_uploads_of_a_file_the_last_counts(tmp_path: Path) -> None:
    """The later attachment, then the higher number that Canvas or a browser gave it; the others are told."""
    files = {
        "smithbob_1_10_attention.py": "0",
        "smithbob_1_30_attention-2.py": "2",
        "smithbob_1_40_attention-1.py": "1",
        "smithbob_1_50_utils (1).py": "later",
        "smithbob_1_49_utils-1.py": "earlier",
        "smithbob_1_60_hw.zip": zipped({"multi_head.py": "old"}),
        "smithbob_1_61_hw.zip": zipped({"multi_head.py": "old"}),
        "smithbob_1_62_hw-9.zip": zipped({"multi_head.py": "new"}),
    }
    (entry,) = export(tmp_path, files).entries
    assert contents(entry) == {"attention.py": "1", "hw/multi_head.py": "new", "utils.py": "later"}
    assert entry.notes[0] == "attention.py: took smithbob_1_40_attention-1.py, the last of 3 uploads"
    assert entry.read().skipped == {
        "smithbob_1_10_attention.py": "an earlier upload of attention.py",
        "smithbob_1_30_attention-2.py": "an earlier upload of attention.py",
        "smithbob_1_49_utils-1.py": "an earlier upload of utils.py",
        "smithbob_1_60_hw.zip": "an earlier upload of hw.zip",
    }


def test_a_canvas_name_that_can_be_read_in_two_ways(tmp_path: Path) -> None:
    """The one is taken in which the file's name begins with no number; the other one is told."""
    (entry,) = read_export(lay(tmp_path, {"zed_99_340_300_attention.py": "a"}), FILES).entries
    assert (entry.id, entry.students, entry.guessed) == (
        "zed_99_340",
        (Student("zed_99", lms_id="340"),),
        True,
    )
    assert entry.notes == (
        "zed_99_340_300_attention.py: taken for user 340's; it could also be user 99's, as 300_attention.py",
    )


@pytest.mark.parametrize("unpacked", [False, True])
def test_zips_that_are_parts_are_read_together(tmp_path: Path, unpacked: bool) -> None:
    """`part-2.zip` may be another part, or come for `part.zip`: a part that came later is never replaced."""
    parts = [("part-1", {"attention.py": "1", "x.py": "1"}), ("part-2", {"hw/multi_head.py": "2"})]
    parts += [("part-3", {"new/attention.py": "3", "x.py": "3"})]
    files: dict[str, str | bytes] = {}
    for number, (name, content) in enumerate(parts, 60):
        if unpacked:
            files |= {f"smithbob_1_{number}_{name}/{path}": text for path, text in content.items()}
        else:
            files[f"smithbob_1_{number}_{name}.zip"] = zipped(content)
    (entry,) = export(tmp_path, files).entries
    assert contents(entry) == {"new/attention.py": "3", "x.py": "3", "hw/multi_head.py": "2"}
    assert entry.notes[0].endswith("the last of 3 uploads, and from the others what it leaves open")


@pytest.mark.parametrize("name", ["smithbob_1_text.html", "smithbob_LATE_1_link.html", "anon_Ab_text.html"])
def test_what_was_typed_into_canvas_is_no_submission(tmp_path: Path, name: str) -> None:
    """It stands in the list, with the reason."""
    found = export(tmp_path, {name: "<html>", "smithbob_9_9_attention.py": "a", "notes.txt": ""})
    reasons = [read_or_reason(entry) for entry in found.entries if entry.id != "smithbob_9"]
    assert "typed into Canvas, or a link" in str(reasons)
    assert found.unmatched == {"notes.txt": "not named as Canvas names submissions"}


def test_zips_that_staff_unpacked_count_once(tmp_path: Path) -> None:
    """The folder beside the zip is the same upload."""
    files = {"smithbob_1_2_hw/attention.py": "a", "smithbob_1_2_hw.zip": zipped({"attention.py": "a"})}
    (entry,) = export(tmp_path, files).entries
    assert contents(entry) == {"attention.py": "a"}


# --- Moodle ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("flat", "ending"), [(False, ""), (False, "_"), (True, "")])
def test_a_moodle_download_in_all_its_forms(tmp_path: Path, flat: bool, ending: str) -> None:
    """Folders, older folders, and flat files whose names begin alike."""
    found = export(tmp_path, exports.moodle([(ANA, CODE), (ZOE, CODE)], flat, ending))
    assert found.layout == "moodle"
    assert [e.id for e in found.entries] == ["Ana de la Cruz_340935", "Zoë O'Neill-Müller_340936"]
    assert found.entries[0].students == (Student(ANA.name, lms_id=ANA.lms_id),)
    assert contents(found.entries[0]) == CODE


def test_moodle_names_as_they_may_come(tmp_path: Path) -> None:
    """Blind marking, teams, underscores and numbers in names; text that was typed in."""
    files = {
        "Participant_12_assignsubmission_file_/attention.py": "a",
        "Group A 7_55_assignsubmission_file_/attention.py": "a",
        "Default group_assignsubmission_file_/attention.py": "a",
        "Ann_Lee_55_13_assignsubmission_file/attention.py": "a",
        "Ann_Lee_55_13_assignsubmission_onlinetext/onlinetext.html": "<p>",
        "Bo_14_assignsubmission_onlinetext_onlinetext.html": "<p>",
        "Bo_15_assignsubmission_file_x_1_assignsubmission_file_attention.py": "a",
        "Bo_16_assignsubmission_file/": "",
        "readme.txt": "",
    }
    found = export(tmp_path, files)
    entries = by_id(found)
    assert entries["Participant_12"].students == (Student(lms_id="12"),)
    assert entries["Group A 7_55"].students == (Student("Group A 7", lms_id="55"),)
    assert entries["Default group"].students == (Student("Default group"),)
    assert entries["Ann_Lee_55_13"].students == (Student("Ann_Lee_55", lms_id="13"),)
    assert contents(entries["Ann_Lee_55_13"]) == {"attention.py": "a"}
    assert "got onlinetext.html (typed into Moodle)" in str(read_or_reason(entries["Bo_14"]))
    assert "x_1_assignsubmission_file_attention.py" in str(read_or_reason(entries["Bo_15"]))
    assert str(read_or_reason(entries["Bo_16"])).endswith("got no file at all")
    assert found.unmatched == {"readme.txt": "not named as Moodle names submissions"}


def test_a_moodle_name_may_begin_with_a_dot(tmp_path: Path) -> None:
    """It is a student's, not a system's."""
    names = [".NET Guy_55_assignsubmission_file", "Ann_56_assignsubmission_file"]
    found = export(tmp_path, {f"{name}/attention.py": "a" for name in names} | {"._x/y": ""})
    assert [entry.students[0].name for entry in found.entries] == ["Ann", ".NET Guy"]
    assert not found.unmatched


# --- GitHub Classroom -----------------------------------------------------------------------------


@pytest.mark.parametrize("top", ["hw3-submissions/", "whatever/", ""])
def test_clones_of_github_classroom(tmp_path: Path, top: str) -> None:
    """The login is what comes behind the assignment's name; nothing in `.git` is read."""
    students = [Student(lms_id="octo-cat"), Student(lms_id="bob")]
    found = export(tmp_path, exports.classroom([(student, CODE) for student in students], top=top))
    assert found.layout == "classroom"
    assert [(e.id, e.students) for e in found.entries] == [
        ("hw3-bob", (Student(lms_id="bob"),)),
        ("hw3-octo-cat", (Student(lms_id="octo-cat"),)),
    ]
    assert contents(found.entries[0]) == CODE


def test_one_clone_needs_the_folders_name(tmp_path: Path) -> None:
    """What a single name begins with nobody can know."""
    found = export(tmp_path, exports.classroom([(Student(lms_id="bob"), CODE)]))
    assert found.layout == "classroom"
    other = exports.classroom([(Student(lms_id="bob"), CODE)], top="")
    assert export(tmp_path / "other", other).entries[0].students == ()


# --- folders --------------------------------------------------------------------------------------


def test_folders_and_zips_are_submissions(tmp_path: Path) -> None:
    """An ordinary name stays as it is; noise is silent, the rest is told."""
    files = {
        "Zoë Müller-Łukasz (2)/attention.py": "z",
        "bob.zip": zipped({"hw3/attention.py": "b", "__MACOSX/attention.py": "x"}),
        "empty/": "",
        "carl.tar.gz": "x",
        "readme.txt": "",
        ".DS_Store": "",
        "Thumbs.db": "",
        "__MACOSX/bob/attention.py": "",
    }
    found = export(tmp_path, files)
    assert found.layout == "folders"
    assert [entry.id for entry in found.entries] == ["Zoë Müller-Łukasz (2)", "bob", "carl", "empty"]
    assert contents(by_id(found)["bob"]) == {"hw3/attention.py": "b"}
    assert "got carl.tar.gz (only zips are read: unpack it by hand)" in str(
        read_or_reason(by_id(found)["carl"])
    )
    assert found.unmatched == {"readme.txt": "neither a folder nor a zip"}


@pytest.mark.parametrize("top", ["", "hw3/", "a/b/c/"])
def test_a_folder_around_all_is_looked_through(tmp_path: Path, top: str) -> None:
    """As a zip often has one at its top."""
    found = export(tmp_path, {f"{top}ann/attention.py": "a", f"{top}bob.zip": zipped(CODE)})
    assert [(e.id, e.source) for e in found.entries] == [("ann", f"{top}ann"), ("bob", f"{top}bob.zip")]


def test_a_class_of_one(tmp_path: Path) -> None:
    """A student's own folder is not taken for one around all."""
    files = {"ann/starter/attention.py": "a", "ann/readme.md": ""}
    assert [entry.id for entry in export(tmp_path, files).entries] == ["ann"]


@pytest.mark.parametrize(
    "files",
    [
        [*CODE, "tests/t.py", "docs/a.py"],
        ["hw3/attention.py", "hw3/data/x.py", "hw3/notes/y.py"],
        ["starter/attention.py", "tests/t.py"],
    ],
)
def test_a_folder_that_holds_a_part_is_a_submission(tmp_path: Path, files: list[str]) -> None:
    """However many folders it has besides."""
    assert [e.id for e in export(tmp_path, {f"bob/{name}": "" for name in files}).entries] == ["bob"]


@pytest.mark.parametrize("top", ["", "fall/"])
def test_sections_are_looked_into(tmp_path: Path, top: str) -> None:
    """No two students become one; a name that two sections have is told by its section."""
    names = ("A/ann/attention.py", "A/bob/hw/attention.py", "A/eve/block.py", "B/cy/attention.py")
    names = (
        *names,
        "B/dan/attention.py",
        "B/bob/attention.py",
        "B/fay/attention.py",
        "B/list.csv",
        "B/.guy/x",
    )
    found = export(tmp_path, {f"{top}{name}": "" for name in names} | {f"{top}empty/": ""})
    assert {e.id: e.source.removeprefix(top) for e in found.entries} == {
        "ann": "A/ann",
        "A bob": "A/bob",
        "eve": "A/eve",
        "cy": "B/cy",
        "dan": "B/dan",
        "B bob": "B/bob",
        "fay": "B/fay",
        "empty": "empty",
    }
    assert by_id(found)["cy"].notes == ("section B",)
    assert {path.removeprefix(top): why for path, why in found.unmatched.items()} == {
        "B/list.csv": "neither a folder nor a zip",
        "B/.guy": "its name begins with a dot",
    }


def test_sections_of_zips_are_looked_into(tmp_path: Path) -> None:
    """Loose zips in a section's folder are submissions, beside folders or alone; of one student, too."""
    own = zipped({"attention.py": "a"})
    files = {f"A/{name}.zip": own for name in ("ann", "bob", "eve", "eve (1)")}
    files |= {f"B/{number}.zip": own for number in (1010, 1011, 1012)}
    files |= {"C/dan.zip": own, "C/bob/attention.py": "b", "C/fay/block.py": "", "C/grades.csv": ""}
    files |= {"D/gus.zip": own}
    found = export(tmp_path, files)
    assert {e.id: e.source for e in found.entries} == {
        "ann": "A/ann.zip",
        "A bob": "A/bob.zip",
        "eve": "A/eve.zip",
        "eve (1)": "A/eve (1).zip",
        "1010": "B/1010.zip",
        "1011": "B/1011.zip",
        "1012": "B/1012.zip",
        "dan": "C/dan.zip",
        "C bob": "C/bob",
        "fay": "C/fay",
        "gus": "D/gus.zip",
    }
    assert contents(by_id(found)["dan"]) == {"attention.py": "a"}
    assert found.unmatched == {"C/grades.csv": "neither a folder nor a zip"}


@pytest.mark.parametrize(
    "names",
    [
        ("{who}.zip",),
        ("{who}.zip", "{who} (1).zip", "{who} (2).zip"),
        ("{who}_v1.zip", "{who}_v2.zip"),
        ("hw3.zip", "{who}_report.zip"),
        ("{who}_hw3.zip", "{who}_hw3_final.zip"),
        ("{who}_attention.zip", "{who}_multi_head.zip", "{who}_block.zip"),
        ("attention.zip", "multi_head.zip", "block.zip"),
        ("{who}_hw3/attention.py", "{who}_hw3.zip"),
    ],
)
def test_a_students_uploads_are_no_section(tmp_path: Path, names: tuple[str, ...]) -> None:
    """One zip, several versions of one, a zip for each part, a zip and what came out of it."""
    files = {
        f"{who}/{name.format(who=who)}": zipped({"attention.py": "a"}) if name.endswith(".zip") else "a"
        for who in ("ann", "bob", "cy")
        for name in names
    }
    assert [entry.id for entry in export(tmp_path, files).entries] == ["ann", "bob", "cy"]


def test_students_with_two_versions_are_no_sections(tmp_path: Path) -> None:
    """The folders in theirs have the same names."""
    files = {f"{who}/{what}/attention.py": "" for who in ("ann", "bob", "cy") for what in ("hw3", "old")}
    assert [entry.id for entry in export(tmp_path, files).entries] == ["ann", "bob", "cy"]


def test_names_with_a_dot_in_front_are_told(tmp_path: Path) -> None:
    """Unless a system or a tool is known for them."""
    files = dict.fromkeys(
        ["ann/attention.py", ".bob/attention.py", ".git/x", ".DS_Store", "._ann", ".idea/x"], ""
    )
    found = export(tmp_path, files)
    assert [entry.id for entry in found.entries] == ["ann"]
    assert found.unmatched == {".bob": "its name begins with a dot"}


def test_another_version_of_what_is_there_is_told(tmp_path: Path) -> None:
    """Nobody has said which of them counts; a number is no version."""
    names = ("Bob Smith", "Bob Smith (resubmission)", "Bob Smith-2", "ann")
    entries = by_id(export(tmp_path, {f"{name}/attention.py": "" for name in names}))
    both = ("Bob Smith", "Bob Smith (resubmission)")
    assert [entries[name].named_like for name in names] == [both, both, (), ()]
    assert entries["Bob Smith"].notes == ("may be the same person's as Bob Smith (resubmission)",)


def test_names_that_would_be_one_file_stay_apart(tmp_path: Path) -> None:
    """Each gets an id of its own, and a note; the name that is really there stays that one's."""
    files = {
        "alice/attention.py": "folder",
        "alice.zip": zipped({"attention.py": "zip"}),
        "alice-2/attention.py": "another",
        "Bob/attention.py": "B",
        "bob/attention.py": "b",
        "Jose\u0301/attention.py": "two characters",
        "Jos\u00e9/attention.py": "one",
    }
    entries = by_id(export(tmp_path, files))
    assert {name: contents(entry)["attention.py"] for name, entry in entries.items()} == {
        "alice": "folder",
        "alice-2": "another",
        "alice-3": "zip",
        "Bob": "B",
        "bob-2": "b",
        "Jose\u0301": "two characters",
        "Jos\u00e9-2": "one",
    }
    assert entries["alice"].notes == ("named like alice.zip (alice-3): not merged",)
    assert entries["alice-3"].notes == ("named like alice (alice): not merged",)
    assert entries["alice-2"].notes == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Ana de la Cruz", "Ana de la Cruz"),
        ("a\tb\x00c\x7f\u202e\ud800", "a_b_c___"),
        ('a/b\\c:d*e?f"g<h>i|j', "a_b_c_d_e_f_g_h_i_j"),
        ("name. . ", "name"),
        ("...", "submission"),
        ("", "submission"),
        ("-rf", "_rf"),
        (".hidden", "_hidden"),
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("con .x", "_con .x"),
        ("com10", "com10"),
        ("console", "console"),
    ],
)
def test_ids_are_safe_file_names(name: str, expected: str) -> None:
    """On Linux, macOS and Windows."""
    assert safe(name) == expected


def test_ids_that_are_too_long(tmp_path: Path) -> None:
    """They are cut to what a file system takes, and still each its own."""
    names = ["界" * 80 + end for end in "ab"] + ["x" * 150 + end for end in "ab"]
    entries = [
        entry.id
        for entry in read_export(
            pack(tmp_path / "z.zip", {f"{name}/attention.py": "" for name in names}), FILES
        ).entries
    ]
    assert len(set(entries)) == 4
    assert all(len(name) <= MAX_CHARACTERS and len(name.encode()) <= MAX_BYTES for name in entries)


# --- one submission -------------------------------------------------------------------------------


def one(where: Path, files: exports.Files) -> Entry:
    """A download with one submission of these files."""
    download = {f"ann/{name}": data for name, data in files.items()} | {"bob/attention.py": ""}
    return by_id(export(where, download))["ann"]


SUBMISSIONS = {
    "a zip": ({"hw.zip": zipped({"attention.py": "a"})}, {"attention.py": "a"}),
    "a zip and a report": ({"hw.zip": zipped({"x/attention.py": "a"}), "r.pdf": ""}, {"x/attention.py": "a"}),
    "a zip beside files": (
        {"hw.zip": zipped({"multi_head.py": "m"}), "attention.py": "a"},
        {"attention.py": "a", "hw/multi_head.py": "m"},
    ),
    "a zip beside its folder": (
        {"hw.zip": zipped({"attention.py": "z"}), "hw/attention.py": "f"},
        {"hw-2/attention.py": "z", "hw/attention.py": "f"},
    ),
    "two zips": (
        {"a.zip": zipped({"attention.py": "a"}), "b.ZIP": zipped({"multi_head.py": "m"})},
        {"a/attention.py": "a", "b/multi_head.py": "m"},
    ),
    "a zip in a zip": ({"hw.zip": zipped({"in.zip": zipped({"attention.py": "a"})})}, {"attention.py": "a"}),
    "backslashes": ({"hw.zip": zipped({"hw3\\attention.py": "a"})}, {"hw3/attention.py": "a"}),
    "a broken zip beside files": ({"hw.zip": "PK", "attention.py": "a"}, {"attention.py": "a"}),
    "capitals": ({"ATTENTION.PY": "a"}, {"ATTENTION.PY": "a"}),
}


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_a_submission_may_hold_zips(tmp_path: Path, name: str) -> None:
    """Alone they are the submission; beside other files they count as unpacked to a folder of their name."""
    files, expected = SUBMISSIONS[name]
    assert contents(one(tmp_path, files)) == expected


THREE_DEEP = {"1.zip": zipped({"2.zip": zipped({"3.zip": zipped({"attention.py": "a"})})})}
NOTHING = {
    "empty": ({}, "got no file at all"),
    "a report": ({"report.pdf": ""}, "got report.pdf"),
    "a notebook": ({"hw3.ipynb": "{}"}, "got hw3.ipynb (a notebook: not graded)"),
    "an archive": ({"hw3.rar": ""}, "got hw3.rar (only zips are read: unpack it by hand)"),
    "other files": ({f"{n}.py": "" for n in range(7)}, "got 0.py, 1.py, 2.py, 3.py, 4.py, 2 more"),
    "a broken zip": ({"hw.zip": "PK"}, "got hw.zip (no intact zip: File is not a zip file)"),
    "a cut zip": ({"hw.zip": zipped(CODE)[:-30]}, "got hw.zip (no intact zip: File is not a zip file)"),
    "an empty zip": ({"hw.zip": zipped({})}, "got no file at all"),
    "a zip of a report": ({"hw.zip": zipped({"r.pdf": ""})}, "got r.pdf"),
    "too deep": (THREE_DEEP, "got 3.zip (a zip within a zip within a zip)"),
    "a hostile name": ({"\x1b[31m\u202e.pdf": ""}, "got �[31m�.pdf"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_nothing_to_grade_is_said_with_what_was_seen(tmp_path: Path, name: str) -> None:
    """Wanted and got, in one line."""
    files, expected = NOTHING[name]
    download = {f"ann/{path}": data for path, data in files.items()} | {"ann/": "", "bob/attention.py": ""}
    reason = str(read_or_reason(by_id(export(tmp_path, download))["ann"]))
    assert reason == f"the submission must hold one of attention.py, multi_head.py; {expected}"


def test_locked_zips_are_told(tmp_path: Path) -> None:
    """Nobody has the password."""
    data = bytearray(zipped({"attention.py": "a"}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    reason = read_or_reason(one(tmp_path, {"hw.zip": bytes(data)}))
    assert "got attention.py (it takes a password)" in str(reason)


def test_bombs_go_off_within_the_caps(tmp_path: Path) -> None:
    """One file, many files, zips in zips: each submission has its own caps, and a part is still found."""
    bomb = zipped({"bomb.py": b"\0" * (64 << 20), "attention.py": "a"})
    many = zipped({f"{n}.py": b" " * (1 << 20) for n in range(40)} | {"0/attention.py": "a"})
    nested = zipped({f"{n}.zip": bomb for n in range(12)})
    read = one(tmp_path, {"b.zip": bomb, "m.zip": many, "n.zip": nested}).read()
    assert read.files["b/attention.py"] == b"a"
    assert read.skipped["b/bomb.py"] == "too large"
    assert read.skipped["n/9.zip"] == "more than 10 zips"
    assert sum(map(len, read.files.values())) < 20 << 20


@pytest.mark.parametrize("entries", [100_001, 300_000])
def test_a_zip_of_far_too_many_entries_is_not_opened(tmp_path: Path, entries: int) -> None:
    """Some megabytes can hold millions; a table of contents that long is not even built."""
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("attention.py", "a")
        info = archive.infolist()[0]
        archive.filelist += [info] * entries
        archive._didModify = True  # type: ignore[attr-defined]
    reason = read_or_reason(one(tmp_path, {"hw.zip": (tmp_path / "z.zip").read_bytes()}))
    assert "hw.zip (a zip must have at most 100000 entries" in str(reason)


@pytest.mark.parametrize("inside", [False, True])
def test_what_is_installed_beside_a_part_costs_it_nothing(tmp_path: Path, inside: bool) -> None:
    """Environments are not looked into, under whatever name, and told; in a folder and in a zip."""
    kept = {"starter/attention.py": "a", "starter/multi_head.py": "m", "z.py": "z"}
    files = kept | {"A/pyvenv.cfg": "", "venv/attention.py": ""} | {f"data/{n}.csv": "" for n in range(999)}
    files |= {f"A/lib/{n}.py": "" for n in range(2100)}
    entry = one(tmp_path, {"hw.zip": zipped(files)} if inside else files)
    assert contents(entry) == kept
    assert entry.read().skipped == {"A": "installed packages", "venv": "installed packages"}


def test_an_environment_around_the_parts_is_the_submission(tmp_path: Path) -> None:
    """Some make it right where they work."""
    files = {"pyvenv.cfg": "", "attention.py": "a", "hw/pyvenv.cfg": "", "hw/multi_head.py": "m"}
    assert contents(one(tmp_path, files)) == {"attention.py": "a", "hw/multi_head.py": "m"}


def test_where_there_is_too_much_parts_come_first(tmp_path: Path) -> None:
    """Then what lies less deep."""
    files = {f"a/{n}.py": "" for n in range(2500)} | {"z/starter/multi_head.py": "m", "z.py": "z"}
    read = one(tmp_path, files).read()
    assert read.parts == {"multi_head": "z/starter/multi_head.py"}
    assert (len(read.files), read.files["z.py"]) == (2000, b"z")


def test_what_is_left_out_is_told_in_a_few_words(tmp_path: Path) -> None:
    """Zips in a zip can name files without end, each as long as one likes."""
    many = zipped({f"{'x' * 900}{n}.py": "" for n in range(300)})
    read = one(tmp_path, {f"{n}.zip": many for n in range(9)} | {"attention.py": ""}).read()
    assert list(read.files) == ["attention.py"]
    assert len(read.skipped) == 201
    assert read.skipped["and 2500 more"] == "left out, too"
    assert all(len(path) <= 500 for path in read.skipped)


def test_a_disk_that_fails_is_no_students_zero(tmp_path: Path) -> None:
    """Folders and files of the download that cannot be read are no `InputError`."""
    root = lay(tmp_path, {"ann/hw/attention.py": "a", "bob/attention.py": "b", "cy.zip": zipped(CODE)})
    entries = by_id(read_export(root, FILES))
    assert contents(entries["ann"]) == {"hw/attention.py": "a"}
    (root / "ann/hw/attention.py").unlink()
    (root / "bob").rename(root / "gone")
    (root / "cy.zip").unlink()
    for entry in entries.values():
        with pytest.raises(FileNotFoundError):
            entry.read()


def test_a_download_that_is_broken_is_no_students_zero(tmp_path: Path) -> None:
    """A part of the outer zip is staff's to mend; a zip that a student broke stays the student's."""
    content = {"ann/attention.py": "a" * 99, "bob/hw.zip": zipped(CODE), "cy/hw.zip": zipped(CODE)[:-30]}
    path = tmp_path / "class.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    path.write_bytes(path.read_bytes().replace(b"a" * 99, b"b" * 99).replace(b"utils.py", b"utilz.py", 1))
    entries = by_id(read_export(path, FILES))
    for name in ("ann", "bob"):
        with pytest.raises(OSError, match=rf"{name}/.*CRC"):
            entries[name].read()
    assert "no intact zip" in str(read_or_reason(entries["cy"]))


def test_a_download_with_a_password_is_no_students_zero(tmp_path: Path) -> None:
    """Whoever locked the whole can unlock it."""
    data = bytearray(zipped({"ann/attention.py": "a"}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "z.zip").write_bytes(data)
    with pytest.raises(OSError, match=r"ann/attention.py: it takes a password"):
        read_export(tmp_path / "z.zip", FILES).entries[0].read()


def greedy(files: exports.Files) -> bytes:
    """A zip that wants four gigabytes of memory for each file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    properties = re.compile(rb"(\x09\x04\x05\x00.)....", re.DOTALL)  # the last four bytes: how much memory
    return properties.sub(lambda found: found[1] + b"\xff" * 4, buffer.getvalue())


def test_a_zip_that_wants_all_memory_is_left_out(tmp_path: Path) -> None:
    """Where there is not so much: in a process that may have a gigabyte."""
    lay(tmp_path, {"ann/hw.zip": greedy({"multi_head.py": "m" * 99}), "ann/attention.py": "a"})
    code = (
        "import resource, sys; from pathlib import Path; from grader.ingest import read_export\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        f"print(read_export(Path(sys.argv[1]), {FILES}).entries[0].read().skipped)"
    )
    out = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert "it cannot be read: a zip that needs too much memory" in out.stdout


def test_zips_of_many_entries_each_are_too_many_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes behind the cap is not opened."""
    monkeypatch.setattr(ingest_contents, "MAX_ENTRIES", 10)
    many = zipped(dict.fromkeys("abcd", ""))
    read = one(tmp_path, {f"{n}.zip": many for n in range(5)} | {"attention.py": ""}).read()
    assert read.skipped == {
        "2.zip": "a submission's zips must have at most 10 entries, got more",
        "3.zip": "more than 10 entries in zips",
        "4.zip": "more than 10 entries in zips",
    }


def test_nothing_outside_of_the_download_is_read(tmp_path: Path) -> None:
    """Neither by links, devices nor paths, in a folder or a zip; what was not followed is told."""
    secret = tmp_path / "secret"
    lay(secret, {"attention.py": "secret"})
    root = lay(tmp_path / "class", {"ann/multi_head.py": "m", "bob/multi_head.py": "m"})
    os.symlink(secret, root / "eve")
    os.symlink(secret, root / "ann" / "up")
    os.symlink(secret / "attention.py", root / "ann" / "attention.py")
    os.mkfifo(root / "ann" / "utils.py")
    found = read_export(root, FILES)
    assert contents(found.entries[0]) == {"multi_head.py": "m"}
    assert found.entries[0].read().skipped == {
        "attention.py": "a link or a device",
        "utils.py": "a link or a device",
    }
    assert found.unmatched == {"eve": "a link or a device"}

    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        for name in ("ann/multi_head.py", "bob/x.py", "../evil/attention.py", "/evil/attention.py"):
            archive.writestr(name, "m")
        link = zipfile.ZipInfo("ann/attention.py")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(secret / "attention.py"))
    found = read_export(tmp_path / "class.zip", FILES)
    assert contents(found.entries[0]) == {"multi_head.py": "m"}
    assert set(found.unmatched.values()) == {"leads out of the zip"}
    assert len(found.entries) == len(found.unmatched) == 2


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    """A submission that is gone, or came later, is known when it is read."""
    root = lay(tmp_path, {"ann/attention.py": "a", "bob.zip": "not yet", "carl/": ""})
    found = read_export(root, FILES)
    pack(root / "bob.zip", CODE)
    (root / "ann" / "attention.py").unlink()
    assert contents(by_id(found)["bob"]) == CODE
    assert "no file at all" in str(read_or_reason(by_id(found)["ann"]))


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """A disk's bytes, and a zip's that do not say their encoding: every tool reads them its own way."""
    root = lay(tmp_path / "class", {"bob/attention.py": "b"})
    path = os.fsencode(root) + b"/jos\xe9"
    os.mkdir(path)
    Path(os.fsdecode(path + b"/attention.py")).write_text("a")
    found = read_export(root, FILES)
    assert [(entry.id, entry.source) for entry in found.entries] == [("bob", "bob"), ("jos_", "jos\ufffd")]

    data = zipped({"Josxx/attention.py": "a", "bob/attention.py": "b"})
    (tmp_path / "z.zip").write_bytes(data.replace(b"Josxx", "José".encode()))
    assert [entry.id for entry in read_export(tmp_path / "z.zip", FILES).entries] == ["José", "bob"]


def test_which_file_was_taken_is_told(tmp_path: Path) -> None:
    """Where it is called otherwise, or others mean the same: in a folder the name itself comes before copies."""
    files = one(tmp_path, {"hw/Attention (1).py": "a", "multi_head.py": "m", "multi_head-2.py": "c"}).read()
    assert taken(files, FILES) == (
        "attention.py: took hw/Attention (1).py",
        "multi_head.py: took multi_head.py, not multi_head-2.py",
    )


# --- the whole ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "layout", "reason"),
    [
        (None, "", r"got .*download \(no such path\)"),
        ({}, "", "must hold a folder or a zip per submission, got .* with nothing"),
        ({"attention.py": "a"}, "", "a folder or a zip per submission, got .* with attention.py"),
        ({"ann/attention.py": "a"}, "gradescope", "must have submission_metadata.yml, got ann"),
        ({"ann/attention.py": "a"}, "canvas", "must have files NAME_USER_ATTACHMENT_FILE, got ann"),
        ({"ann/attention.py": "a"}, "moodle", "must have names NAME_ID_assignsubmission_file, got ann"),
        ({"ann/attention.py": "a"}, "classroom", "must have folders SLUG-LOGIN, got ann"),
        ({"ann/attention.py": "a"}, "blackboard", "layout must be one of gradescope, canvas.*got blackboard"),
    ],
)
def test_what_is_no_download(tmp_path: Path, files: exports.Files | None, layout: str, reason: str) -> None:
    """Name, rule, got."""
    if files is not None:
        lay(tmp_path / "download", files)
    with pytest.raises(InputError, match=reason):
        read_export(tmp_path / "download", FILES, layout)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 not really", zipped(CODE)[:-40], b"Rar!"])
def test_a_file_that_is_no_zip(tmp_path: Path, data: bytes) -> None:
    """One line, whatever it is."""
    (tmp_path / "z.zip").write_bytes(data)
    with pytest.raises(InputError, match=r"got .*z\.zip"):
        read_export(tmp_path / "z.zip", FILES)


def test_another_layout_can_be_asked_for(tmp_path: Path) -> None:
    """A few files among many can be Canvas'; whatever it is can be read as folders."""
    files = {"x_1_2_attention.py": "a", "ann/attention.py": "a", "bob/attention.py": "a"}
    assert len(export(tmp_path / "1", files).entries) == 2
    assert [entry.id for entry in export(tmp_path / "2", files, "canvas").entries] == ["x_1"]
    download = exports.gradescope([(BOB, CODE)], top="")
    assert export(tmp_path / "3", download, "folders").entries[0].students == ()


def test_what_lies_beside_the_download_is_told(tmp_path: Path) -> None:
    """Staff keep their lists in the same folder."""
    files = exports.gradescope([(BOB, CODE)]) | {"scores.csv": ""}
    found = export(tmp_path, files)
    assert found.layout == "gradescope"
    assert found.unmatched == {"scores.csv": "beside the download"}


def test_a_path_may_be_written_in_any_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a slash at its end, or as the folder that one stands in."""
    lay(tmp_path, exports.classroom([(Student(lms_id="bob"), CODE)]))
    monkeypatch.chdir(tmp_path / "hw3-submissions")
    for path in (Path(f"{tmp_path}/hw3-submissions/"), Path(".")):
        assert read_export(path, FILES).layout == "classroom"


def test_a_large_class_is_found_in_a_moment(tmp_path: Path) -> None:
    """Three hundred submissions with long histories, in a zip that is larger than one submission may be."""
    students = [Student(f"S {number}", f"{number}@x", str(number)) for number in range(300)]
    files = exports.gradescope([(s, {f"f{n}.txt": "" for n in range(100)} | CODE) for s in students])
    path = pack(tmp_path / "z.zip", files)
    started = time.process_time()
    found = read_export(path, FILES)
    assert len(found.entries) == 300
    assert all(len(entry.read().files) == 3 for entry in found.entries)
    assert time.process_time() - started < 10


def test_endless_folders(tmp_path: Path) -> None:
    """Paths that go down forever cost nothing; what lies too deep is not read."""
    deep = "a/" * 30_000
    files = {"ann/attention.py": "a", "bob/x.zip": zipped({f"{deep}{n}.py": "" for n in range(9)})}
    found = read_export(pack(tmp_path / "z.zip", files | {f"{deep}attention.py": ""}), FILES)
    assert [entry.id for entry in found.entries] == ["ann", "bob"]
    assert "got no file at all" in str(read_or_reason(found.entries[1]))
    only = read_export(lay(tmp_path / "d", {"a/" * 100 + "attention.py": ""}), FILES)
    assert "got no file at all" in str(read_or_reason(only.entries[0]))
