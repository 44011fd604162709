"""One submission, graded: the checks run by pytest over the sandbox, the result as a document."""

from __future__ import annotations

import contextlib
import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from grader import __version__
from grader.assignment import Assignment, CheckEntry
from grader.carry import Make, ladders
from grader.cases import Case
from grader.check import CheckRun
from grader.client import PartClient
from grader.fingerprint import fingerprint
from grader.in_process import InProcessSubmission
from grader.intake import SubmissionFiles
from grader.loader import SubmissionModules
from grader.memo import Memo
from grader.recognise import Recognised, Recogniser
from grader.recorded import recorded
from grader.report import Run, results, rows_of
from grader.running import run_pytest
from grader.sandbox.backend import SandboxSubmission, Source, WorkerSource
from grader.sandbox.budget import Budget, TimeLimits
from grader.sandbox.confine import Limits, missing
from grader.stand_ins import StandIn
from grader.submission import Submission
from grader.text import one_line

ABREAST = 8
"""Cases of a check that are run side by side."""

REFERENCE = Path(__file__).parent.parent / "reference"


@dataclass(frozen=True)
class Options:
    """What `grade` can be told.

    Attributes:
        parts: names of the parts to grade; empty for all.
        checks: ids of the checks to run; empty for all of the parts'.
        seed: draw the cases afresh under this number instead of taking the recorded ones.
        simplify: look for the simplest case that fails a check, for the message.
        recognise: look for the misconception behind what failed.
        wall_s: end everything after so many seconds on the wall; what was not run then is said.
    """

    parts: Sequence[str] = ()
    seed: int | None = None
    simplify: bool = True
    checks: Sequence[str] = ()
    recognise: bool = True
    wall_s: float = math.inf


@dataclass(frozen=True)
class Graded:
    """A submission's result, as `results.json` holds it.

    Attributes:
        printed: what the submission printed; for staff only.
        killed: how many of its processes were ended by SIGKILL, and not by us.
    """

    document: dict[str, Any]
    printed: str
    killed: int = 0


Progress = Callable[[dict[str, Any]], None]


class Grader:
    """Grades submissions one after another in one process; no student code ever enters it.

    Args:
        assignment: parts, points and limits.
        workers: makes the processes that the students' code runs in.
    """

    def __init__(self, assignment: Assignment, workers: WorkerSource) -> None:
        torch.set_num_threads(1)
        self._assignment = assignment
        self._workers = workers
        self._reference = Memo(_reference(assignment))
        self._references = {
            name: PartClient(part, self._reference, remember=True) for name, part in assignment.parts.items()
        }
        self._recogniser = Recogniser(assignment, _reference_files(), recorded())
        self._cases: dict[int, Mapping[str, Sequence[Case]]] = {}

    def missing_layers(self) -> dict[str, str]:
        """The layers that a worker should have around it and has not, with what to do about each."""
        nothing = Source({}, {}, self._assignment.targets)
        probe = SandboxSubmission(nothing, self._workers, Budget(TimeLimits()), self._limits())
        with contextlib.closing(probe):
            probe.open()
        return missing(probe.layers)

    def grade(
        self, files: SubmissionFiles, options: Options | None = None, progress: Progress | None = None
    ) -> Graded:
        """Grade one submission.

        Args:
            progress: gets the result so far after each part, the checks of the others "not run" yet.
        """
        options = options or Options()
        started = time.monotonic()
        budget = Budget(self._time_limits(options))

        def sandboxed(stand_ins: Sequence[StandIn] = ()) -> SandboxSubmission:
            source = Source(files.files, files.parts, self._assignment.targets, stand_ins)
            return SandboxSubmission(source, self._workers, budget.shared(), self._limits())

        submission = sandboxed()
        groups = self._chosen(options)
        checks = [check for group in groups for check in group]
        run = self._check_run(submission, files.parts, sandboxed, options)
        tests: list[dict[str, Any]] = []

        def result(recognised: Sequence[Recognised] = (), trouble: str = "") -> dict[str, Any]:
            about = _about_run(files, submission, options)
            return results(
                self._found(run, tests, checks, recognised),
                execution_time=time.monotonic() - started,
                extra=about | ({"recognition_error": trouble} if trouble else {}),
            )

        with contextlib.closing(run):
            for group in groups if progress else [checks]:
                tests += run_pytest(run, group)["tests"]
                if progress is not None:
                    progress(result())
            document = result(*(self._recognised(run) if options.recognise else ()))
            printed = submission.output
        return Graded(document, printed, budget.killed)

    def _chosen(self, options: Options) -> list[list[CheckEntry]]:
        """The checks that are asked for, by part; none of a part with none."""
        groups = [
            [
                check
                for check in self._assignment.checks_of(part)
                if not options.checks or check.id in options.checks
            ]
            for part in self._assignment.parts
            if not options.parts or part in options.parts
        ]
        return [group for group in groups if group]

    def _found(
        self,
        run: CheckRun,
        tests: Sequence[Mapping[str, Any]],
        checks: Sequence[CheckEntry],
        recognised: Sequence[Recognised],
    ) -> Run:
        parts = {check.part for check in checks}
        uses = [use for use in run.forbidden_uses() if use.part in parts]
        return Run(
            self._assignment, rows_of(self._assignment, {"tests": tests}, uses, checks), uses, recognised
        )

    def _time_limits(self, options: Options) -> TimeLimits:
        limits = self._assignment.limits
        return TimeLimits(
            call_s=limits["call_s"],
            impatient_call_s=limits["impatient_call_s"],
            check_s=limits["check_s"],
            submission_s=limits["submission_s"],
            idle_s=limits["idle_s"],
            total_wall_s=options.wall_s,
        )

    def _limits(self) -> Limits:
        limits = self._assignment.limits
        return Limits(int(limits["memory_mb"]) << 20, cpu_s=int(2 * limits["submission_s"]))

    def _recognised(self, run: CheckRun) -> tuple[list[Recognised], str]:
        """The misconceptions found; what goes wrong here is for staff to see and changes no score."""
        try:
            return self._recogniser.recognise(run), ""
        except Exception:
            return [], traceback.format_exc(limit=-5)

    def _check_run(
        self, submission: Submission, paths: Mapping[str, str], make: Make, options: Options
    ) -> CheckRun:
        parts = self._assignment.parts
        return CheckRun(
            submission,
            clients={name: PartClient(part, submission, remember=True) for name, part in parts.items()},
            ladders=ladders(self._assignment, submission, make),
            references=self._references,
            cases=self._cases_for(options.seed),
            paths=paths,
            simplify=options.simplify,
            abreast=ABREAST,
        )

    def _cases_for(self, seed: int | None) -> Mapping[str, Sequence[Case]]:
        if seed is None:
            return recorded()
        from grader.strategies.drawing import DrawnCases  # and Hypothesis with it, which nothing else needs

        return self._cases.setdefault(seed, DrawnCases(seed))


def _about_run(files: SubmissionFiles, submission: SandboxSubmission, options: Options) -> dict[str, Any]:
    return {
        "grader": {"version": __version__, "fingerprint": fingerprint()},
        "submission": _about(files),
        "isolation": {
            "backend": "sandbox",
            "layers": {name: asdict(layer) for name, layer in submission.layers.items()},
            "missing": missing(submission.layers),
        },
        "cases": "recorded" if options.seed is None else f"seed {options.seed}",
    }


def _about(files: SubmissionFiles) -> dict[str, Any]:
    return {
        "sha256": files.sha256,
        "files": [one_line(path) for path in files.files],
        "parts": {part: one_line(path) for part, path in files.parts.items()},
        "skipped": {one_line(path): why for path, why in files.skipped.items()},
    }


def _reference_files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in REFERENCE.glob("*.py")}


def _reference(assignment: Assignment) -> InProcessSubmission:
    files = _reference_files()
    parts = assignment.files
    return InProcessSubmission(SubmissionModules(files, parts, display_root=f"{REFERENCE}/"))
