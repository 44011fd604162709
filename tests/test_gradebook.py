"""A gradebook gets points in the right cells, and nothing else changes."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.gradebook import Filled, Gradebook, gradescope_rows, number, read_gradebook, shown
from grader.ingest import Entry, Student, read_export
from grader.intake import InputError, SubmissionFiles
from grader.marks import GRADED, GRADER_ERROR, WAITING, Mark
from tests import exports
from tests.exports import ANA, BOB, ZOE

CLASS = (BOB, ANA, ZOE)
TITLE = "HW3: Transformer from scratch"


def unread() -> SubmissionFiles:
    """A gradebook needs no files."""
    raise AssertionError


def mark(score: Any, *students: Student, name: str = "", source: str = "", status: str = GRADED) -> Mark:
    """A submission with this score of 100."""
    name = name or "-".join(student.name or student.lms_id for student in students)
    document = {"score": score, "extra_data": {"max_score": 100}}
    return Mark(Entry(name, source or name, students, unread), status, document if score is not None else {})


def book(where: Path, text: str) -> Gradebook:
    """Read a gradebook of this text."""
    path = where / "gradebook.csv"
    path.write_bytes(text.encode())
    return read_gradebook(path)


def cells(text: str, name: str, delimiter: str = ",") -> list[str]:
    """A column of a filled gradebook."""
    rows = csv.DictReader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=delimiter)
    return [row[name] for row in rows]


def canvas(where: Path, *marks: Mark, layout: str = "canvas", **options: Any) -> tuple[list[str], Filled]:
    """What Canvas' gradebook has for three students then."""
    filled = book(where, exports.canvas_gradebook(CLASS, "HW3 (77)")).fill(marks, layout=layout, **options)
    return cells(filled.text, "HW3 (77)")[2:5], filled


# --- formats --------------------------------------------------------------------------------------

BOOKS = {
    "canvas": exports.canvas_gradebook(CLASS, "HW3 (77)"),
    "moodle": exports.moodle_worksheet(CLASS),
    "gradescope": exports.gradescope_scores(CLASS),
    "classroom": exports.classroom_grades(CLASS),
}
POINTS = {"canvas": "HW3 (77)", "moodle": "Grade", "gradescope": "Total Score", "classroom": "points_awarded"}


@pytest.mark.parametrize("kind", BOOKS)
def test_a_gradebook_is_recognised_and_filled(tmp_path: Path, kind: str) -> None:
    """Points go to the rows of those who handed in; the others are missing, Canvas' test student never."""
    gradebook = book(tmp_path, BOOKS[kind])
    filled = gradebook.fill([mark(72.5, BOB), mark(0, ZOE)], layout=kind)
    assert gradebook.kind == kind
    assert len(gradebook.students) == 3
    before, after = cells(BOOKS[kind], POINTS[kind]), cells(filled.text, POINTS[kind])
    rows = {"canvas": (2, 3, 4)}.get(kind, (0, 1, 2))
    assert [after[row] for row in rows] == ["72.5", before[rows[1]], "0"]
    assert filled.missing == (gradebook.students[1],)
    assert not filled.unmatched
    assert not filled.notes


@pytest.mark.parametrize("kind", BOOKS)
def test_all_but_the_points_stays_as_it_was(tmp_path: Path, kind: str) -> None:
    """Byte for byte: quotes, line ends, byte order mark, formulas, rows that are about no student."""
    text = BOOKS[kind]
    assert book(tmp_path, text).fill([], layout=kind).text == text
    filled = book(tmp_path, text).fill([mark(72.5, ANA)], layout=kind).text
    pairs = list(zip(filled.split("\n"), text.split("\n"), strict=True))
    ((new, old),) = [(new, old) for new, old in pairs if new != old]
    changed = [a for a, b in zip(new.split(","), old.split(","), strict=True) if a != b]
    assert changed in (["72.5"], ["72.5", "100"])


@pytest.mark.parametrize(
    "text",
    [
        '\ufeffIdentifier,Grade,"a ""b""\r\nc"\r\n\r\n"Participant 1", ,=1+1,extra\r\n"Participant 2"',
        'Identifier;Grade;x\rParticipant 1;"";5"\rParticipant 2;;"no end\r',
        "Identifier\tGrade\nParticipant 1\t\n\n\n",
        'Identifier,Grade,x\nParticipant 1,,"a"b,"c\n',
        "Identifier,Grade",
    ],
)
def test_odd_files_stay_as_they_were(tmp_path: Path, text: str) -> None:
    """Whatever the delimiter, line ends and quotes; a row may be shorter than the others."""
    assert book(tmp_path, text).fill([]).text == text
    filled = book(tmp_path, text).fill([mark(7, Student(lms_id="1")), mark(8.5, Student(lms_id="2"))])
    assert set(filled.text) - set(text) <= set(',;"78.5')
    assert filled.text.count("7") == filled.text.count("Participant 1")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "with nothing"),
        (b"Name,Points\nBob,3\n", r"one of \[canvas: ID, SIS Login ID, Section; .*with Name,Points"),
        ("Student,ID".encode("utf-16"), "must be CSV in UTF-8"),
        (b"PK\x03\x04\xff\xff", "must be CSV in UTF-8"),
    ],
)
def test_what_is_no_gradebook(tmp_path: Path, data: bytes, reason: str) -> None:
    """It says which columns it looks for."""
    (tmp_path / "x.csv").write_bytes(data)
    with pytest.raises(InputError, match=reason):
        read_gradebook(tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"must be readable, got .*nowhere\.csv"):
        read_gradebook(tmp_path / "nowhere.csv")


# --- who is who -----------------------------------------------------------------------------------


def test_gradescopes_students_are_found_in_canvas(tmp_path: Path) -> None:
    """By student number, whose zeros a spreadsheet may have taken, by login or by address."""
    by_sid = Student("Robert S.", "other@example.edu", "123")
    by_login = Student("A. Cruz", "", "ANA")
    column, filled = canvas(tmp_path, mark(1, by_sid), mark(2, by_login), layout="gradescope")
    assert column == ["1", "2", ""]
    assert not filled.unmatched


def test_a_name_alone_counts_only_where_nothing_speaks_against_it(tmp_path: Path) -> None:
    """In whatever order its words are; not if the student number is another one."""
    column, filled = canvas(
        tmp_path, mark(1, Student("Smith Bob")), mark(2, Student(ANA.name, sid="9")), layout="gradescope"
    )
    assert column == ["1", "", ""]
    assert filled.unmatched == (("Ana de la Cruz", "only the name fits a row: Ana de la Cruz, 9"),)


def test_two_of_one_name_are_not_told_apart_by_it(tmp_path: Path) -> None:
    """Neither gets the points."""
    text = exports.canvas_gradebook([BOB, Student(BOB.name, lms_id="5", sid="6")], "HW3 (77)")
    filled = book(tmp_path, text).fill([mark(1, Student(BOB.name))], layout="folders")
    assert filled.text == text
    assert filled.unmatched == ((BOB.name, "2 rows fit Bob Smith"),)


def test_one_systems_numbers_mean_nothing_in_another_ones(tmp_path: Path) -> None:
    """A participant of Moodle's with the number of somebody in Canvas is not that one."""
    stranger = mark(1, Student("Eve Li", lms_id=BOB.lms_id))
    for layout in ("moodle", ""):
        column, filled = canvas(tmp_path, stranger, layout=layout)
        assert column == ["", "", ""]
        assert len(filled.unmatched) == 1


def test_moodles_numbers_of_another_assignment_are_noticed(tmp_path: Path) -> None:
    """Participants are counted anew in each; the name tells, in blind marking there is none."""
    gradebook = book(tmp_path, BOOKS["moodle"])
    other = mark(1, Student("Zoe ONeillMuller", lms_id=BOB.lms_id))
    blind = mark(2, Student(lms_id=ANA.lms_id))
    same = mark(3, Student("Zoë ONeill Müller", lms_id=ZOE.lms_id), name="zoe")
    filled = gradebook.fill([other, blind, same], layout="moodle")
    assert cells(filled.text, "Grade") == ["", "2", "3"]
    assert [reason for _, reason in filled.unmatched] == [
        "number 340934 is Bob Smith in the gradebook, Zoe ONeillMuller in the download"
    ]


def test_a_number_that_is_not_there_is_not_looked_for_by_name(tmp_path: Path) -> None:
    """The system itself says that it is somebody else."""
    column, filled = canvas(tmp_path, mark(1, Student(BOB.name, lms_id="5")))
    assert column == ["", "", ""]
    assert filled.unmatched == ((BOB.name, "no rows have the number 5"),)


def test_two_submissions_for_one_row_fill_it_not(tmp_path: Path) -> None:
    """Which of them counts is for staff to say; the student is not missing."""
    column, filled = canvas(tmp_path, mark(1, BOB, name="a"), mark(2, BOB, name="b"), mark(3, ANA))
    assert column == ["", "3", ""]
    assert filled.unmatched == (
        ("a", "its row is also that of b: not filled"),
        ("b", "its row is also that of a: not filled"),
    )
    assert [student.lms_id for student in filled.missing] == [ZOE.lms_id]


def test_all_of_a_group_get_the_points(tmp_path: Path) -> None:
    """Who is not in the gradebook is told, the others get theirs."""
    column, filled = canvas(
        tmp_path, mark(9, BOB, ZOE, Student("Eve", "eve@x", "7"), name="g"), layout="gradescope"
    )
    assert column == ["9", "", "9"]
    assert filled.unmatched == (("g", "no rows fit Eve, eve@x, 7"),)


def test_a_submission_is_all_rows_that_name_it(tmp_path: Path) -> None:
    """Gradescope's number, Classroom's repository, Moodle's team; unless they are surely somebody else's."""
    scores = exports.gradescope_scores(CLASS).replace(",102,", ",101,")
    mine = mark(9, Student("?"), name="submission_101", source="x/submission_101")
    filled = book(tmp_path, scores).fill([mine], layout="gradescope")
    assert cells(filled.text, "Total Score") == ["9", "9", ""]

    other = mark(9, ZOE, name="submission_101", source="x/submission_101")
    filled = book(tmp_path, scores).fill([other], layout="gradescope")
    assert cells(filled.text, "Total Score") == ["", "", "9"]

    team = mark(9, Student(lms_id="team"), name="hw3-team", source="hw3-submissions/hw3-team")
    filled = book(tmp_path, exports.classroom_grades(CLASS, group="team")).fill([team], layout="classroom")
    assert cells(filled.text, "points_awarded") == ["9", "9", "9"]

    worksheet = "Identifier,Full name,Group,Grade\n"
    worksheet += "Participant 1,Bo,A_1,\nParticipant 2,Cy,A_1,\nParticipant 3,Di,B,\n"
    filled = book(tmp_path, worksheet).fill([mark(9, Student("A 1", lms_id="3"))], layout="moodle")
    assert cells(filled.text, "Grade") == ["9", "9", ""]


TEAMS = "Identifier,Full name,Group,Grade\nParticipant 1,Bo,Team 11,\nParticipant 2,Cy,Team 1 1,\n"


def test_names_that_differ_in_marks_alone_are_two(tmp_path: Path) -> None:
    """A repository's and a team's name count as they stand, but for their case."""
    students = [Student(lms_id="ann-b"), Student(lms_id="annb")]
    annb = mark(9, students[1], name="hw3-annb", source="x/HW3-annb")
    filled = book(tmp_path, exports.classroom_grades(students)).fill([annb], layout="classroom")
    assert cells(filled.text, "points_awarded") == ["0", "9"]

    filled = book(tmp_path, TEAMS).fill([mark(9, Student("Team 11", lms_id="8"))], layout="moodle")
    assert cells(filled.text, "Grade") == ["9", ""]


def test_a_team_that_is_spelt_otherwise_must_be_the_only_one(tmp_path: Path) -> None:
    """In the gradebook and in the download; else nobody gets the points, and nobody is missing."""
    for teams in (["Team_11"], ["Team_1 1", "Team1 1"]):
        text = TEAMS if len(teams) == 1 else TEAMS.replace("Team 1 1", "B")
        marks = [mark(9, Student(team, lms_id=str(number))) for number, team in enumerate(teams, 8)]
        filled = book(tmp_path, text).fill(marks, layout="moodle")
        assert filled.text == text
        assert all("only without spaces and marks" in reason for _, reason in filled.unmatched)
        assert len(filled.unmatched) == len(teams)
        assert [student.name for student in filled.missing] == (["Cy"] if len(teams) > 1 else [])


@pytest.mark.parametrize("name", ["smithbob", "smithbobby", "mullersmith", "bobobrien"])
def test_canvas_names_may_have_changed(tmp_path: Path, name: str) -> None:
    """One word in common is enough, with its accents or without."""
    text = exports.canvas_gradebook([Student("Bob Müller Smith", lms_id="1")], "HW3 (77)")
    filled = book(tmp_path, text).fill([mark(9, Student(name, lms_id="1"))], layout="canvas")
    assert cells(filled.text, "HW3 (77)")[2] == "9"
    assert not filled.notes


@pytest.mark.parametrize("name", ["delacruzana", "oneillmüllerzoë", "smithbobdelacruzana"])
def test_a_canvas_number_of_somebody_elses_is_noticed(tmp_path: Path, name: str) -> None:
    """If the name is another one's in the gradebook, neither gets the points, and neither is missing."""
    column, filled = canvas(tmp_path, mark(9, Student(name, lms_id=BOB.lms_id), name="x"))
    both = name.startswith("smithbob")
    assert column == (["9", "", ""] if both else ["", "", ""])
    if not both:
        reason = f"number 340934 is Smith, Bob in the gradebook, {name} in the download"
        assert filled.unmatched == (("x", reason),)
        assert len(filled.missing) == 1


def test_of_a_group_in_canvas_one_is_known(tmp_path: Path) -> None:
    """That one gets the points, and staff are told of the others; not where a name could be read otherwise."""
    team = mark(9, Student("teamrocket", lms_id=BOB.lms_id), name="t")
    column, filled = canvas(tmp_path, team)
    assert column == ["9", "", ""]
    assert filled.notes == (
        "t: looks like a group's: its other members are not known from a Canvas download; enter theirs by hand",
    )
    unsure = Mark(replace(team.entry, guessed=True), GRADED, team.document)
    assert canvas(tmp_path, unsure)[0] == ["", "", ""]


def test_several_submissions_of_one_name_fill_nothing(tmp_path: Path) -> None:
    """A folder and a zip of the same name, or another version."""
    download = exports.lay(
        tmp_path / "d", {"Bob Smith/attention.py": "", "Ana de la Cruz (late)/attention.py": ""}
    )
    exports.pack(download / "bob smith.zip", {"attention.py": ""})
    exports.lay(download, {"Ana de la Cruz/attention.py": "", "Zoë O'Neill-Müller/attention.py": ""})
    entries = read_export(download, {"attention": "attention.py"}).entries
    column, filled = canvas(tmp_path, *(Mark(e, GRADED, {"score": 9}) for e in entries), layout="folders")
    assert column == ["", "", "9"]
    assert len(filled.unmatched) == 4
    assert all("goes by the same name: not filled" in reason for _, reason in filled.unmatched)
    assert not filled.missing


def test_a_folder_that_names_two_students_fills_nothing(tmp_path: Path) -> None:
    """One by the number of a submission, one by the student's."""
    text = exports.gradescope_scores([Student("Ann A", sid="1001"), Student("Bob B", sid="1002")])
    filled = book(tmp_path, text.replace(",102,2026", ",1001,2026")).fill([mark(9, name="1001")])
    assert cells(filled.text, "Total Score") == ["", ""]
    assert filled.unmatched == (("1001", "1001 may name more than one"),)
    assert not filled.missing


@pytest.mark.parametrize(
    ("logins", "points"),
    [(["ann", "uni-ann"], ["0", "0"]), (["uni-ann", "nn"], ["9", "0"]), (["ann"], ["9"])],
)
def test_a_login_that_is_a_guess_must_be_the_only_one(
    tmp_path: Path, logins: list[str], points: list[str]
) -> None:
    """Where nothing says what comes before it in a repository's name."""
    text = exports.classroom_grades([Student(lms_id=login) for login in logins])
    for login in logins:
        text = text.replace(f",hw3-{login},", ",,")
    entry = replace(mark(9, Student(lms_id="ann"), name="hw3-uni-ann").entry, guessed=True)
    filled = book(tmp_path, text).fill([Mark(entry, GRADED, {"score": 9})], layout="classroom")
    assert cells(filled.text, "points_awarded") == points
    assert "ann" not in {student.lms_id for student in filled.missing}
    assert len(filled.unmatched) == (len(logins) == 2 and "ann" in logins)


def test_who_may_have_handed_in_is_not_missing(tmp_path: Path) -> None:
    """Two rows of one number, a number and a name of two rows, a name with another number."""
    text = exports.moodle_worksheet([BOB, replace(ANA, lms_id=BOB.lms_id), ZOE])
    filled = book(tmp_path, text).fill([mark(9, BOB, name="b")], layout="moodle")
    assert (filled.unmatched, filled.missing[0].name) == (
        (("b", "2 rows have the number 340934"),),
        ZOE.name,
    )
    text = exports.moodle_worksheet(CLASS)
    filled = book(tmp_path, text).fill([mark(9, replace(BOB, lms_id=ANA.lms_id))], layout="moodle")
    assert (filled.text, [student.name for student in filled.missing]) == (text, [ZOE.name])
    _, filled = canvas(tmp_path, mark(1, Student("smithbob", lms_id="5")))
    assert BOB.lms_id not in {student.lms_id for student in filled.missing}


@pytest.mark.parametrize("name", ["bob", "00123", "123", "Bob Smith", "Smith, Bob"])
def test_folders_are_called_by_anything_that_names_a_student(tmp_path: Path, name: str) -> None:
    """A login, a number, a name."""
    column, filled = canvas(tmp_path, mark(5, name=name), layout="folders")
    assert (column, filled.unmatched) == (["5", "", ""], ())


# --- what is written ------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [GRADER_ERROR, WAITING])
def test_what_is_not_final_is_not_entered(tmp_path: Path, status: str) -> None:
    """The cell stays, the student is not missing, and it is told."""
    column, filled = canvas(tmp_path, mark(40, BOB, name="bob", status=status))
    assert column == ["", "", ""]
    assert filled.notes == (f"bob: not entered: {status}",)
    assert len(filled.missing) == 2


@pytest.mark.parametrize("score", [None, float("nan"), "=1+1", True])
def test_only_numbers_are_entered(tmp_path: Path, score: Any) -> None:
    """Whatever a result has."""
    column, filled = canvas(tmp_path, mark(score, BOB, name="bob"))
    assert column == ["", "", ""]
    assert filled.notes == ("bob: not entered: there is no score",)


def test_points_as_they_are_and_as_shares(tmp_path: Path) -> None:
    """Another maximum is told, or scaled to."""
    text = exports.canvas_gradebook(CLASS, "HW3 (77)", points="50.00")
    as_they_are = book(tmp_path, text).fill([mark(72.5, BOB)], layout="canvas")
    assert "72.5" in cells(as_they_are.text, "HW3 (77)")
    assert as_they_are.notes == ("the gradebook has 50 points possible, the assignment 100",)
    shares = book(tmp_path, text).fill([mark(72.5, BOB)], scale=True, layout="canvas")
    assert cells(shares.text, "HW3 (77)")[2] == "36.25"
    assert not shares.notes
    nothing = book(tmp_path, text.replace("50.00", "")).fill(
        [mark(7, BOB, name="b")], scale=True, layout="canvas"
    )
    assert nothing.notes == ("b: not entered: no number of points to scale to",)
    scores = book(tmp_path, exports.gradescope_scores(CLASS).replace("100.0", "20"))
    assert cells(scores.fill([mark(72.5, BOB)]).text, "Max Points") == ["100", "20", "20"]
    scaled = scores.fill([mark(72.5, BOB)], scale=True).text
    assert (cells(scaled, "Total Score")[0], cells(scaled, "Max Points")[0]) == ("14.5", "20")


def test_decimal_commas_are_kept(tmp_path: Path) -> None:
    """A file that writes 100,00 gets 72,5, in quotes where a comma parts cells."""
    moodle = exports.moodle_worksheet(CLASS, "100,00", ";")
    assert ";72,5;100,00;" in book(tmp_path, moodle).fill([mark(72.5, BOB)]).text
    canvas_text = exports.canvas_gradebook(CLASS, "HW3 (77)", points="100,00")
    assert ',"72,5",' in book(tmp_path, canvas_text).fill([mark(72.5, BOB)]).text


def test_cells_that_staff_closed_stay(tmp_path: Path) -> None:
    """Moodle's locked grades, Canvas' excused students; it is told."""
    locked = exports.moodle_worksheet(CLASS).replace("Yes", "No", 1)
    filled = book(tmp_path, locked).fill([mark(7, BOB, name="b"), mark(8, ANA)], layout="moodle")
    assert cells(filled.text, "Grade") == ["", "8", ""]
    assert filled.notes == ("b: not entered: the gradebook says that the grade cannot be changed",)
    excused = exports.canvas_gradebook(CLASS, "HW3 (77)").replace("CS 1,,", "CS 1,EX,", 1)
    filled = book(tmp_path, excused).fill([mark(7, BOB, name="b")], layout="canvas")
    assert filled.text == excused
    assert filled.notes == ("b: not entered: the gradebook has EX",)


# --- Canvas' columns ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("titles", "column", "title", "chosen"),
    [
        (["HW2 (1)", "HW3 (2)"], "HW3", "", "HW3 (2)"),
        (["HW2 (1)", "HW3 (2)"], "hw2 (1)", TITLE, "HW2 (1)"),
        (["HW (3) (1)", "HW (2)"], "HW (3)", "", "HW (3) (1)"),
        (["Anything (1)"], "", "", "Anything (1)"),
        (["HW3 (1)"], "", TITLE, "HW3 (1)"),
        (["HW2 (1)", "HW 3 (2)", "HW33 (3)"], "", TITLE, "HW 3 (2)"),
        (["HW3: Transformer, from scratch (coding part) (1)", "Quiz (2)"], "", TITLE, None),
        (["hw3 - transformer from scratch (1)", "HW3 (2)"], "", TITLE, "hw3 - transformer from scratch (1)"),
    ],
)
def test_the_column_is_named_or_known_by_its_title(
    tmp_path: Path, titles: list[str], column: str, title: str, chosen: str | None
) -> None:
    """With its number or without; by the assignment's title, or its beginning."""
    gradebook = book(tmp_path, exports.canvas_gradebook(CLASS, *titles))
    text = gradebook.fill([mark(7, BOB)], column, title=title).text
    filled = [name for name in titles if "7" in cells(text, name)]
    assert filled == [chosen or titles[0]]


@pytest.mark.parametrize("column", ["", "HW9", "Final Score", "HW3", "Section"])
def test_a_column_that_is_not_clear(tmp_path: Path, column: str) -> None:
    """All that it could be are listed; no column but an assignment's is ever filled."""
    gradebook = book(tmp_path, exports.canvas_gradebook(CLASS, "HW3 (1)", "HW3 (2)"))
    with pytest.raises(InputError, match=r"must be one of: HW3 \(1\), HW3 \(2\); got"):
        gradebook.fill([mark(7, BOB)], column, title="Homework")


@pytest.mark.parametrize("only", ["HW30 (12)", "Midterm exam (12)", "HW3 quiz (1)"])
def test_the_only_column_must_be_called_as_the_assignment_is(tmp_path: Path, only: str) -> None:
    """Or be named: the points of another assignment would be gone."""
    gradebook = book(tmp_path, exports.canvas_gradebook(CLASS, only))
    with pytest.raises(InputError, match=rf"must be one of: {re.escape(only)}; got no name of one, and 'HW3"):
        gradebook.fill([mark(7, BOB)], title=TITLE)
    assert "7" in cells(gradebook.fill([mark(7, BOB)], only, title=TITLE).text, only)


def test_what_is_told_of_names_is_one_line(tmp_path: Path) -> None:
    """A gradebook's names are students' own, too."""
    text = exports.moodle_worksheet([replace(BOB, name="Bob\x1b[31m\nSmith")])
    filled = book(tmp_path, text).fill([mark(9, Student("Eve", lms_id=BOB.lms_id))], layout="moodle")
    assert len(filled.unmatched) == 1
    assert all(reason.isprintable() for _, reason in filled.unmatched)


def test_other_gradebooks_have_one_column(tmp_path: Path) -> None:
    """Another one is not filled."""
    gradebook = book(tmp_path, BOOKS["moodle"])
    assert "7" in cells(gradebook.fill([mark(7, BOB)], "grade").text, "Grade")
    with pytest.raises(InputError, match="column of a moodle gradebook must be Grade, got Feedback comments"):
        gradebook.fill([mark(7, BOB)], "Feedback comments")


# --- without a gradebook --------------------------------------------------------------------------


def test_gradescopes_columns_where_there_is_no_gradebook() -> None:
    """A row per student; nothing that a student named becomes a formula."""
    evil = Student('=HYPERLINK("x") y', "@SUM(A1)", "-5", "")
    marks = [mark(72.5, BOB, evil, name="submission_7"), mark(1, name="+x"), mark(5, ANA, status=WAITING)]
    rows = list(csv.DictReader(io.StringIO(gradescope_rows(marks))))
    assert ",".join(rows[0]) == exports.gradescope_scores([]).strip()
    assert [row["Total Score"] for row in rows] == ["72.5", "72.5", "1", ""]
    assert [row["Status"] for row in rows] == ["Graded", "Graded", "Graded", "Ungraded"]
    assert (rows[0]["First Name"], rows[0]["Last Name"], rows[0]["SID"]) == ("Bob", "Smith", "00123")
    assert (rows[1]["First Name"], rows[1]["Email"], rows[1]["SID"]) == (
        '\'=HYPERLINK("x")',
        "'@SUM(A1)",
        "'-5",
    )
    assert (rows[2]["First Name"], rows[2]["Submission ID"]) == ("'+x", "'+x")


@pytest.mark.parametrize(
    ("text", "value"),
    [("100", 100), (" 100.00 ", 100), ("72,5", 72.5), ("1,000.5", 1000.5), ("", None), ("(read only)", None)],
)
def test_numbers_as_gradebooks_write_them(text: str, value: float | None) -> None:
    """Points and commas; anything else is none."""
    assert number(text) == value


@pytest.mark.parametrize(
    ("value", "text"), [(100.0, "100"), (0.1 + 0.2, "0.3"), (-0.0, "0"), (2 / 3, "0.6667")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    """No more decimals than needed, at most four."""
    assert shown(value) == text


FIT = [
    *(("gradescope", kind) for kind in BOOKS),
    ("canvas", "canvas"),
    *(("moodle", kind) for kind in ("moodle", "canvas", "gradescope")),
    ("classroom", "classroom"),
]


@pytest.mark.parametrize(("layout", "kind"), FIT)
def test_downloads_and_gradebooks_as_they_go_together(tmp_path: Path, layout: str, kind: str) -> None:
    """Each student's points arrive in that one's row, also from one system in another one's."""
    build = {
        "gradescope": exports.gradescope,
        "canvas": exports.canvas,
        "moodle": exports.moodle,
        "classroom": exports.classroom,
    }
    handed = [(student, {"attention.py": student.name}) for student in reversed(CLASS)]
    found = read_export(exports.lay(tmp_path / "d", build[layout](handed)), {"attention": "attention.py"})
    points = {BOB.name: 1, ANA.name: 2, ZOE.name: 3}
    marks = [
        Mark(e, GRADED, {"score": points[e.read().files["attention.py"].decode()]}) for e in found.entries
    ]
    filled = book(tmp_path, BOOKS[kind]).fill(marks, layout=found.layout)
    assert [cell for cell in cells(filled.text, POINTS[kind]) if cell in ("1", "2", "3")] == ["1", "2", "3"]
    assert (filled.missing, filled.unmatched, filled.notes) == ((), (), ())
