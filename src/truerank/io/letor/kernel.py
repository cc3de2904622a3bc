"""LETOR text parsed by compiled code: the grammar of `letor.grammar`, about twenty times as fast.

The kernel takes one block of whole lines. Where a line is anything but a plain, legal row it stops in front of it, and
the plain Python parser takes that line: it explains what is wrong, or reads it. So both accept the same files.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.io.letor.decimal_kernel import byte, differs, number, whole
from truerank.io.letor.grammar import INF, MAX_INDEX, LineParser, Rows, split_comment, text_column


class BlockParser:
    """Parses LETOR lines with the kernel; the same results and errors as `LineParser`, which it asks for help.

    The arrays of the rows that `parse` returns are overwritten by the next call: copy what is to be kept.
    """

    def __init__(self, helper: LineParser) -> None:
        self._helper = helper
        self.line = helper.line
        self._size = 0
        self._make_room(1 << 20)

    def _make_room(self, size: int) -> None:
        """Scratch for a text of `size` bytes: a row takes at least 8 of them, an entry 4."""
        if size <= self._size:
            return
        self._size = size
        rows, entries = size // 8 + 2, size // 4 + 2
        self._grades = np.empty(rows)
        self._indptr = np.empty(rows + 1, dtype=np.int64)
        self._indices = np.empty(entries, dtype=np.int32)
        self._values = np.empty(entries)
        self._spans = np.empty((rows, 5), dtype=np.int64)
        self._repairs = np.empty((entries + rows, 3), dtype=np.int64)
        self._state = np.zeros(5, dtype=np.int64)

    def parse(self, text: bytes) -> Rows:
        """Rows of the next block of whole lines."""
        if not text.endswith(b"\n"):
            text += b"\n"
        self._make_room(len(text))
        parts: list[Rows] = []
        position = 0
        while True:
            rows, position = self._part(text, position)
            if position == len(text):
                return Rows.concatenate([*parts, rows]) if parts else rows
            parts.append(rows.copy())
            end = text.find(b"\n", position)
            parts.append(self._ask(text[position:end]))
            self.line += 1
            position = end + 1

    def _ask(self, line: bytes, before: int = 0) -> Rows:
        """The plain parser's rows of a line that stands `before` lines before the present one; or its refusal."""
        self._helper.line = self.line - before
        return self._helper.parse(line)

    def _part(self, text: bytes, position: int) -> tuple[Rows, int]:
        """Rows up to the next line that the kernel does not take, and that line's place."""
        data = np.frombuffer(text, dtype=np.uint8)
        _parse(
            data,
            position,
            self._helper.missing_nan,
            self._grades,
            self._indptr,
            self._indices,
            self._values,
            self._spans,
            self._repairs,
            self._state,
        )
        n, entries, position, n_repairs, lines = self._state.tolist()
        self.line += lines
        for entry, start, stop in self._repairs[:n_repairs].tolist():
            value = float(text[start:stop])
            if value in (INF, -INF):
                line = text[text.rfind(b"\n", 0, start) + 1 : text.find(b"\n", start)]
                self._ask(line, text.count(b"\n", start, position))  # refuses the line
            if entry >= 0:
                self._values[entry] = value
            else:
                self._grades[-1 - entry] = value
        spans = self._spans[:n]
        first = np.flatnonzero(spans[:, 4])
        pieces = [(row, text[a:b]) for row, (a, b) in zip(first.tolist(), spans[first, :2].tolist())]
        doc_ids, comments = [], []
        for start, stop in spans[:, 2:4].tolist() if (spans[:, 2] < spans[:, 3]).any() else []:
            doc_id, rest = split_comment(text[start + 1 : stop])
            doc_ids.append(doc_id.decode("utf-8"))
            comments.append(rest.decode("utf-8"))
        rows = Rows(
            self._grades[:n],
            self._indptr[: n + 1],
            self._indices[:entries],
            self._values[:entries],
            pieces,
            text_column(doc_ids),
            text_column(comments) if self._helper.keep_comments else None,
        )
        return rows, position


@kernel
def _is_space(data, i):
    """White space of ASCII within a line; a carriage return counts as such before the line feed only."""
    c = byte(data, i)
    after = byte(data, i + (c == 13))
    # Without branches: between them numba counts references to the array, and a row takes a sixth longer.
    return (c == 32) | (c == 9) | (c == 11) | (c == 12) | ((c == 13) & (after == 10))


@kernel
def _line_feed(data, i):
    """Place of the line feed from place i on; -1 where a carriage return stands alone before it."""
    while byte(data, i) != 10:
        if byte(data, i) == 13 and byte(data, i + 1) != 10:
            return -1
        i += 1
    return i


@kernel
def _after_spaces(data, i):
    """Place of the first byte from place i on that is no white space."""
    while _is_space(data, i):
        i += 1
    return i


@kernel
def _parse(data, position, missing_nan, grades, indptr, indices, values, spans, repairs, state):
    """Parse lines from `position` on; see `number` for numbers.

    spans, by row: start and stop of the query id and of the comment with its `#`; whether the query id differs from the
    row before. repairs: entry (-1 - row for a grade), start and stop of a number that `float` must
    settle. state: rows, entries, place of the first line not taken (or the end), repairs, lines taken.
    """
    n = entries = lines = 0
    line = position
    indptr[0] = 0
    state[3] = 0
    while line < len(data):
        i = _after_spaces(data, line)
        if byte(data, i) == 10 or byte(data, i) == 35:  # '#'
            i = _line_feed(data, i)
        else:
            n_repairs = state[3]
            i = _grade_and_query(data, i, n, grades, spans, repairs, state)
            if i >= 0:
                i, row_entries = _entries(data, i, missing_nan, entries, indices, values, repairs, state)
            if i >= 0:
                spans[n, 2] = i
                i = _line_feed(data, i)
            if i >= 0:
                spans[n, 3] = i
                spans[n, 4] = n == 0 or differs(data, spans[n, 0], spans[n, 1], spans[n - 1, 0], spans[n - 1, 1])
                entries = row_entries
                n += 1
                indptr[n] = entries
            else:
                state[3] = n_repairs
        if i < 0:
            break
        line = i + 1
        lines += 1
    state[0] = n
    state[1] = entries
    state[2] = line
    state[4] = lines


@kernel
def _grade_and_query(data, i, n, grades, spans, repairs, state):
    """Grade and query id of row n from place i on: the place behind them, -1 if not plain."""
    begin = i
    value, i, kind = number(data, i)
    if kind == 0 or not _is_space(data, i):
        return -1
    if kind == 2:
        _repair(repairs, state, -1 - n, begin, i)
    grades[n] = value
    i = _after_spaces(data, i)
    # Each comparison stands after the one before has excluded a line feed, so none reads past the text.
    if byte(data, i) != 113 or byte(data, i + 1) != 105 or byte(data, i + 2) != 100 or byte(data, i + 3) != 58:
        return -1  # no 'qid:'
    i += 4
    begin = i
    while byte(data, i) != 10 and byte(data, i) != 35 and byte(data, i) != 13 and not _is_space(data, i):
        i += 1
    spans[n, 0] = begin
    spans[n, 1] = i
    return i if i > begin else -1


@kernel
def _repair(repairs, state, entry, start, stop):
    """Note that `float` must settle the number of an entry."""
    k = state[3]
    repairs[k, 0] = entry
    repairs[k, 1] = start
    repairs[k, 2] = stop
    state[3] = k + 1


@kernel
def _entries(data, i, missing_nan, entries, indices, values, repairs, state):
    """The entries of a row from place i on: the place behind them (-1 if not plain), and the entries so far."""
    last = 0
    while True:
        i = _after_spaces(data, i)
        if byte(data, i) == 10 or byte(data, i) == 35:
            return i, entries
        begin = i
        index, i = whole(data, i, 0)
        if i - begin > 10 or byte(data, i) != 58 or index <= last or index > MAX_INDEX:  # ':'
            return -1, entries
        last = index
        i += 1
        begin = i
        value, i, kind = _any_value(data, begin, missing_nan)
        if kind == 0:
            return -1, entries
        if kind == 2:
            _repair(repairs, state, entries, begin, i)
        values[entries] = value
        indices[entries] = index - 1
        entries += 1


@kernel
def _any_value(data, i, missing_nan):
    """What `number` gives, of missing values too; nothing but white space or a comment may follow at once."""
    value, stop, kind = number(data, i)
    if kind == 0 and missing_nan:
        value = np.nan
        stop, kind = _missing(data, i)
    if not (byte(data, stop) == 10 or byte(data, stop) == 35 or _is_space(data, stop)):
        kind = 0
    return value, stop, kind


@kernel
def _missing(data, i):
    """`NULL` or `nan` in any case at place i: the place behind it and 1, or 0 if neither stands there."""
    a = byte(data, i) | 32
    if a != 110:  # 'n'
        return i, 0
    b = byte(data, i + 1) | 32
    if b == 97 and byte(data, i + 2) | 32 == 110:  # 'an'
        return i + 3, 1
    if b == 117 and byte(data, i + 2) | 32 == 108 and byte(data, i + 3) | 32 == 108:  # 'ull'
        return i + 4, 1
    return i, 0
