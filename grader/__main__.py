"""The command line: `python -m grader COMMAND`.

Exit codes: 0 graded, whatever the score; 1 a check or an audit that did not pass; 2 unusable arguments
or input; 3 the grader's own error; 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from grader.intake import InputError, read_submission

EXIT_OK, EXIT_NOT_PASSED, EXIT_INPUT, EXIT_GRADER, EXIT_INTERRUPTED = 0, 1, 2, 3, 130


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_INPUT, f"{self.prog}: {message}\n")


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return the exit code."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what a terminal cannot show costs nobody a result
    try:
        code: int = options.command(options)
        return code
    except InputError as error:
        print(f"grader: {error}", file=sys.stderr)
        return EXIT_INPUT
    except KeyboardInterrupt:
        print("grader: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except Exception:
        traceback.print_exc()
        print("grader: this is the grader's own error, not the submission's", file=sys.stderr)
        return EXIT_GRADER


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m grader", description="Grade HW3, Transformer from scratch.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    grade = commands.add_parser("grade", help="grade one submission, every check, in a sandbox")
    grade.add_argument("path", type=Path, metavar="PATH", help="a folder or a zip")
    grade.add_argument("--json", type=Path, metavar="FILE", help="write the result there")
    grade.add_argument("--part", action="append", default=[], help="grade only this part; again for more")
    grade.add_argument("--seed", type=int, metavar="N", help="draw the cases afresh, for audits")
    grade.set_defaults(command=_grade)

    check = commands.add_parser("check", help="run the public checks on your own files, in seconds")
    check.add_argument("part", nargs="*", metavar="PART", help="only these parts")
    check.add_argument("--path", type=Path, default=Path("starter"), help="where the files are (starter)")
    check.add_argument("--pdb", action="store_true", help="stop in the debugger where it fails")
    check.set_defaults(command=_check)

    audit = commands.add_parser("audit", help="grade the grader: all known right and wrong submissions")
    audit.add_argument("--json", type=Path, metavar="FILE", help="write the whole matrix there")
    audit.add_argument("--jobs", type=int, metavar="N", help="so many at a time (as many as there are cores)")
    audit.add_argument(
        "--again", type=int, default=1, metavar="N", help="grade every N-th a second time (1: all of them)"
    )
    audit.add_argument(
        "--whole",
        type=int,
        default=1,
        metavar="N",
        help="grade every N-th mutant in all its parts, of the others what they name (1: all)",
    )
    audit.add_argument("--only", action="append", default=[], metavar="NAME", help="only this subject")
    audit.set_defaults(command=_audit)

    mutate = commands.add_parser("mutate", help="let a tool mutate the reference, and kill what it makes")
    mutate.add_argument(
        "--jobs", type=int, metavar="N", help="so many at a time (as many as there are cores)"
    )
    mutate.set_defaults(command=_mutate)

    gradescope = commands.add_parser("gradescope", help="grade as Gradescope asks for it, in its container")
    gradescope.add_argument("--root", type=Path, default=Path("/autograder"), help="(/autograder)")
    gradescope.set_defaults(command=_gradescope)

    build = commands.add_parser("build", help="build what is handed out; refuses where the audit fails")
    build.add_argument("what", choices=["gradescope"])
    build.add_argument("--out", type=Path, metavar="FILE", help="(dist/autograder.zip)")
    build.add_argument("--unaudited", action="store_true", help="to try it out: without the audit before")
    build.set_defaults(command=_build)

    record = commands.add_parser("record", help="draw the cases of all families again")
    record.set_defaults(command=_record)
    return parser


def _grade(options: argparse.Namespace) -> int:
    if not options.path.exists():
        raise InputError(f"the submission must be a folder or a zip file, got {options.path} (no such path)")
    if options.json is not None:
        _writable(options.json)

    # The zygote is forked before anything is read that a submission must not find in its memory.
    from grader.sandbox.zygote import Zygote

    zygote = Zygote.start()
    try:
        from grader.assignment import load_assignment

        assignment = load_assignment()
        _known_parts(options.part, list(assignment.parts))
        files = read_submission(options.path, assignment.files)

        from rich.console import Console

        from grader import report, terminal
        from grader.grading import Grader, Options

        graded = Grader(assignment, zygote).grade(files, Options(options.part, options.seed))
    finally:
        zygote.close()
    if options.json is not None:
        report.write_atomically(options.json, report.to_json(graded.document))
    console = Console(highlight=False)
    terminal.show(graded.document, console)
    terminal.show_printed(graded.printed, console)
    if options.json is not None:
        console.print(f"\nThe result is in {options.json}.", style="dim")
    for layer, todo in graded.document["extra_data"]["isolation"]["missing"].items():
        print(f"grader: the submission was not held by {layer}: {todo}", file=sys.stderr)
    if graded.document["extra_data"]["grader_error"]:
        print("grader: a check failed by the grader's own fault; see grader_errors", file=sys.stderr)
        return EXIT_GRADER
    return EXIT_OK


def _check(options: argparse.Namespace) -> int:
    from grader.assignment import load_assignment

    assignment = load_assignment()
    _known_parts(options.part, list(assignment.parts))

    from rich.console import Console

    from grader import home, terminal

    document = home.check(assignment, options.path, options.part, ["--pdb"] if options.pdb else [])
    parts = options.part or list(assignment.parts)
    waiting = sum(c.points for part in parts for c in assignment.checks_of(part) if c.hidden)
    terminal.show(document, Console(highlight=False), hidden_points=waiting)
    if document["extra_data"]["grader_error"]:
        for check, trace in document["extra_data"]["grader_errors"].items():
            print(f"\n{check}\n{trace}", file=sys.stderr)
        return EXIT_GRADER
    passed = all(test["extra_data"]["outcome"] == "passed" for test in document["tests"])
    return EXIT_OK if passed else EXIT_NOT_PASSED


def _audit(options: argparse.Namespace) -> int:
    if options.json is not None:
        _writable(options.json)

    from grader import report
    from grader.audit import audit

    found = audit(
        jobs=_jobs(options),
        again=_positive("again", options.again),
        whole=_positive("whole", options.whole),
        only=options.only,
        tell=_tell_progress,
    )
    print(file=sys.stderr)
    for line in found.lines():
        print(line)
    if options.json is not None:
        report.write_atomically(options.json, report.to_json(found.to_json()))
    return EXIT_NOT_PASSED if found.problems else EXIT_OK


def _tell_progress(done: int, all_of_them: int, problems: Sequence[str]) -> None:
    for problem in problems:
        print(f"\r{problem}", file=sys.stderr)
    print(f"\r{done} of {all_of_them}", end="", file=sys.stderr, flush=True)


def _mutate(options: argparse.Namespace) -> int:
    from grader.mutation import mutate

    found = mutate(jobs=_jobs(options))
    print(f"{found.tried} mutants, {len(found.unexplained)} survivors that are not explained")
    for mutation in found.unexplained:
        print(f"  {mutation.part}: {mutation.before}\n  {' ' * len(mutation.part)}  {mutation.after}")
    for mutation in found.killed:
        print(f"  listed as a survivor, but does not survive: {mutation.after}")
    return EXIT_NOT_PASSED if found.unexplained or found.killed else EXIT_OK


def _jobs(options: argparse.Namespace) -> int:
    from grader.pool import usable_cores

    return usable_cores() if options.jobs is None else _positive("jobs", options.jobs)


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise InputError(f"--{name} must be at least 1, got {value}")
    return value


def _gradescope(options: argparse.Namespace) -> int:
    from grader import gradescope
    from grader.assignment import load_assignment

    return gradescope.run(options.root, load_assignment().gradescope.deadline_s)


def _build(options: argparse.Namespace) -> int:
    from grader import build
    from grader.pool import usable_cores

    out = options.out or Path("dist", "autograder.zip")
    _writable_folder(out.parent)
    if not options.unaudited:
        from grader.audit import audit

        # Every mutant must fail what it names; the solution and all alternatives must score full.
        problems = audit(jobs=usable_cores(), whole=30, again=30, tell=_tell_progress).problems
        print(file=sys.stderr)
        if problems:
            print(
                f"grader: nothing is built while the audit fails: {len(problems)} problems", file=sys.stderr
            )
            return EXIT_NOT_PASSED
    build.autograder(out)
    print(f"{out}: upload it as the autograder of the assignment")
    return EXIT_OK


def _record(_options: argparse.Namespace) -> int:
    from grader import strategies

    strategies.record()
    print(f"recorded {strategies.CASES_FILE}")
    return EXIT_OK


def _known_parts(given: list[str], known: list[str]) -> None:
    for part in given:
        if part not in known:
            raise InputError(f"a part must be one of {', '.join(known)}, got {part}")


def _writable_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder must be writable, got {folder} ({error.strerror})") from error


def _writable(path: Path) -> None:
    """Refuse an output that cannot be written before any work is done for it."""
    folder = path.parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"--json must be a file in a folder that can be written, got {path}")


def _same_hashes_everywhere() -> None:
    """Start again with a fixed hash seed: the order of a set must not change anybody's score."""
    if sys.platform == "win32" or os.environ.get("PYTHONHASHSEED") == "0":
        return
    os.execve(  # noqa: S606 - our own interpreter, our own arguments
        sys.executable, sys.orig_argv, os.environ | {"PYTHONHASHSEED": "0"}
    )


if __name__ == "__main__":
    _same_hashes_everywhere()
    sys.exit(main())
