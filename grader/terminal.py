"""What a person sees in the terminal: a table of the checks, then the message of each that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.grouped import reason
from grader.report import LABEL_WIDTH, LABELS
from grader.text import clean

_MARKS = {
    "passed": ("pass", "green"),
    "carried": ("pass *", "green"),
    "not_run": ("not run", "dim"),
    "blocked": ("blocked", "yellow"),
}
_MAX_PRINTED_LINES = 20


def show(
    document: Mapping[str, Any], console: Console, *, hidden_points: Mapping[str, float] | None = None
) -> None:
    """Print a result.

    Args:
        document: as `report.results` makes it.
        console: where to.
        hidden_points: by part, points of checks that were not run here.
    """
    waiting = {part: (hidden_points or {}).get(part, 0) for part in document["extra_data"]["parts"]}
    console.print(_table(document, waiting))
    if any(test["extra_data"].get("at_fault") and test.get("score") for test in document["tests"]):
        console.print(
            Text("* passes with a right file in place of a wrong one; its points stand", style="dim")
        )
    console.print()
    for line in document["output"].splitlines():
        _show_line(line, console)
    for test, alike in _grouped(document):
        _show_message(test, alike, console)
    if any(waiting.values()):
        console.print(f"\n{sum(waiting.values()):g} more points are for checks that course staff runs.")


def show_printed(printed: str, console: Console) -> None:
    """Print what the submission itself printed, the first lines of it."""
    lines = clean(printed, 10_000).splitlines()
    if lines:
        console.print(Text(f"The submission printed {len(lines)} lines:", style="dim"))
        shown = "\n".join(lines[:_MAX_PRINTED_LINES])
        console.print(Padding(Text(shown, style="dim"), (0, 2)))


def _table(document: Mapping[str, Any], waiting: Mapping[str, float]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("#", justify="right")
    table.add_column("check")
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    part = ""
    for test in document["tests"]:
        if test["extra_data"]["part"] != part:
            part = test["extra_data"]["part"]
            title = test["name"].partition(":")[0]
            points = document["extra_data"]["parts"][part]
            earned = f"{points['score']:g}/{points['max_score']:g}"
            later = Text(f"+{waiting[part]:g} hidden" if waiting[part] else "", style="dim")
            table.add_row("", Text(title, style="bold"), Text(earned, style="bold"), later)
        outcome = test["extra_data"]["outcome"]
        if test["extra_data"].get("at_fault") and outcome == "passed":
            outcome = "carried"
        mark, colour = _MARKS.get(outcome, (outcome.replace("_", " "), "red"))
        table.add_row(
            test["number"],
            Text(test["name"].partition(": ")[2]),
            f"{test.get('score', 0):g}/{test['max_score']:g}",
            Text(mark, style=colour),
        )
    return table


def _show_line(line: str, console: Console) -> None:
    """Print a line of the summary; one of a list hangs behind its dash."""
    if not line.startswith("- "):
        console.print(Text(line, style="bold"))
        return
    console.print(_hanging("-", line[2:]))


def _hanging(label: str, text: str) -> Table:
    """A label, and beside it the text, which wraps beside it."""
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_row(Text(label), Text(text))
    return table


def _grouped(document: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]]:
    """Tests with a message, and the others of their part that have the same cause.

    Told once, by the check that shows it best.
    """
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for test in document["tests"]:
        if test["output"]:
            groups.setdefault(reason(test), []).append(test)
    tells = {found["checks"][0] for found in document["extra_data"]["recognised"]}
    told: list[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]] = []
    for group in groups.values():
        first = next((test for test in group if test["extra_data"]["check"] in tells), group[0])
        told.append((first, [test for test in group if test is not first]))
    return told


def _show_message(test: Mapping[str, Any], alike: Sequence[Mapping[str, Any]], console: Console) -> None:
    heading = Text(f"\n{test['number']} {test['name'].partition(': ')[2]} ", style="bold")
    heading.append(f"({test['extra_data']['check']})", style="dim")
    console.print(heading)
    for line in test["output"].splitlines():
        label, text = line[:LABEL_WIDTH].rstrip(), line[LABEL_WIDTH:]
        if label in LABELS.values() and text:
            console.print(Padding(_hanging(f"{label:<{LABEL_WIDTH - 1}}", text), (0, 2)))
        else:
            console.print(Padding(Text(line), (0, 2)))
    if alike:
        numbers = ", ".join(other["number"] for other in alike)
        console.print(Padding(Text(f"The same cause: {numbers}", style="dim"), (0, 2)))
