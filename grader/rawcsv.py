"""CSV that is edited in place: a cell that is not set keeps the very characters it was written with."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """The cells as they stand in the file, with their quotes.

    Attributes:
        start: a byte order mark, or nothing.
        ends: the line end of each row.
    """

    start: str
    delimiter: str
    rows: list[list[str]]
    ends: list[str]

    def get(self, row: int, column: int) -> str:
        """The value of a cell; "" where the row is shorter."""
        cells = self.rows[row]
        return _value(cells[column]) if column < len(cells) else ""

    def set(self, row: int, column: int, value: str) -> None:
        """Give a cell another value."""
        cells = self.rows[row]
        cells += [""] * (column + 1 - len(cells))
        special = any(character in value for character in f'{self.delimiter}"\r\n')
        cells[column] = '"' + value.replace('"', '""') + '"' if special else value

    def copy(self) -> Table:
        """Another one, to be changed apart."""
        return Table(self.start, self.delimiter, [list(cells) for cells in self.rows], self.ends)

    @property
    def text(self) -> str:
        """The file."""
        lines = (self.delimiter.join(cells) + end for cells, end in zip(self.rows, self.ends, strict=True))
        return self.start + "".join(lines)


def parse(text: str, delimiter: str) -> Table:
    """Read a table; what is not quoted properly is taken as it stands."""
    start = "\ufeff" if text.startswith("\ufeff") else ""
    gap = re.escape(delimiter)
    cell = re.compile(rf'("[^"]*(?:""[^"]*)*"(?=[{gap}\r\n]|\Z)|[^{gap}\r\n]*)({gap}|\r\n|\r|\n|\Z)')
    table = Table(start, delimiter, [], [])
    cells: list[str] = []
    for match in cell.finditer(text, len(start)):
        if not cells and match.end() == match.start() == len(text):
            break  # nothing stands behind the last line end
        cells.append(match[1])
        if match[2] != delimiter:
            table.rows.append(cells)
            table.ends.append(match[2])
            cells = []
        if not match[2]:
            break
    return table


def _value(cell: str) -> str:
    if len(cell) > 1 and cell.startswith('"') and cell.endswith('"'):
        return cell[1:-1].replace('""', '"')
    return cell
