"""What is handed out: Gradescope's zip, with everything; the students' zip, with nothing that is hidden."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from string import Template

from grader import public
from grader.assignment import Assignment, load_assignment
from grader.toml import read_toml
from grader.zips import write_zip

ROOT = Path(__file__).parent.parent

HANDOUT = "hw3-handout"
"""The only folder in the students' zip."""

STUDENTS_MODULES = (
    "__init__",
    "__main__",
    "adapters",
    "assignment",
    "carry",
    "check",
    "client",
    "debugger",
    "device_watch",
    "expect",
    "grouped",
    "hand_in",
    "home",
    "in_process",
    "intake",
    "loader",
    "packages",
    "plugin",
    "recorded",
    "report",
    "running",
    "simplest",
    "student_code",
    "submission",
    "switches",
    "terminal",
    "terms",
    "text",
    "toml",
    "wire",
    "zips",
    "checks/__init__",
    "commands/__init__",
    "commands/arguments",
    "commands/check",
    "commands/submission",
)
"""What `check` and `submission` need, by name: what is not named stays with staff."""

STUDENTS_FOLDERS = ("cases", "checks/public", "from_scratch", "stand_ins")


def autograder(out: Path) -> None:
    """Build Gradescope's zip: two scripts at its root, the grader, the reference, what pip must install."""
    files = _folder("grader") | _folder("reference")
    for name in ("setup.sh", "run_autograder"):
        files[name] = files.pop(f"grader/gradescope/{name}")
    files["constraints.txt"] = (ROOT / "constraints.txt").read_bytes()
    dependencies = read_toml(ROOT / "pyproject.toml")["project"]["dependencies"]
    files["requirements.txt"] = "".join(f"{one}\n" for one in dependencies).encode()
    out.parent.mkdir(parents=True, exist_ok=True)
    write_zip(out, files, executable=("setup.sh", "run_autograder"))


def handout(out: Path) -> None:
    """Build the students' zip: the stubs, the public half of the grader, a README, a Makefile."""
    assignment = load_assignment()
    names = [*(f"grader/{name}.py" for name in STUDENTS_MODULES), "grader/checks/pytest.ini"]
    files = _folder("starter") | {name: (ROOT / name).read_bytes() for name in names}
    for folder in STUDENTS_FOLDERS:
        files |= _folder(f"grader/{folder}")
    files = {name: public.without_hidden_lines(data.decode()).encode() for name, data in files.items()}
    files["grader/cases.json"] = public.cases_text(public.families_of(assignment)).encode()
    files["grader/assignment.toml"] = public.assignment_text(assignment).encode()
    for name, data in _folder("grader/handout").items():
        files[name.removeprefix("grader/handout/")] = data
    files["README.md"] = _filled_in(files["README.md"].decode(), assignment).encode()
    out.parent.mkdir(parents=True, exist_ok=True)
    write_zip(out, {f"{HANDOUT}/{name}": data for name, data in files.items()})


def _folder(folder: str) -> dict[str, bytes]:
    """Contents of all files below a folder, by their paths."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in sorted((ROOT / folder).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def _filled_in(readme: str, assignment: Assignment) -> str:
    """The students' README with the numbers that the assignment says."""
    public = sum(check.points for check in assignment.checks.values() if not check.hidden)
    hidden = sum(part.hidden_points for part in assignment.parts.values())
    return Template(readme).substitute(
        points="\n".join(_points(assignment)),
        public=f"{public:g}",
        hidden=f"{hidden:g}",
        call_s=f"{assignment.limits['call_s']:g}",
        submission_s=f"{assignment.limits['submission_s']:g}",
        memory_mb=f"{assignment.limits['memory_mb']:g}",
    )


def _points(assignment: Assignment) -> Iterator[str]:
    """The rows of a table: part, public points, hidden points."""
    for name, part in assignment.parts.items():
        points = sum(check.points for check in assignment.checks_of(name) if not check.hidden)
        yield f"| {part.title} | `{part.file}` | {points:g} | {part.hidden_points:g} |"
