"""Tables of text without pyarrow, with the cell types and the output format of Arrow's reader and writer."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.core.checks import LARGEST_EXACT, as_array
from truerank.core.errors import DataFileError

# Cells without a value, and those of each type, in the order in which the types of a column are tried.
_NO_VALUE = frozenset(
    ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA", "NULL",
     "NaN", "n/a", "nan", "null")
)  # fmt: skip
_WHOLE = re.compile(r"[ \t]*(?:-?\d+|0[xX][0-9a-fA-F]{1,16})[ \t]*", re.ASCII)
_TRUTH = {"true": True, "True": True, "TRUE": True, "1": True} | dict.fromkeys(("false", "False", "FALSE", "0"), False)
_NUMBER = re.compile(
    r"[ \t]*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan(?:\(\w*\))?)[ \t]*", re.ASCII | re.I
)


@dataclass(frozen=True)
class TextTable:
    """A table of text with the names of its columns, and the columns as arrays (num_rows,)."""

    column_names: list[str]
    columns: list[np.ndarray]
    num_rows: int

    @property
    def num_columns(self) -> int:
        return len(self.columns)

    def column(self, place: int) -> np.ndarray:
        """Return the column at a position, from 0."""
        return self.columns[place]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[self.column_names.index(name)]


def read_text_table(text: bytes, delimiter: str, decimal: str, texts: Collection[str], name: str = "") -> TextTable:
    r"""Return the table of a delimited text; the columns `texts` stay text. Raises DataFileError for rows of another
    length.

    A column has the first type that suits all its cells with a value: whole number, truth value, number or text.

    >>> table = read_text_table(b"id,y,when,score\n007,1,12:30,.5\n8,,NA,1e3\n", ",", ".", ["id"])
    >>> [table[name].tolist() for name in table.column_names]
    [['007', '8'], [1.0, nan], ['12:30', 'NA'], [0.5, 1000.0]]
    """
    lines = io.StringIO(text.decode("utf-8-sig"), newline="")
    try:
        names, *rows = filter(None, csv.reader(lines, delimiter=delimiter))
    except csv.Error as error:
        raise DataFileError(f"cannot be read as a table: {error}", name, code="unreadable") from error
    for number, row in enumerate(rows, 1):
        if len(row) != len(names):
            shown = delimiter.join(row)[:60]
            what = f"row {number}: expected {len(names)} columns, got {len(row)}: {shown!r}"
            raise DataFileError(what, name)
    cells = zip(*rows) if rows else [()] * len(names)
    columns = [_texts(own) if label in texts else _typed(own, decimal) for label, own in zip(names, cells)]
    return TextTable(names, columns, len(rows))


def _texts(cells: Sequence[object]) -> np.ndarray:
    return np.array([*cells, None], dtype=object)[:-1]


def _typed(cells: Sequence[str], decimal: str) -> np.ndarray:
    """Return the cells of a column as an array; an empty cell is nan, or None in a column of truth values."""
    given = [cell for cell in cells if cell not in _NO_VALUE]
    if not given:
        return _texts([None] * len(cells))
    if all(map(_WHOLE.fullmatch, given)):
        numbers = [None if cell in _NO_VALUE else _whole(cell) for cell in cells]
        known = [number for number in numbers if number is not None]
        if min(known) >= -(1 << 63) and max(known) < 1 << 63:
            if len(cells) == len(known):
                return np.array(numbers, dtype=np.int64)
            exact = max(map(abs, known)) < LARGEST_EXACT
            return np.array(numbers, dtype=np.float64) if exact else _texts(numbers)
    if all(cell in _TRUTH for cell in given):
        truths = [_TRUTH.get(cell) for cell in cells]
        return np.array(truths) if len(given) == len(cells) else _texts(truths)
    if decimal != ".":
        given = ["".join({".": "!", decimal: "."}.get(letter, letter) for letter in cell) for cell in given]
    if all(map(_NUMBER.fullmatch, given)):
        values = np.full(len(cells), np.nan)
        values[[cell not in _NO_VALUE for cell in cells]] = [float(cell.partition("(")[0]) for cell in given]
        return values
    return _texts(cells)


def _whole(cell: str) -> int:
    return int(cell) if "x" not in cell.lower() else (int(cell, 16) + (1 << 63)) % (1 << 64) - (1 << 63)


def text_of(columns: Mapping[str, Sequence[object]], delimiter: str) -> bytes:
    r"""Return columns of numbers and texts as delimited text.

    >>> text_of({"qid": ["a", "b"], "y": [1.0, 0.5]}, ",")
    b'"qid","y"\n"a",1.0\n"b",0.5\n'
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*map(_listed, columns.values())))
    return stream.getvalue().encode("utf-8")


def _listed(values: Sequence[object]) -> Sequence[object]:
    """Return the values as Python values, each number with the shortest text that reads back as the same number."""
    if not isinstance(values, np.ndarray):
        return values
    return (values.astype("U32").astype(np.float64) if values.dtype == np.float32 else values).tolist()


def check_cells(table: Any, ids: set[str], delimiter: str, closed: bool, n_lines: int, name: str) -> None:
    """Reject a cell that contains later lines because its quotation mark was never closed.

    A cell may have several lines, except an id or a cell of a .tsv file that `holds_rows`. The last cell of the file
    may have several lines only if the file ends with a quotation mark (`closed`). The file has `n_lines` lines.
    """
    before = np.zeros(table.num_rows, dtype=np.int64)  # line ends within the cells of each row
    torn: list[int] = []
    for place, (column, values) in enumerate(zip(table.column_names, table.columns)):
        cells = as_array(values, column)
        if cells.dtype.kind != "O":
            continue
        lines = np.array([cell.count("\n") if isinstance(cell, str) else 0 for cell in cells], dtype=np.int64)
        before += lines
        torn += [
            row
            for row in np.flatnonzero(lines).tolist()
            if (column in ids or delimiter == "\t") and holds_rows(cells[row], place, table.num_columns, delimiter)
        ]
        if place + 1 == table.num_columns and lines[-1:].any() and not closed:
            torn.append(len(lines) - 1)
    if torn:
        row = min(torn)
        within = int(before.sum())
        blank = table.num_rows + 1 + within < n_lines  # the number of the line is unknown then
        raise DataFileError(
            f'row {row + 1}: a cell starts with a quotation mark (") and contains the next {before[row]} line ends. '
            'End the cell with a quotation mark, and double those within it ("")',
            name,
            None if blank else row + 2 + int(before[:row].sum()),
        )


def holds_rows(cell: str, place: int, n_columns: int, delimiter: str = "\t") -> bool:
    r"""Return whether the lines of a cell in column `place` (from 0) look like rows of the table.

    The first line must complete a row, the last line must start a row, and the lines between must be whole rows.

    >>> holds_rows("two\tx\n1\tthree", 1, 3), holds_rows("two\tx\tlines\nof text", 1, 3)
    (True, False)
    """
    if delimiter not in cell or "\n" not in cell:
        return False
    first, *between, last = cell.split("\n")
    if first.count(delimiter) != n_columns - 1 - place or last.count(delimiter) != place:
        return False
    return all(line.count(delimiter) == n_columns - 1 for line in between if line)
