"""The class report for course staff: one page that needs nothing beside itself, not even a network."""

from __future__ import annotations

import base64
import hashlib
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from grader.anonymous import without_identities
from grader.grouped import reason
from grader.marks import GRADED, GRADER_ERROR, STUDENT_ERROR, WAITING, Mark, Marks
from grader.scores import total_of
from grader.text import clean, one_line

FOLDER = Path(__file__).parent
MAX_TEXT = 20_000
"""Characters of one text on the page; as many as a check's message may have."""

BINS = 10


def render(marks: Marks, *, anonymous: bool = False) -> str:
    """The page's text; the same for the same marks.

    Args:
        anonymous: tell nothing of who handed in: for showing it to others than staff.
    """
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_written,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = (FOLDER / name for name in ("page.css", "page.js"))
    shown = without_identities(marks) if anonymous else marks
    return environment.get_template("page.html").render(
        page=Page(shown, missing=len(marks.missing), unmatched=len(marks.unmatched)),
        anonymous=anonymous,
        style=Markup(style.read_text(encoding="utf-8")),  # noqa: S704 - our own
        script=Markup(script.read_text(encoding="utf-8")),  # noqa: S704
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'",
    )


def _written(value: Any) -> Any:
    """What stands on the page for a value: every text goes through here, before it is escaped."""
    if isinstance(value, float):
        return f"{round(value, 2):g}"
    if value is None:
        return ""
    return clean(value, MAX_TEXT) if isinstance(value, str) and not isinstance(value, Markup) else value


def _hash(path: Path) -> str:
    """How a content security policy names the one script, or style, that may be used."""
    return "sha256-" + base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()


# --- one submission -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One check in one result."""

    test: Mapping[str, Any]

    @property
    def about(self) -> Mapping[str, Any]:
        """Our own data."""
        found: Mapping[str, Any] = self.test["extra_data"]
        return found

    @property
    def title(self) -> str:
        """Without the part's."""
        return str(self.test["name"]).partition(": ")[2]

    @property
    def outcome(self) -> str:
        """In words."""
        return str(self.about["outcome"]).replace("_", " ")

    @property
    def lost(self) -> float:
        """Points that it cost; none where the grader failed."""
        maximum = float(self.test["max_score"])
        return max(0.0, maximum - float(self.test.get("score", maximum)))

    @property
    def hidden(self) -> bool:
        """Whether it is one of those that students do not have."""
        return bool(self.about["hidden"])

    @property
    def override(self) -> Mapping[str, Any] | None:
        """Staff's word on it."""
        return self.about.get("override")

    @property
    def told(self) -> bool:
        """Whether there is something about it that staff should read."""
        return bool(self.lost or self.override) or self.about["outcome"] == "grader_error"

    @property
    def mistake(self) -> tuple[str, ...]:
        """The same for the checks of a submission that fail for the same reason."""
        return ("override", str(self.about["check"])) if self.override else reason(self.test)


@dataclass(frozen=True)
class Submission:
    """One mark, as the page shows it.

    Attributes:
        anchor: of its details; nothing in it comes from the submission.
    """

    anchor: str
    mark: Mark

    @property
    def name(self) -> str:
        """Who handed in, or what it is called where nobody knows."""
        names = (s.name or s.email or s.sid or s.lms_id for s in self.mark.entry.students)
        return ", ".join(_name(name) for name in names if name) or self.mark.entry.id

    @property
    def about(self) -> Mapping[str, Any]:
        """Our own data about the whole."""
        found: Mapping[str, Any] = self.mark.document.get("extra_data", {})
        return found

    @property
    def total(self) -> float | None:
        """The points that stand."""
        return total_of(self.mark)

    @property
    def counted(self) -> bool:
        """Whether its points say something about the class."""
        return self.total is not None and (self.mark.status == GRADED or "override" in self.about)

    @property
    def graded(self) -> bool:
        """Whether its checks say something about the class."""
        return self.mark.status == GRADED

    def has(self, *outcomes: str) -> bool:
        """Whether a check of one that was graded has one of these outcomes."""
        return self.graded and any(row.about["outcome"] in outcomes for row in self.rows)

    @property
    def parts(self) -> Mapping[str, Any]:
        """Score and maximum of each part."""
        found: Mapping[str, Any] = self.about.get("parts", {})
        return found

    @cached_property
    def rows(self) -> list[Row]:
        """All checks."""
        return [Row(test) for test in self.mark.document.get("tests", ())]

    @property
    def mistakes(self) -> list[list[Row]]:
        """What cost points, each mistake once: the check that shows it best, then the others."""
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in self.rows:
            if row.told:
                groups.setdefault(row.mistake, []).append(row)
        best = {found["checks"][0] for found in self.recognised if found["checks"]}
        return [sorted(group, key=lambda row: row.about["check"] not in best) for group in groups.values()]

    @property
    def passed(self) -> list[Row]:
        """Checks that nothing has to be said about."""
        return [row for row in self.rows if not row.told]

    @property
    def carried(self) -> list[Row]:
        """Checks that pass only with a right file in place of an earlier wrong one."""
        return [row for row in self.passed if row.about.get("at_fault")]

    @property
    def unseen(self) -> set[str]:
        """Files without which a later part's check passes, though none of their own checks fails."""
        blamed = {row.about["at_fault"] for row in self.rows if row.about.get("at_fault")}
        return blamed - {f"{row.about['part']}.py" for row in self.rows if row.lost}

    @property
    def recognised(self) -> Sequence[Mapping[str, Any]]:
        """Misconceptions."""
        found: Sequence[Mapping[str, Any]] = self.about.get("recognised", ())
        return found

    @property
    def uses(self) -> Sequence[Mapping[str, Any]]:
        """Of forbidden operators."""
        found: Sequence[Mapping[str, Any]] = self.about.get("from_scratch", {}).get("uses", ())
        return found

    @property
    def files(self) -> Mapping[str, str]:
        """The file that was taken for each part."""
        found: Mapping[str, str] = self.about.get("submission", {}).get("parts", {})
        return found

    @property
    def skipped(self) -> Mapping[str, str]:
        """Files that were not read, with the reason."""
        found: Mapping[str, str] = self.about.get("submission", {}).get("skipped", {})
        return found

    @property
    def traces(self) -> Mapping[str, str]:
        """Of the grader's own errors, by check."""
        found: Mapping[str, str] = self.about.get("grader_errors", {})
        return found

    @property
    def leading(self) -> list[str]:
        """What its report leads with."""
        _, _, listed = str(self.mark.document.get("output", "")).partition("Look at this first:\n")
        return [line.removeprefix("- ") for line in listed.splitlines() if line]

    @property
    def reason(self) -> str:
        """Why it needs attention."""
        if self.mark.status == GRADER_ERROR:
            last = [trace.strip().rpartition("\n")[2] for trace in self.traces.values()]
            return "; ".join(dict.fromkeys([*self.mark.notes, *last]))
        return str(self.about.get("nothing_gradable") or "; ".join(self.leading or self.mark.notes))

    @property
    def search(self) -> str:
        """What it is found by, besides what its line in the table shows."""
        people = chain.from_iterable((s.name, s.email, s.sid, s.lms_id) for s in self.mark.entry.students)
        told = [row for row in self.rows if row.told]
        checks = chain.from_iterable((row.about["check"], row.test["number"]) for row in told)
        outcomes = sorted({row.outcome for row in told})
        return " ".join([*people, *(found["name"] for found in self.recognised), *checks, *outcomes])


def _name(text: str) -> str:
    """A name on one line; a space of another kind is a space."""
    return one_line(" ".join(text[:1000].split()))


# --- the class ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Concern:
    """Submissions that staff should look at, and what for."""

    title: str
    submissions: Sequence[Submission]
    explained: bool = False


@dataclass
class Check:
    """What a check cost the class."""

    first: Row
    given: int = 0
    losers: int = 0
    points: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row) -> None:
        """Count one submission's."""
        self.given += 1
        if row.lost:
            self.losers += 1
            self.points += row.lost
            self.outcomes[row.outcome] += 1


@dataclass(frozen=True)
class Misconception:
    """A known wrong idea, and who has it."""

    part: str
    name: str
    says: str
    asks: str
    submissions: list[Submission] = field(default_factory=list)


@dataclass(frozen=True)
class Distribution:
    """Of scores from 0 to `maximum`."""

    title: str
    scores: Sequence[float]
    maximum: float

    @property
    def counts(self) -> list[int]:
        """How many in each bin; the last has the maximum, too, and what staff gave beyond it."""
        width = self.maximum / BINS or 1
        bins = Counter(min(max(math.floor(score / width + 1e-9), 0), BINS - 1) for score in self.scores)
        return [bins[position] for position in range(BINS)]

    @property
    def edges(self) -> list[float]:
        """Of the bins."""
        return [self.maximum * position / BINS for position in range(BINS + 1)]

    @property
    def mean(self) -> float:
        """Of at least one score."""
        return float(statistics.fmean(self.scores))

    @property
    def quartiles(self) -> list[float]:
        """The lower one, the median, the upper one."""
        twice = [*self.scores, *self.scores] if len(self.scores) == 1 else self.scores
        return [float(cut) for cut in statistics.quantiles(twice, n=4, method="inclusive")]


@dataclass(frozen=True)
class Page:
    """The class, as the page shows it.

    Attributes:
        missing: how many stand in the gradebook and handed in nothing.
        unmatched: how many files and folders belong to no submission.
    """

    marks: Marks
    missing: int
    unmatched: int

    @cached_property
    def submissions(self) -> list[Submission]:
        """In the order of the marks."""
        return [Submission(f"s{number}", mark) for number, mark in enumerate(self.marks.marks, start=1)]

    @cached_property
    def counted(self) -> list[Submission]:
        """Those that say something about the class."""
        return [submission for submission in self.submissions if submission.counted]

    @cached_property
    def graded(self) -> list[Submission]:
        """Those whose checks and misconceptions are counted."""
        return [submission for submission in self.submissions if submission.graded]

    @property
    def statuses(self) -> list[tuple[str, int]]:
        """How many of each; only those that there are."""
        found = Counter(mark.status for mark in self.marks.marks)
        return [(name, found[name]) for name in (GRADED, STUDENT_ERROR, GRADER_ERROR, WAITING) if found[name]]

    @cached_property
    def parts(self) -> dict[str, str]:
        """Title by name."""
        rows = chain.from_iterable(submission.rows for submission in self.submissions)
        return {str(row.about["part"]): str(row.test["name"]).partition(": ")[0] for row in rows}

    @property
    def maximum(self) -> float:
        """Points there were to get."""
        return float(max((s.about.get("max_score", 0) for s in self.submissions), default=0))

    @property
    def concerns(self) -> list[Concern]:
        """What needs attention, the most urgent first; only those that there are."""

        def those(title: str, concerns: Callable[[Submission], bool], explained: bool = False) -> Concern:
            return Concern(title, [found for found in self.submissions if concerns(found)], explained)

        found = (
            those("The grader failed: not final", lambda s: s.mark.status == GRADER_ERROR, explained=True),
            those(
                "Nothing gradable", lambda s: s.mark.status == STUDENT_ERROR and not s.counted, explained=True
            ),
            those("No known student", lambda s: not s.mark.entry.students),
            those("Not graded yet", lambda s: s.mark.status == WAITING),
            those("Forbidden operators", lambda s: bool(s.uses)),
            those(
                "A part that is missing or cannot be imported", lambda s: s.has("missing", "not_importable")
            ),
            those("Hangs or ends its process", lambda s: s.has("timed_out", "died", "out_of_memory")),
            those("A file is at fault in later parts, and loses nothing itself", lambda s: bool(s.unseen)),
            those("Late", lambda s: s.mark.entry.late is True),
            those("Set by hand", lambda s: bool(s.mark.overrides)),
        )
        return [concern for concern in found if concern.submissions]

    @property
    def distributions(self) -> list[Distribution]:
        """Of the totals, then of each part."""
        totals = [s.total for s in self.counted if s.total is not None]
        found = [Distribution("Total", totals, self.maximum)]
        for part, title in self.parts.items():
            own = [found.parts[part] for found in self.counted if found.graded and part in found.parts]
            scores = [entry["score"] for entry in own]
            found.append(Distribution(title, scores, max((e["max_score"] for e in own), default=0)))
        return [distribution for distribution in found if distribution.scores and distribution.maximum]

    @property
    def checks(self) -> list[Check]:
        """All of them; first what cost the class most."""
        found: dict[str, Check] = {}
        for row in chain.from_iterable(submission.rows for submission in self.graded):
            found.setdefault(row.about["check"], Check(row)).add(row)
        return sorted(found.values(), key=lambda check: -check.points)

    @property
    def misconceptions(self) -> list[Misconception]:
        """Those that were recognised; first the most common."""
        found: dict[tuple[str, str], Misconception] = {}
        for submission in self.graded:
            for entry in submission.recognised:
                key = (entry["part"], entry["misconception"])
                new = Misconception(*(entry.get(name, "") for name in ("part", "name", "says", "asks")))
                found.setdefault(key, new).submissions.append(submission)
        return sorted(found.values(), key=lambda misconception: -len(misconception.submissions))
