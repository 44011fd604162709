"""Downloads and gradebooks as learning management systems make them, to test with.

A builder returns a download's files by path; `lay` makes a folder of them, `pack` a zip.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from grader.ingest import Student

Files = Mapping[str, "str | bytes"]
Handed = Sequence["tuple[Student, Files]"]
"""Who handed in what."""

BOB = Student("Bob Smith", "bob@example.edu", "00123", "340934")
ANA = Student("Ana de la Cruz", "ana@example.edu", "3031", "340935")
ZOE = Student("Zoë O'Neill-Müller", "zoe@example.edu", "", "340936")


def lay(root: Path, files: Files) -> Path:
    """Write the files to a folder; a path that ends in / is an empty folder."""
    root.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        path = root / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_bytes(as_bytes(data))
    return root


def pack(path: Path, files: Files) -> Path:
    """Write the files to a zip."""
    path.write_bytes(zipped(files))
    return path


def zipped(files: Files) -> bytes:
    """A zip of the files, as bytes, to lie in another one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, as_bytes(data))
    return buffer.getvalue()


def as_bytes(data: str | bytes) -> bytes:
    """A file's content."""
    return data.encode() if isinstance(data, str) else data


# --- downloads ------------------------------------------------------------------------------------


def gradescope(handed: Handed, top: str = "assignment_77_export/") -> dict[str, str | bytes]:
    """Submissions 101, 102, ... and the metadata, with results as Ruby writes them."""
    files: dict[str, str | bytes] = {}
    metadata = "---\n"
    for number, (student, content) in enumerate(handed, 101):
        metadata += f"submission_{number}:\n  :submitters:\n" + submitter(student) + RESULTS
        files |= {f"{top}submission_{number}/{name}": data for name, data in content.items()}
    return files | {f"{top}submission_metadata.yml": metadata}


def submitter(student: Student) -> str:
    """One student in the metadata."""
    name, sid, email = (text.replace("'", "''") for text in (student.name, student.sid, student.email))
    sid_line = f"    :sid: '{sid}'\n" if sid else ""
    return f"  - :name: '{name}'\n{sid_line}    :email: {email}\n"


RESULTS = """\
  :created_at: 2026-04-26 17:34:00.861687000 Z
  :score: 12.5
  :status: processed
  :results: &1
    score: 12.5
    output: ! "line one\\nline \\e[31mtwo"
    tests:
    - name: '1.1 :submitters:'
      :submitters: []
      tags: !ruby/object:Set
        hash:
          a: true
  :history:
  - :id: 1
    :created_at: 2026-04-25 17:34:00.861687000 Z
    :results: *1
"""


def canvas(handed: Handed, late: Sequence[Student] = ()) -> dict[str, str | bytes]:
    """Loose files; attachments are numbered in order."""
    files: dict[str, str | bytes] = {}
    attachment = 208490284
    for student, content in handed:
        for name, data in content.items():
            mark = "_LATE" if student in late else ""
            files[f"{squashed(student.name)}{mark}_{student.lms_id}_{attachment}_{name}"] = data
            attachment += 1
    return files


def squashed(name: str) -> str:
    """What Canvas makes of a student's name."""
    first, _, last = name.partition(" ")
    return re.sub(r"\W", "", f"{last}{first}".lower())


def moodle(handed: Handed, flat: bool = False, ending: str = "") -> dict[str, str | bytes]:
    """A folder per student, or the folder's name before each file's."""
    between = "_" if flat else f"{ending}/"
    return {
        f"{student.name}_{student.lms_id}_assignsubmission_file{between}{name}": data
        for student, content in handed
        for name, data in content.items()
    }


def classroom(handed: Handed, slug: str = "hw3", top: str = "hw3-submissions/") -> dict[str, str | bytes]:
    """A clone per login."""
    files: dict[str, str | bytes] = {}
    for student, content in handed:
        repository = f"{top}{slug}-{student.lms_id}/"
        files |= {repository + name: data for name, data in content.items()}
        files[f"{repository}.git/HEAD"] = "ref: refs/heads/main\n"
        files[f"{repository}.git/hooks/attention.py"] = "raise SystemExit\n"
    return files


# --- gradebooks -----------------------------------------------------------------------------------


def table(rows: Sequence[Sequence[str]], delimiter: str = ",", end: str = "\n") -> str:
    """The rows as CSV."""
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator=end).writerows(rows)
    return buffer.getvalue()


def canvas_gradebook(students: Sequence[Student], *titles: str, points: str = "100.00") -> str:
    """With what Canvas writes between header and students, the test student, and columns that it computes."""
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *titles, "Final Score"]
    rows = [head, [""] * 5 + ["Manual Posting"] * len(titles) + [""]]
    rows.append(["    Points Possible", "", "", "", "", *[points] * len(titles), "(read only)"])
    rows += [
        [sortable(s.name), s.lms_id, s.sid, s.email.partition("@")[0], "CS 1", *[""] * len(titles), "81.5"]
        for s in students
    ]
    rows.append(["Student, Test", "999", "", "bbbc6740f0b946af", "CS 1", *[""] * len(titles), "0.0"])
    return table(rows)


def sortable(name: str) -> str:
    """`Last, First`."""
    first, _, last = name.partition(" ")
    return f"{last}, {first}"


def moodle_worksheet(students: Sequence[Student], maximum: str = "100.00", delimiter: str = ",") -> str:
    """With a byte order mark and a line break within a cell, as Moodle writes them."""
    head = ["Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade"]
    head += [
        "Grade can be changed",
        "Last modified (submission)",
        "Last modified (grade)",
        "Feedback comments",
    ]
    rows = [head]
    for student in students:
        who = [f"Participant {student.lms_id}", student.name, student.email, "Submitted for grading"]
        rows.append([*who, "", maximum, "Yes", "Sunday, 26 April 2026, 5:34 PM", "-", "=well\ndone"])
    return "\ufeff" + table(rows, delimiter, "\r\n")


def gradescope_scores(students: Sequence[Student]) -> str:
    """As "Download Grades" gives it."""
    head = "First Name,Last Name,SID,Email,Sections,Total Score,Max Points,Status,Submission ID"
    head += ",Submission Time,Lateness (H:M:S),View Count,Submission Count"
    rows = [head.split(",")]
    for number, student in enumerate(students, 101):
        first, _, last = student.name.partition(" ")
        who = [first, last, student.sid, student.email, "", "", "100.0", "Ungraded", str(number)]
        rows.append([*who, "2026-04-26 10:34:00 -0700", "00:00:00", "0", "1"])
    return table(rows)


def classroom_grades(students: Sequence[Student], group: str = "") -> str:
    """As "Download grades" gives it."""
    head = "assignment_name,assignment_url,starter_code_url,github_username,roster_identifier"
    head += (
        ",student_repository_name,student_repository_url,submission_timestamp,points_awarded,points_available"
    )
    rows = [(head + (",group_name" if group else "")).split(",")]
    for s in students:
        repository = f"hw3-{group or s.lms_id}"
        row = ["HW3", "https://x", "", s.lms_id, s.email, repository, f"https://github.com/c/{repository}"]
        rows.append([*row, "2026-04-26 17:34:00 UTC", "0", "100", *([group] if group else [])])
    return table(rows)
