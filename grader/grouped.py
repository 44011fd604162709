"""Which checks of a result fail for the same reason, so that each mistake is told once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from grader.report import LABELS
from grader.terms import Outcome

_SAME_FOR_ALL = {
    *(Outcome.NOT_IMPLEMENTED, Outcome.MISSING, Outcome.NOT_IMPORTABLE, Outcome.FORBIDDEN),
    *(Outcome.BLOCKED, Outcome.NOT_RUN, Outcome.PASSED, Outcome.GRADER_ERROR),
}
"""Outcomes that all checks of a part have for the same reason, if the same file is at fault."""

_SAME_LINE = {Outcome.RAISED, Outcome.TIMED_OUT, Outcome.DIED, Outcome.OUT_OF_MEMORY}
_SAME_WORDS = {Outcome.BAD_RETURN}


def reason(test: Mapping[str, Any]) -> tuple[str, ...]:
    """The same for the checks of one part that fail for the same reason, as far as can be told."""
    about = test["extra_data"]
    outcome = Outcome(about["outcome"])
    if about.get("cause"):
        return (about["part"], "", about["cause"])
    what = about["check"]
    if outcome in _SAME_FOR_ALL:
        what = about.get("at_fault", "")
    elif outcome in _SAME_LINE:
        what = _line(test, "look_at", r"\S+\.py(?::\d+)?$") or what
    elif outcome in _SAME_WORDS:
        what = _line(test, "observed", r".+") or what
    return (about["part"], outcome.value, what)


def _line(test: Mapping[str, Any], label: str, wanted: str) -> str:
    """What the message says behind a label, if it is of that form."""
    found = re.search(rf"^{LABELS[label]} +({wanted})", test["output"], re.MULTILINE)
    return found.group(1) if found else ""
