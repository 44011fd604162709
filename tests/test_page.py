"""The class report, as a browser shows it: complete, sortable, harmless, and without names where asked."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader import report
from grader.anonymous import without_identities
from grader.assignment import Assignment
from grader.ingest import Entry, Student
from grader.intake import SubmissionFiles
from grader.marks import GRADED, GRADER_ERROR, STUDENT_ERROR, WAITING, Mark, Marks, Override
from grader.misconceptions import misconceptions_about
from grader.overrides import applied
from grader.page import Distribution, Submission, render
from grader.recognise import Recognised
from grader.terms import Outcome, Use

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
in_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver (Debian: chromium, chromium-driver)"
)

# --- a class --------------------------------------------------------------------------------------

KNOWN = next(m for m in misconceptions_about("multi_head") if m.name == "Every position sees the next one")
SEES_THE_NEXT = (
    "future_perturbation",
    "past_matters",
    "both_masks",
    "reference_output",
    "reference_gradients",
)


def lines(observed: str = "output[0, 0] is 1, not 2") -> dict[str, str]:
    """The lines of a check's message."""
    return {
        "given": "B=1, T=2, seed=0",
        "expected": "output equals x",
        "observed": observed,
        "look_at": "block.py",
    }


def document(
    assignment: Assignment,
    wrong: Mapping[str, tuple[Outcome, Mapping[str, str]]],
    *,
    recognised: Sequence[str] = (),
    at_fault: Mapping[str, str] = {},
    uses: Sequence[Use] = (),
    files: Mapping[str, str] | None = None,
    **extra: Any,
) -> dict[str, Any]:
    """A result in which these checks did not pass, those in `recognised` for a reason that is known."""
    rows = [report.Row(check, Outcome.PASSED) for check in assignment.checks.values()]
    for row in rows:
        row.outcome, row.lines = wrong.get(row.entry.id, (Outcome.PASSED, {}))
        row.at_fault = at_fault.get(row.entry.id, "")
        row.with_own = Outcome.FAILED if row.at_fault else None
    found = [Recognised(KNOWN, tuple(recognised))] if recognised else []
    chosen = dict(files or assignment.files)
    about = {
        "sha256": "0" * 64,
        "files": sorted(chosen.values()),
        "parts": chosen,
        "skipped": {"big.py": "too large"},
    }
    run = report.Run(assignment, rows, uses, found)
    return report.results(run, execution_time=1.5, extra={"submission": about} | extra)


def mark(name: str, found: Mapping[str, Any], status: str = GRADED, **about: Any) -> Mark:
    """A mark of one student, who is called so."""
    first, _, last = name.lower().partition(" ")
    key = f"{last}{first}_{len(name)}01"
    student = Student(name, f"{first}.{last}@uni.example", f"u77{len(name)}{first}", f"lms-{last}")
    entry = Entry(key, f"submissions/{key}.zip", (student,), no_files, **about)
    return Mark(entry, status, found, notes=entry.notes)


def no_files() -> SubmissionFiles:
    """A report does not look into submissions."""
    raise AssertionError


def overridden(found: Mark, *overrides: Override) -> Mark:
    """The mark with staff's word on top."""
    return replace(found, document=applied(found.document, overrides), overrides=overrides)


@pytest.fixture(scope="module")
def perfect(assignment: Assignment) -> dict[str, Any]:
    """The result of a right submission."""
    return document(assignment, {})


@pytest.fixture(scope="module")
def sees_the_next(assignment: Assignment) -> dict[str, Any]:
    """The result of a submission with one mistake that is known, in public and hidden checks."""
    checks = [f"multi_head.{name}" for name in SEES_THE_NEXT]
    return document(
        assignment,
        {check: (Outcome.FAILED, lines(f"wrong in {check}")) for check in checks},
        recognised=checks,
    )


@pytest.fixture(scope="module")
def classes(assignment: Assignment, perfect: dict[str, Any], sees_the_next: dict[str, Any]) -> Marks:
    """One of everything."""
    attention_forbidden = document(
        assignment,
        {c.id: (Outcome.FORBIDDEN, lines()) for c in assignment.checks_of("attention")}
        | {"block.shapes": (Outcome.TIMED_OUT, lines("no answer within 20 s"))},
        at_fault={"multi_head.head_slices": "attention.py"},
        uses=[Use("attention", "attention.py", 41, "torch.nn.functional.scaled_dot_product_attention")],
    )
    broken = report.nothing_gradable(
        assignment, "the submission must hold one of attention.py, got notes.txt"
    )
    crashed = document(
        assignment, {"block.dtype": (Outcome.GRADER_ERROR, {"observed": "Traceback: OSError"})}
    )
    ada = mark(
        "Ada Lovelace", sees_the_next, late=True, submitted_at="2026-03-01 23:59", notes=("two uploads",)
    )
    pair = mark("Grace Hopper", sees_the_next, late=False)
    pair = replace(
        pair, entry=replace(pair.entry, students=(*pair.entry.students, Student("José Álvarez", sid="99")))
    )
    nobody = mark("No One", perfect)
    marks = (
        ada,
        mark("Alan Turing", attention_forbidden),
        mark("Barbara Liskov", perfect),
        overridden(
            mark("Edsger Dijkstra", sees_the_next),
            Override("dijkstraedsger_1501", "multi_head.past_matters", 0.5, "right in spirit"),
            Override("dijkstraedsger_1501", "block", 12, "oral exam on blocks"),
            Override("dijkstraedsger_1501", "total", 93, "agreed with the lecturer"),
        ),
        mark("Donald Knuth", broken, STUDENT_ERROR),
        mark("Frances Allen", crashed, GRADER_ERROR),
        pair,
        mark("Radia Perlman", {}, WAITING),
        replace(nobody, entry=replace(nobody.entry, students=())),
    )
    unmatched = {"submissions/readme.docx": "not a folder or a zip"}
    return Marks(
        assignment.title, "canvas", marks, unmatched, (Student("Tim Berners-Lee", "tim@uni.example", "u31"),)
    )


def many(marks: Marks, count: int) -> Marks:
    """A class of so many, of the same results."""
    chosen = [marks.marks[number % len(marks.marks)] for number in range(count)]
    renamed = [
        replace(found, entry=replace(found.entry, id=f"{found.entry.id}_{number}"))
        for number, found in enumerate(chosen)
    ]
    return replace(marks, marks=tuple(renamed))


# --- without a browser ----------------------------------------------------------------------------


def test_torch_is_not_imported() -> None:
    """The report is made in a process that has no use for torch."""
    code = "import sys, grader.page; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_same_marks_give_the_same_bytes(classes: Marks) -> None:
    """However long grading took."""
    slower = replace(
        classes,
        marks=tuple(
            replace(m, document={**m.document, "execution_time": 99.25}) if m.document else m
            for m in classes.marks
        ),
    )
    assert render(classes) == render(slower)
    assert render(classes, anonymous=True) == render(slower, anonymous=True)


def test_bins_hold_their_lower_edge_and_the_last_one_the_maximum() -> None:
    """What staff gave beyond the maximum counts there, too."""
    found = Distribution("Total", [0, 9.99, 10, 89.9, 90, 100, 120], 100)
    assert found.counts == [2, 1, 0, 0, 0, 0, 0, 0, 1, 3]
    assert Distribution("Part", [0.3, 0.6, 0.7], 1).counts == [0, 0, 0, 1, 0, 0, 1, 1, 0, 0]


def test_quartiles_of_one_score_are_that_score() -> None:
    """A class of one has a report."""
    assert Distribution("Total", [7], 10).quartiles == [7, 7, 7]


def test_a_mistake_is_told_once(classes: Marks) -> None:
    """Checks that a misconception explains stand together, a public one first, in full."""
    groups = Submission("s1", classes.marks[0]).mistakes
    assert [len(group) for group in groups] == [len(SEES_THE_NEXT)]
    assert not groups[0][0].hidden
    assert any(row.hidden for row in groups[0])


def test_an_override_stands_by_itself(classes: Marks) -> None:
    """What staff has set is not hidden among others of the same cause."""
    groups = Submission("s1", classes.marks[3]).mistakes
    assert sorted(len(group) for group in groups) == [1, len(SEES_THE_NEXT) - 1]


def test_the_grader_s_failure_costs_no_points(classes: Marks) -> None:
    """It is told, and is no check that the class lost points by."""
    failed = Submission("s1", classes.marks[5])
    assert [row.lost for group in failed.mistakes for row in group] == [0]
    assert failed.total is None
    assert not failed.counted


def test_a_fault_that_no_check_of_its_own_sees_is_told(assignment: Assignment, classes: Marks) -> None:
    """A later part passes only without the file, and the file loses nothing: staff should look at it."""
    blamed = document(assignment, {}, at_fault={"multi_head.head_slices": "attention.py"})
    assert Submission("s1", mark("Alan Turing", blamed)).unseen == {"attention.py"}
    assert not any(Submission("s1", each).unseen for each in classes.marks)


# --- in a browser ---------------------------------------------------------------------------------


class Browser:
    """A headless Chromium with one page open."""

    def __init__(self, folder: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        switches = "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking"
        switches += " disable-component-update disable-sync disable-dev-shm-usage window-size=1200,900"
        for switch in (*switches.split(), f"user-data-dir={folder / 'profile'}"):
            options.add_argument(f"--{switch}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
        self._file = folder / "report.html"

    def open(self, page: str) -> None:
        """Open it from the disk."""
        self.driver.get_log("browser")
        self._file.write_text(page, encoding="utf-8")
        self.driver.get("about:blank")
        self.driver.get(self._file.as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of some JavaScript."""
        return self.driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """What the console has."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def tell(self, command: str, **parameters: Any) -> Any:
        """A command of the DevTools."""
        return self.driver.execute_cdp_cmd(command, parameters)

    def width(self, pixels: int) -> None:
        """Make the window so wide."""
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=pixels,
            height=740,
            deviceScaleFactor=1,
            mobile=pixels < 600,
        )

    def scheme(self, name: str) -> None:
        """Prefer light or dark."""
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def text(self, selector: str) -> str:
        """All text below an element, shown or not."""
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def column(self, table: int, column: int) -> list[str]:
        """What the cells of a column are sorted by."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll('table.sortable')[arguments[0]].tBodies[0].rows].map(row => "
            "row.cells[arguments[1]].dataset.value ?? row.cells[arguments[1]].textContent.trim())",
            table,
            column,
        )
        return found

    def sort(self, table: int, column: int) -> str:
        """Press a heading; return the direction that it has then."""
        heading = (
            "document.querySelectorAll('table.sortable')[arguments[0]].tHead.rows[0].cells[arguments[1]]"
        )
        return str(
            self.run(f"{heading}.querySelector('button').click(); return {heading}.ariaSort", table, column)
        )

    def search(self, words: str) -> list[str]:
        """Look for something; return the names of the submissions that are shown then."""
        self.run(
            "const box = document.getElementById('search'); box.value = arguments[0];"
            "box.dispatchEvent(new Event('input'))",
            words,
        )
        found: list[str] = self.run(
            "return [...document.querySelectorAll('#all tbody tr')].filter(row => row.offsetParent)"
            ".map(row => row.cells[0].textContent.trim())"
        )
        return found


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.driver.quit()


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """The browser as a desk has it."""
    chromium.width(1200)
    chromium.scheme("light")
    return chromium


@in_browser
def test_the_head_counts_the_class(browser: Browser, classes: Marks) -> None:
    """Submissions by status, who is missing, mean and median of what was graded."""
    browser.open(render(classes))
    tiles = browser.run(
        "return Object.fromEntries([...document.querySelectorAll('.tiles > div')]"
        ".map(tile => [tile.children[0].textContent, tile.children[1].textContent]))"
    )
    counts = {"Submissions": "9", "Graded": "6", "Nothing gradable": "1", "Grader error": "1", "Waiting": "1"}
    assert tiles.items() >= (counts | {"Missing": "1"}).items()
    scores = sorted(m.document["score"] for m in classes.marks if m.status == GRADED)
    assert tiles["Mean of 100"] == f"{round(sum(scores) / 6, 1):g}"
    assert tiles["Median"] == f"{round((scores[2] + scores[3]) / 2, 1):g}"


@in_browser
def test_what_needs_attention_is_named_with_its_reason(browser: Browser, classes: Marks) -> None:
    """Grader errors, nothing gradable, unmatched, missing, unknown, late, set by hand."""
    browser.open(render(classes))
    concerns = browser.run(
        "return Object.fromEntries([...document.querySelectorAll('.concern')]"
        ".map(c => [c.querySelector('h3').firstChild.textContent.trim(), c.querySelector('ul').textContent]))"
    )
    assert "Frances Allen" in concerns["The grader failed: not final"]
    assert "OSError" in concerns["The grader failed: not final"]
    assert "got notes.txt" in concerns["Nothing gradable"]
    assert "oneno_601" in concerns["No known student"]
    assert "Radia Perlman" in concerns["Not graded yet"]
    assert concerns["Forbidden operators"].strip() == "Alan Turing"
    assert concerns["Late"].strip() == "Ada Lovelace"
    assert concerns["Set by hand"].strip() == "Edsger Dijkstra"
    assert "Tim Berners-Lee" in concerns["Handed in nothing"]
    assert "not a folder or a zip" in concerns["In the download, of no submission"]


@in_browser
def test_a_class_without_trouble_has_no_section_for_it(browser: Browser, classes: Marks) -> None:
    """Nothing is shown where there is nothing."""
    browser.open(render(replace(classes, marks=classes.marks[2:3], unmatched={}, missing=())))
    assert browser.run("return document.getElementById('attention')") is None
    assert browser.run("return document.getElementById('misconceptions')") is None


@in_browser
def test_details_tell_where_the_points_went(browser: Browser, classes: Marks) -> None:
    """Number, title, points, message, who sees it, and what staff has set, before and after, with the reason."""
    browser.open(render(classes))
    ada, turing, dijkstra = (" ".join(browser.text(f"#s{number}").split()) for number in (1, 2, 4))
    assert "Look at this first" in ada
    assert "2.6 The future does not change the past −3 of 3 failed" in ada
    assert "observed wrong in multi_head.future_perturbation" in ada
    assert "The same cause: 2.7, 2.13, 2.19, 2.20" in ada
    assert "of 7 failed hidden" in ada
    assert "two uploads" in ada
    assert "big.py too large" in ada
    assert "attention.py:41 uses torch.nn.functional.scaled_dot_product_attention" in turing
    assert "1 of them only with a right file in place of an earlier wrong one" in turing
    assert "0 → 0.5: right in spirit" in dijkstra
    assert "30 → 12: oral exam on blocks" in dijkstra
    assert "→ 93: agreed with the lecturer" in dijkstra


@in_browser
def test_a_message_stands_on_the_page_once(browser: Browser, classes: Marks) -> None:
    """The page of a large class stays small."""
    page = render(replace(classes, marks=classes.marks[:1]))
    assert [page.count(f"wrong in multi_head.{check}\n") for check in SEES_THE_NEXT] == [1] * len(
        SEES_THE_NEXT
    )
    browser.open(page)
    assert browser.run("return document.querySelectorAll('pre').length") == len(SEES_THE_NEXT)


@in_browser
def test_points_lost_are_counted_by_check(browser: Browser, classes: Marks) -> None:
    """First what cost the class most; an override counts as staff has set it."""
    browser.open(render(classes))
    rows = browser.run(
        "return [...document.querySelector('#checks tbody').rows].map(row => [...row.cells].map(c => c.innerText.trim()))"
    )
    by_number = {row[0]: row for row in rows}
    points = [float(row[6]) for row in rows]
    assert points == sorted(points, reverse=True)
    assert by_number["2.7"][4:7] == ["3", "50 %", "2.5"]
    assert by_number["2.19"][3] == "hidden"
    assert by_number["1.1"][7] == "forbidden 1"
    assert by_number["3.1"][7] == "timed out 1"


@in_browser
def test_misconceptions_are_counted_and_lead_to_who_has_them(browser: Browser, classes: Marks) -> None:
    """By name, with a link to each submission."""
    browser.open(render(classes))
    row = browser.run(
        "return [...document.querySelector('#misconceptions tbody tr').cells].map(c => c.innerText.trim())"
    )
    name, _, told = row[0].partition("\n")
    assert (name, told.strip()) == (KNOWN.name, f"{KNOWN.says} {KNOWN.asks}")
    assert row[1:4] == ["multi_head", "3", "50 %"]
    assert row[4] == "Ada Lovelace, Edsger Dijkstra, Grace Hopper, José Álvarez"


@in_browser
def test_each_column_sorts_both_ways(browser: Browser, classes: Marks) -> None:
    """Numbers by their value, texts as people order them; what is empty stays last."""
    browser.open(render(classes))
    shapes = browser.run(
        "return [...document.querySelectorAll('table.sortable')].map(t => t.tHead.rows[0].cells.length)"
    )
    assert shapes == [8, 5, 9]
    for table, columns in enumerate(shapes):
        for column in range(columns):
            numeric = browser.run(
                "return document.querySelectorAll('table.sortable')[arguments[0]].tHead.rows[0].cells[arguments[1]].className",
                table,
                column,
            )
            if browser.sort(table, column) == "descending":
                browser.sort(table, column)
            for sign in (1, -1):
                shown = browser.column(table, column)
                filled = [text for text in shown if text]
                assert shown == filled + [""] * (len(shown) - len(filled))
                compare = (
                    "Number(a) - Number(b)"
                    if numeric
                    else "a.localeCompare(b, 'en', {numeric: true, sensitivity: 'base'})"
                )
                in_order = f"return arguments[0].every((b, i, all) => {{ const a = all[Math.max(i - 1, 0)]; return {sign} * ({compare}) <= 0 }})"
                assert browser.run(in_order, filled), (table, column, filled)
                browser.sort(table, column)


@in_browser
def test_numbers_of_checks_sort_as_numbers(browser: Browser, classes: Marks) -> None:
    """1.2 comes before 1.10."""
    browser.open(render(classes))
    assert browser.sort(0, 0) == "ascending"
    numbers = browser.column(0, 0)
    assert numbers == sorted(numbers, key=lambda number: tuple(map(int, number.split("."))))


@in_browser
def test_a_heading_sorts_by_the_keyboard_and_says_so(browser: Browser, classes: Marks) -> None:
    """It is a button, its focus can be seen, and only one heading says that it sorts."""
    from selenium.webdriver.common.keys import Keys

    browser.open(render(classes))
    button = browser.driver.find_element("css selector", "#all thead button")
    search = browser.driver.find_element("id", "search")
    search.send_keys(Keys.TAB)
    while browser.driver.switch_to.active_element != button:
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    button.send_keys(Keys.ENTER)
    orders = browser.run("return [...document.querySelectorAll('#all thead th')].map(th => th.ariaSort)")
    assert orders == ["ascending", *["none"] * 8]


@in_browser
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("lovelace", ["Ada Lovelace"]),
        ("  LOVE   ada", ["Ada Lovelace"]),
        ("jose alvarez", ["Grace Hopper, José Álvarez"]),
        ("alan.turing@uni", ["Alan Turing"]),
        ("u7714barbara", ["Barbara Liskov"]),
        ("knuthdonald_1201", ["Donald Knuth"]),
        ("grader error", ["Frances Allen"]),
        ("waiting", ["Radia Perlman"]),
        ("block.shapes timed", ["Alan Turing"]),
        ("3.1 forbidden", ["Alan Turing"]),
        ("{misconception} late", ["Ada Lovelace"]),
        ("nobody of this name", []),
    ],
)
def test_the_search_finds(browser: Browser, classes: Marks, words: str, found: list[str]) -> None:
    """All words must be there, in any case and with or without accents."""
    browser.open(render(classes))
    wanted = words.format(misconception=KNOWN.name)
    shown = browser.search(wanted)
    assert [name for name in shown if name in found] == found
    assert set(shown) <= {*found, "Donald Knuth"}  # all of his checks are missing
    assert browser.text("#found") == f"{len(shown)} of 9"
    assert len(browser.search("")) == 9


@in_browser
def test_every_link_leads_somewhere_on_the_page(browser: Browser, classes: Marks) -> None:
    """And nowhere else."""
    for anonymous in (False, True):
        browser.open(render(classes, anonymous=anonymous))
        hrefs = browser.run(
            "return [...document.querySelectorAll('[href]')].map(a => a.getAttribute('href'))"
        )
        ids = browser.run("return [...document.querySelectorAll('[id]')].map(a => '#' + a.id)")
        assert set(hrefs) <= set(ids)
        assert len(ids) == len(set(ids))


@in_browser
def test_a_link_opens_the_details_again_and_again(browser: Browser, classes: Marks) -> None:
    """Also if they were closed by hand since."""
    browser.open(render(classes))
    link = "document.querySelector('#all a[href=\"#s4\"]')"
    for _ in range(2):
        browser.run(f"{link}.click()")
        # The event that opens comes a moment after the click.
        shown = browser.driver.execute_async_script(
            "const done = arguments[0]; setTimeout(() => { const d = document.getElementById('s4');"
            "done(d.open && d.getBoundingClientRect().top >= 0 && d.getBoundingClientRect().top < innerHeight) }, 100)"
        )
        assert shown
        browser.run("document.getElementById('s4').open = false")


@in_browser
def test_printing_opens_everything_and_closes_it_again(browser: Browser, classes: Marks) -> None:
    """What is on paper cannot be opened there."""
    browser.open(render(classes))
    browser.run(
        "addEventListener('beforeprint', () => window.closed_ones = document.querySelectorAll('details:not([open])').length)"
    )
    browser.driver.print_page()
    assert browser.run("return window.closed_ones") == 0
    assert browser.run("return document.querySelectorAll('details[open]').length") == 0


@in_browser
@pytest.mark.parametrize("kind", ["whole", "empty", "waiting", "anonymous"])
def test_the_console_stays_empty(browser: Browser, classes: Marks, kind: str) -> None:
    """No errors, no violations of the policy, and nothing is fetched; whatever class it is."""
    chosen = {
        "empty": Marks("HW3", "folders", (), {}),
        "waiting": replace(classes, marks=classes.marks[7:8] * 3),
    }
    browser.open(render(chosen.get(kind, classes), anonymous=kind == "anonymous"))
    for table, column in ((0, 0), (0, 4)) if kind == "whole" else ():
        browser.sort(table, column)
    assert browser.complaints() == []
    assert browser.run("return performance.getEntriesByType('resource').length") == 0


@in_browser
@pytest.mark.parametrize("kind", ["whole", "anonymous", "empty"])
def test_a_phone_never_scrolls_the_page_sideways(browser: Browser, classes: Marks, kind: str) -> None:
    """At 360 pixels, everything open, with names and words that do not end."""
    long = replace(classes.marks[0], entry=replace(classes.marks[0].entry, id="i" * 300, source="s" * 300))
    long = replace(
        long,
        entry=replace(long.entry, students=(Student("N" * 400, "m" * 200, "5" * 200),)),
        notes=("n" * 400,),
    )
    class_ = replace(classes, marks=(long, *classes.marks), unmatched={"p" * 300: "r" * 300}, title="T" * 80)
    browser.width(360)
    browser.open(
        render(class_ if kind != "empty" else Marks("HW3", "folders", (), {}), anonymous=kind == "anonymous")
    )
    browser.run(
        "document.querySelectorAll('details').forEach(d => { d.open = true; d.style.contentVisibility = 'visible' })"
    )
    assert browser.run("return document.documentElement.scrollWidth") == 360


CONTRAST = """
const channel = value => { value /= 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4 };
const parse = text => text.match(/[\\d.]+/g).map(Number);
const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const ground = element => {
  for (; element; element = element.parentElement) {
    const colour = parse(getComputedStyle(element).backgroundColor);
    if (colour[3] !== 0) return colour;
  }
};
const poor = new Set();
document.querySelectorAll('details').forEach(d => { d.open = true });
for (const element of document.body.querySelectorAll('*')) {
  if (!['SCRIPT', 'STYLE'].includes(element.tagName) && [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim())) {
    const style = getComputedStyle(element);
    const fore = luminance(parse(element.namespaceURI.endsWith('svg') ? style.fill : style.color));
    const back = luminance(ground(element));
    const ratio = (Math.max(fore, back) + 0.05) / (Math.min(fore, back) + 0.05);
    if (ratio < 4.5) poor.add(`${element.tagName}.${element.className.baseVal ?? element.className} ${ratio.toFixed(2)}`);
  }
}
return [...poor];
"""


@in_browser
@pytest.mark.parametrize(("scheme", "bright"), [("light", True), ("dark", False)])
def test_text_can_be_read_in_both_schemes(
    browser: Browser, classes: Marks, scheme: str, bright: bool
) -> None:
    """Every text has a contrast of 4.5 and more, on a page that is as bright as asked for."""
    browser.scheme(scheme)
    browser.open(render(classes))
    assert browser.run(CONTRAST) == []
    ground = browser.run("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (min(ground) > 200) is bright
    assert (max(ground) < 60) is not bright


@in_browser
def test_a_class_of_400_stays_usable(browser: Browser, classes: Marks) -> None:
    """It is not large, opens soon, and all details are closed until asked for."""
    page = render(many(classes, 400))
    assert len(page.encode()) < 20e6
    browser.open(page)
    assert browser.run("return performance.getEntriesByType('navigation')[0].loadEventEnd") < 20_000
    assert browser.run("return document.querySelectorAll('details.submission:not([open])').length") == 400
    assert len(browser.search("turing")) > 40
    assert browser.sort(2, 2) == "ascending"


# --- hostile texts --------------------------------------------------------------------------------

HOSTILE = [
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=1</script>",
    "</style></pre></details><script>window.hacked=1</script>",
    '"><svg onload=window.hacked=1>',
    "' autofocus onfocus=window.hacked=1 x='",
    "{{7*7}}{% raw %}",
    "javascript:window.hacked=1",
    "--><!-- <script>",
    "&lt;b&gt; &amp;amp;",
]


def hostile(assignment: Assignment, text: str) -> Marks:
    """A class in which everything that may come from outside is this text."""
    found = document(
        assignment,
        {"block.shapes": (Outcome.RAISED, lines(text)), "block.dtype": (Outcome.FAILED, lines(text))},
        uses=[Use("block", text, 3, text)] if assignment.from_scratch != "withhold" else (),
        files=dict.fromkeys(assignment.files, text),
        grader_errors={text: text},
        recognition_error=text,
    )
    found["output"] = f"{text}\n\nLook at this first:\n- {text}"
    found["extra_data"]["recognised"] = [
        dict.fromkeys(("misconception", "name", "says", "asks"), text)
        | {"part": "block", "checks": ["block.dtype"]}
    ]
    found["extra_data"]["from_scratch"]["uses"] = [
        {"part": "block", "file": text, "line": 3, "operator": text}
    ]
    entry = Entry(text, text, (Student(text, text, text, text),), no_files, None, text, (text,))
    own = (
        Override(text, "block.shapes", 1, text),
        Override(text, "block", 3, text),
        Override(text, "total", 3, text),
    )
    marks = [
        Mark(entry, GRADED, applied(found, own), own, (text,)),
        Mark(
            replace(entry, id=f"{text}2", students=()),
            STUDENT_ERROR,
            report.nothing_gradable(assignment, text),
            (),
            (text,),
        ),
        Mark(replace(entry, id=f"{text}3"), GRADER_ERROR, found, (), (text,)),
    ]
    return Marks(text, text, tuple(marks), {text: text}, (Student(text, text, text, text),))


@in_browser
@pytest.mark.parametrize("text", HOSTILE)
def test_what_others_wrote_is_text(browser: Browser, assignment: Assignment, text: str) -> None:
    """Wherever it stands, it is shown as it is, and runs nothing."""
    browser.open(render(hostile(assignment, text)))
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert browser.run("return window.hacked") is None
    assert browser.complaints() == []
    assert browser.text("#s1 .who") == text
    assert browser.text("#s1 .leading") == text
    assert (
        browser.run(
            "return [...document.querySelectorAll('#s1 pre')].filter(p => p.textContent.includes(arguments[0])).length",
            text,
        )
        >= 2
    )
    assert browser.text("title").startswith(text)
    assert (
        browser.run("return document.querySelectorAll('body img, svg[onload], [onfocus], [onerror]').length")
        == 0
    )
    assert browser.run("return document.scripts.length") == 1


@in_browser
def test_a_script_that_got_through_would_not_run(browser: Browser, classes: Marks) -> None:
    """The policy allows one script and one style, by their hashes."""
    attack = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'><a id=bad href='javascript:window.hacked=1'>x</a>"
    style = "<style>body { display: none }</style>"
    browser.open(render(classes).replace("</main>", f"{attack}{style}</main>"))
    browser.run("document.getElementById('bad').click()")
    assert browser.run("return window.hacked") is None
    assert browser.run("return getComputedStyle(document.body).display") == "block"
    assert len(browser.search("lovelace")) == 1


def test_control_and_direction_characters_are_gone(assignment: Assignment) -> None:
    """Nothing turns the direction of a line around, rings a bell or ends the text."""
    page = render(hostile(assignment, "a\u202eb\u2066c\x07d\x00e\x1b[31mf\ud800g\u200fh"))
    assert not set("\u202e\u2066\x07\x00\x1b\ud800\u200f") & set(page)
    assert "a\N{REPLACEMENT CHARACTER}b" in page


# --- without names --------------------------------------------------------------------------------


def identities(marks: Marks) -> set[str]:
    """All that tells who somebody is."""
    found = set(marks.unmatched)
    for student in [*marks.missing, *(s for m in marks.marks for s in m.entry.students)]:
        found |= {student.name, student.email, student.sid, student.lms_id, *student.name.split()}
    for one in marks.marks:
        found |= {one.entry.id, one.entry.source}
    return {text for text in found if len(text) > 2}


Telling = Callable[[str], Marks]


@pytest.fixture
def telling(assignment: Assignment, classes: Marks) -> Telling:
    """Makes a class whose first submission says something in a message."""

    def made(text: str) -> Marks:
        files = dict(assignment.files) | {"block": "lovelace_hw/block.py"}
        wrong = {"block.shapes": (Outcome.RAISED, lines(text)), "block.dtype": (Outcome.RAISED, lines(text))}
        found = document(assignment, wrong, files=files)
        found["extra_data"]["submission"]["files"] += ["lovelace_hw/my_tricks.py"]
        first = replace(classes.marks[0], document=found)
        return replace(classes, marks=(first, *classes.marks[1:]))

    return made


def test_an_anonymous_page_has_no_identity_in_it(classes: Marks) -> None:
    """Not in what is shown, not in the source, not in what the search goes through."""
    page = render(classes, anonymous=True)
    told = [
        text
        for text in identities(classes)
        if re.search(rf"(?<!\w){re.escape(text)}(?!\w)", page, re.IGNORECASE)
    ]
    assert told == []
    for reason in ("right in spirit", "oral exam", "agreed with", "notes.txt", "two uploads", "23:59"):
        assert reason in render(classes)
        assert reason not in page


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("ADA's own lovelace", "…'s own …"),
        ("File lovelace_hw/my_tricks.py, line 3", "File …, line 3"),
        ("File lovelace_hw/block.py, line 3", "File …, line 3"),
        ("from ada.lovelace@uni.example", "from …"),
        ("adalovelace2 and lovelaceada", "…2 and …"),
        ("copied from Alan Turing, u7711alan", "copied from …, …"),
        ("thanks to Jose Alvarez and José Álvarez", "thanks to … and …"),
        ("asked tim@uni.example", "asked …"),
        ("an adaptation of block.py", "an adaptation of block.py"),
    ],
)
def test_messages_lose_who_they_speak_of(telling: Telling, said: str, shown: str) -> None:
    """Names, in any spelling, and files; a short name inside another word stays, its gap would tell."""
    page = render(telling(f"ValueError: {said}."), anonymous=True)
    told = shown.replace("'", "&#39;")
    assert f"observed  ValueError: {told}.\n" in page
    assert f"ValueError: {told}. (" in page


@pytest.mark.parametrize(
    ("known", "said", "shown"),
    [
        ("smithbob", "by Bob Smith and SMITH, Bob", "by … and …"),
        ("lovelaceadaking", "for Ada-King Lovelace", "for …"),
        ("Jürgen Müller", "from Juergen Mueller, Jurgen Muller", "from …, …"),
        ("octo-cat", "see octocat/hw3", "see …/hw3"),
        ("Li", "ask Li, a list of li", "ask …, a list of li"),
    ],
)
def test_names_that_are_known_otherwise(telling: Telling, known: str, said: str, shown: str) -> None:
    """As Canvas squashes them, without umlauts, without signs; two letters only as a name is written."""
    classes = telling(f"ValueError: {said}.")
    other = classes.marks[1]
    entry = replace(other.entry, students=(Student(known),))
    classes = replace(classes, marks=(classes.marks[0], replace(other, entry=entry), *classes.marks[2:]))
    assert f"observed  ValueError: {shown}.\n" in render(classes, anonymous=True)


def test_numbers_do_not_follow_the_names(classes: Marks, perfect: dict[str, Any]) -> None:
    """Submission 1 is not the first in the list of the class."""
    names = [f"{chr(ord('A') + number)}nna Meyer" for number in range(20)]
    marks = [replace(mark(name, perfect), status=GRADED) for name in names]
    totals = [overridden(m, Override(m.entry.id, "total", number, "x")) for number, m in enumerate(marks)]
    order = [m.document["score"] for m in without_identities(replace(classes, marks=tuple(totals))).marks]
    assert sorted(order) == list(range(20))
    assert order not in (list(range(20)), list(range(19, -1, -1)))


@in_browser
def test_an_anonymous_page_tells_the_same_of_the_class(browser: Browser, classes: Marks) -> None:
    """Counts, checks, misconceptions and messages; the submissions are numbered."""
    browser.open(render(classes))
    named = {part: browser.text(f"#{part} tbody") for part in ("checks",)} | {"tiles": browser.text(".tiles")}
    browser.open(render(classes, anonymous=True))
    assert {part: browser.text(f"#{part} tbody") for part in ("checks",)} | {
        "tiles": browser.text(".tiles")
    } == named
    assert sorted(browser.search("")) == [f"Submission {number}" for number in range(1, 10)]
    assert len(browser.search(KNOWN.name)) == 3
    assert "wrong in multi_head.future_perturbation" in browser.text("#details")
