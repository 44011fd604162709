"""Staff's word is last: read strictly, applied on top, what the grader found is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grader import report
from grader.assignment import Assignment
from grader.intake import InputError
from grader.marks import Override
from grader.overrides import applied, read_overrides

HEADER = "submission,part or check,points,reason\n"


@pytest.fixture
def nothing(assignment: Assignment) -> dict[str, Any]:
    """A result of 0 points."""
    return report.nothing_gradable(assignment, "a PDF")


def read(folder: Path, assignment: Assignment, text: str) -> list[Override]:
    """The overrides that a file says, for `ann` and `bob`."""
    path = folder / "overrides.csv"
    path.write_text(text, encoding="utf-8")
    return read_overrides(path, assignment, {"ann", "bob", "=1"})


def test_no_file_says_nothing(tmp_path: Path, assignment: Assignment) -> None:
    """Most classes have none."""
    assert read_overrides(tmp_path / "overrides.csv", assignment, set()) == []


def test_parts_checks_and_the_total(tmp_path: Path, assignment: Assignment) -> None:
    """A line names a part, a check by id or number, or the whole; empty lines are none."""
    check = assignment.numbers["block.together"]
    assert f"{check}0" not in assignment.numbers.values()
    text = f"ann,attention,12,agreed\n\nann,block.together,0.5,typo\nbob,total,50,late drop\nbob,{check},0.5,why\n"
    assert read(tmp_path, assignment, HEADER + text) == [
        Override("ann", "attention", 12, "agreed"),
        Override("ann", "block.together", 0.5, "typo"),
        Override("bob", "total", 50, "late drop"),
        Override("bob", "block.together", 0.5, "why"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffsubmission;part_or_check;points;reason\nann;attention;1,5;agreed\n",
        "Submission,Check,Part,Points,Reason\nann,,attention,1.5,agreed\n",
        "reason,points,submission,part\nagreed,1.5,ann,attention\n",
    ],
)
def test_as_spreadsheets_save_it(tmp_path: Path, assignment: Assignment, text: str) -> None:
    """Semicolons, a byte order mark, decimal commas, columns in another order."""
    assert read(tmp_path, assignment, text) == [Override("ann", "attention", 1.5, "agreed")]


def test_an_id_as_scores_shows_it(tmp_path: Path, assignment: Assignment) -> None:
    """With the apostrophe that keeps a spreadsheet from computing it."""
    assert read(tmp_path, assignment, HEADER + "'=1,total,5,why\n")[0].submission == "=1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("zoe,attention,1,why", "line 2: the submission must be one in `scores.csv`, got 'zoe'"),
        ("ann,attentoin,1,why", "line 2: it must name one part, one check, or total, got attentoin"),
        ("ann,,1,why", "got nothing"),
        ("ann,attention,much,why", "points must be a number from 0 to 30, got 'much'"),
        ("ann,attention,-1,why", "points must be a number from 0 to 30, got '-1'"),
        ("ann,attention,31,why", "points must be a number from 0 to 30, got '31'"),
        ("ann,attention.shapes,600,why", "points must be a number from 0 to 1, got '600'"),
        ('ann,total,"1,000",why', "points must be a number from 0, got '1,000'"),
        ("ann,total,1_0,why", "got '1_0'"),
        ("ann,2.1,1,why", "a spreadsheet may have made 2.1 of 2.10; name the check by its id"),
        ("ann,total,1,5,half", "line 2: a line must have 4 cells, got 5"),
        ('ann,total,60,"late\nbob,total,70,ok', "must be a CSV file"),
        ("ann,attention,nan,why", "got 'nan'"),
        ("ann,attention,,why", "got ''"),
        ("ann,attention,1,", "there must be a reason, got none"),
        ("ann,attention,1,why\nann,attention,2,why", "line 3: each must be set once, got attention again"),
    ],
)
def test_a_line_that_would_be_lost_is_refused(
    tmp_path: Path, assignment: Assignment, text: str, says: str
) -> None:
    """By name, rule, got, and the line it stands in."""
    with pytest.raises(InputError) as refused:
        read(tmp_path, assignment, HEADER + text + "\n")
    assert says in str(refused.value)


def test_all_lines_with_something_wrong_are_told_at_once(tmp_path: Path, assignment: Assignment) -> None:
    """Who has made a dozen mistakes does not run a dozen times."""
    with pytest.raises(InputError) as caught:
        read(tmp_path, assignment, HEADER + "zoe,total,1,why\nann,total,2,why\nann,total,x,why\n" * 5)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'overrides.csv'}, line 2: the submission must be one in")
    assert "; line 4: points must be a number from 0, got 'x'; line 5: " in message
    assert message.endswith("; and 4 more")


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"\x00\x01", b'submission,part,points,reason\n"' + b"x" * 200_000]
)
def test_what_is_no_csv_is_refused(tmp_path: Path, assignment: Assignment, data: bytes) -> None:
    """In one sentence."""
    path = tmp_path / "overrides.csv"
    path.write_bytes(data)
    with pytest.raises(InputError, match="must"):
        read_overrides(path, assignment, {"ann"})


@pytest.mark.parametrize("text", ["", "submission,points\nann,1\n"])
def test_other_columns_are_refused(tmp_path: Path, assignment: Assignment, text: str) -> None:
    """And the ones that must be there are named."""
    with pytest.raises(InputError, match="must have the columns submission, part or check, points, reason"):
        read(tmp_path, assignment, text)


def test_a_check_counts_in_its_part_and_the_total(nothing: dict[str, Any]) -> None:
    """What the grader had found stands beside it."""
    found = applied(nothing, [Override("ann", "attention.shapes", 1, "why")])
    assert (found["score"], found["extra_data"]["parts"]["attention"]["score"]) == (1, 1)
    row = next(test for test in found["tests"] if test["extra_data"]["check"] == "attention.shapes")
    assert row["score"] == 1
    assert row["extra_data"]["override"] == {"points": 1, "reason": "why", "before": 0}
    assert nothing["score"] == 0


def test_a_part_goes_over_its_checks_and_the_total_over_all(nothing: dict[str, Any]) -> None:
    """Whatever the order of the lines."""
    said = [
        Override("ann", "total", 77, "agreed"),
        Override("ann", "attention", 20, "why"),
        Override("ann", "attention.shapes", 1, "why"),
        Override("ann", "block.together", 3, "why"),
    ]
    found = applied(nothing, said[1:])
    assert found["extra_data"]["parts"]["attention"]["override"]["before"] == 1
    assert found["score"] == 23
    found = applied(nothing, said)
    assert found["score"] == 77
    assert found["extra_data"]["override"] == {"points": 77, "reason": "agreed", "before": 23}


def test_staff_may_say_where_the_grader_failed(assignment: Assignment) -> None:
    """A check without a score gets one."""
    failed = report.grader_failed(assignment, "no memory")
    found = applied(failed, [Override("ann", "attention.shapes", 1, "seen by hand")])
    assert found["score"] == 1
    assert found["tests"][0]["extra_data"]["override"]["before"] is None
