"""`assignment.toml` as data: parts, checks, limits and policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from grader.terms import Target
from grader.toml import read_toml

ASSIGNMENT_FILE = Path(__file__).with_name("assignment.toml")
VISIBILITIES = ("hidden", "after_due_date", "after_published", "visible")
TOLD = ("name", "question", "nothing")
FROM_SCRATCH_POLICIES = ("withhold", "flag")


class AssignmentError(Exception):
    """`assignment.toml` says something that it cannot mean; staff must mend it."""


@dataclass(frozen=True)
class Probe:
    """What a part that failed is asked, to recognise the misconception behind it.

    Attributes:
        family: cases whose outputs and gradients are compared.
        factor: the first input is multiplied by it, once more.
        refused: arguments that the constructor must refuse.
    """

    family: str
    factor: float
    refused: tuple[Mapping[str, int], ...] = ()


@dataclass(frozen=True)
class Part:
    """One file of the homework.

    Attributes:
        config: names of the constructor's arguments, in order.
        inputs: names of the tensors handed over in order, with their shapes.
        options: names of the further arguments of `forward`, in order.
        outputs: names of the tensors returned in order, with their shapes.
        uses: names of the parts whose class this one is built on.
        probe: what it is asked when it fails; of no family in the handout, where nobody asks.
        hidden_points: what its hidden checks are worth, also in the handout, where they are not.
    """

    name: str
    title: str
    file: str
    class_name: str
    config: tuple[str, ...]
    inputs: Mapping[str, str]
    options: tuple[str, ...]
    outputs: Mapping[str, str]
    uses: tuple[str, ...]
    probe: Probe
    hidden_points: float

    @property
    def target(self) -> Target:
        """The part's class, as a call names it."""
        inputs, outputs = tuple(self.inputs), tuple(self.outputs)
        return Target(self.name, self.class_name, self.config, inputs, self.options, outputs)


@dataclass(frozen=True)
class CheckEntry:
    """What `assignment.toml` says of one check; `hidden` checks stay with staff."""

    id: str
    part: str
    points: float
    title: str
    hidden: bool


@dataclass(frozen=True)
class Gradescope:
    """How this runs on Gradescope.

    Attributes:
        deadline_s: seconds on the wall for everything, less than the platform allows.
        scale: give points as shares of the total that the assignment has there.
        leaderboard: show the score on one.
        allow_weak_isolation: grade though a layer around the submission is missing.
    """

    deadline_s: float = 540.0
    scale: bool = False
    leaderboard: bool = False
    allow_weak_isolation: bool = False


@dataclass(frozen=True)
class Assignment:
    """The whole file."""

    title: str
    parts: Mapping[str, Part]
    checks: Mapping[str, CheckEntry]
    limits: Mapping[str, float]
    from_scratch: str
    hidden_visibility: str
    misconceptions: str
    gradescope: Gradescope

    @property
    def files(self) -> dict[str, str]:
        """File name by part."""
        return {name: part.file for name, part in self.parts.items()}

    @property
    def targets(self) -> dict[str, Target]:
        """How each part's class is called, by part."""
        return {name: part.target for name, part in self.parts.items()}

    @property
    def classes(self) -> dict[str, str]:
        """Class name by part."""
        return {name: part.class_name for name, part in self.parts.items()}

    @cached_property
    def numbers(self) -> dict[str, str]:
        """`2.7` by check: the place of the part, and that of the check in it, whatever is run of them."""
        return {
            check.id: f"{place}.{place_in_part}"
            for place, part in enumerate(self.parts, start=1)
            for place_in_part, check in enumerate(self.checks_of(part), start=1)
        }

    @cached_property
    def by_number(self) -> dict[str, str]:
        """The check that has a number."""
        return {number: check for check, number in self.numbers.items()}

    def before(self, part: str) -> list[str]:
        """The parts that this one is built on, directly or not, each after those it needs itself."""
        found: dict[str, None] = {}
        for name in self.parts[part].uses:
            found |= dict.fromkeys([*self.before(name), name])
        return list(found)

    def checks_of(self, part: str) -> list[CheckEntry]:
        """The part's checks in order, public ones first."""
        return [check for check in self.checks.values() if check.part == part]


@lru_cache(maxsize=1)
def load_assignment(path: Path = ASSIGNMENT_FILE) -> Assignment:
    """Read and check the assignment.

    Raises:
        AssignmentError: a key is missing or a value is out of its range.
    """
    try:
        raw = read_toml(path)
        by_part = {name: _checks(name, raw["checks"][name]) for name in raw["parts"]}
        parts = {name: _part(name, entry, by_part[name]) for name, entry in raw["parts"].items()}
        assignment = Assignment(
            title=raw["title"],
            parts=parts,
            checks={check.id: check for checks in by_part.values() for check in checks},
            limits=raw["limits"],
            from_scratch=_one_of("from_scratch", raw["policy"], FROM_SCRATCH_POLICIES),
            misconceptions=_one_of("misconceptions", raw["policy"], TOLD),
            gradescope=_gradescope(raw.get("gradescope", {})),
            hidden_visibility=_one_of("hidden_visibility", raw["policy"], VISIBILITIES),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise AssignmentError(f"{path.name}: {type(error).__name__}: {error}") from error
    return assignment


def _gradescope(entry: Mapping[str, Any]) -> Gradescope:
    found = Gradescope(**entry)
    if not 60 <= found.deadline_s <= 2400:
        raise ValueError(f"gradescope.deadline_s must be between 60 and 2400, got {found.deadline_s}")
    return found


def _part(name: str, entry: Mapping[str, Any], checks: Sequence[CheckEntry]) -> Part:
    hidden = [check for check in checks if check.hidden]
    if hidden and "hidden_points" in entry:
        raise ValueError(f"hidden_points of {name} must not be given beside its hidden checks")
    return Part(
        name,
        title=entry["title"],
        file=entry["file"],
        class_name=entry["class"],
        config=tuple(entry["config"]),
        inputs=entry["inputs"],
        options=tuple(entry["options"]),
        outputs=entry["outputs"],
        uses=tuple(entry.get("uses", ())),
        probe=_probe(entry.get("probe", {"family": "", "factor": 1.0})),
        hidden_points=entry.get("hidden_points", sum(check.points for check in hidden)),
    )


def _probe(entry: Mapping[str, Any]) -> Probe:
    return Probe(entry["family"], float(entry["factor"]), tuple(entry.get("refused", ())))


def _checks(part: str, groups: Mapping[str, Any]) -> list[CheckEntry]:
    found = []
    for group in ("public", "hidden"):
        for name, entry in groups.get(group, {}).items():
            if entry["points"] < 0:
                raise ValueError(f"points of {part}.{name} must not be negative, got {entry['points']}")
            check_id = f"{part}.{name}"
            found.append(CheckEntry(check_id, part, entry["points"], entry["title"], group == "hidden"))
    return found


def _one_of(key: str, table: Mapping[str, Any], allowed: tuple[str, ...]) -> str:
    value = str(table[key])
    if value not in allowed:
        raise ValueError(f"{key} must be one of {', '.join(allowed)}, got {value}")
    return value
