"use strict";

// --- tables that are sorted by the heading that is pressed ---------------------------------------

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/** What a row is sorted by; nothing where the cell is empty. */
function valueOf(row, column, numeric) {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.textContent.trim();
  return numeric && text !== "" ? Number(text) : text;
}

/** Sort the rows; those without a value stay last, whatever the direction. */
function sortBy(table, heading, direction) {
  const column = heading.cellIndex;
  const numeric = heading.classList.contains("n");
  const sign = direction === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row, column, numeric), row]);
  rows.sort(([a], [b]) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    return sign * (numeric ? a - b : collator.compare(a, b));
  });
  table.tBodies[0].append(...rows.map(([, row]) => row));
  for (const other of heading.parentNode.cells) {
    other.setAttribute("aria-sort", other === heading ? direction : "none");
  }
}

for (const table of document.querySelectorAll("table.sortable")) {
  table.tHead.addEventListener("click", (event) => {
    const heading = event.target.closest("button")?.closest("th");
    if (!heading) return;
    const ascends = heading.getAttribute("aria-sort") === "ascending";
    sortBy(table, heading, ascends ? "descending" : "ascending");
  });
}

// --- the search ----------------------------------------------------------------------------------

const search = document.getElementById("search");

/** Text without case and accents. */
function plain(text) {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}

if (search) {
  const rows = [...document.getElementById("all").tBodies[0].rows];
  const texts = new Map(rows.map((row) => [row, plain(`${row.textContent} ${row.dataset.search}`)]));
  const found = document.getElementById("found");
  const show = () => {
    const words = plain(search.value).split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !words.every((word) => texts.get(row).includes(word));
    const shown = rows.filter((row) => !row.hidden).length;
    found.textContent = words.length ? `${shown} of ${rows.length}` : "";
  };
  search.addEventListener("input", show);
  document.getElementById("tools").hidden = false;
  show(); // a page that is loaded again keeps what was typed
}

// --- details -------------------------------------------------------------------------------------

/** Open what an address within the page leads to. */
function reveal() {
  const target = document.getElementById(location.hash.slice(1));
  if (!(target instanceof HTMLDetailsElement)) return;
  target.open = true;
  target.scrollIntoView();
}

addEventListener("hashchange", reveal);
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (link && link.hash === location.hash) reveal(); // no change of the address, so no hashchange
});
reveal();

const submissions = [...document.querySelectorAll("details.submission")];
const open = document.getElementById("open");
open.hidden = submissions.length === 0;
open.addEventListener("click", () => {
  const opening = submissions.some((submission) => !submission.open);
  for (const submission of submissions) submission.open = opening;
  open.textContent = opening ? "Close all" : "Open all";
});

let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const details of closed) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of closed) details.open = false;
});
