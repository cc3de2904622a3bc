"""LETOR text parsed by compiled code: the grammar of `letor.grammar`.

The kernel parses a block of whole lines. If a line is not a plain, valid row, the Python parser parses the block: it
reads the line or explains the error. Both parsers accept the same files.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.io.document_ids import DocumentIds
from truerank.io.letor.decimal_kernel import byte, differs, number, usual, whole
from truerank.io.letor.grammar import INF, MAX_INDEX, LineParser, ParsedRows

_DOCID = np.frombuffer(b"docid", dtype=np.uint8)


class BlockParser(LineParser):
    """Parser of LETOR lines by the kernel, with the results and errors of `LineParser`.

    All blocks share the memory of the arrays of rows, which are valid until the next block is parsed.
    """

    _memory: tuple[np.ndarray, ...] = ()

    def parse(self, text: bytes) -> ParsedRows:
        """Return the rows of the next block of whole lines."""
        ended = text if text.endswith(b"\n") else text + b"\n"
        data = np.frombuffer(ended, dtype=np.uint8)
        # A row needs at least 8 bytes, an entry 4.
        most_rows, most_entries = len(data) // 8 + 2, len(data) // 4 + 2
        if not self._memory or len(self._memory[0]) < most_rows:
            self._memory = (
                np.empty(most_rows),
                np.empty(most_rows + 1, dtype=np.int64),
                np.empty(most_entries, dtype=np.int32),
                np.empty(most_entries),
                np.empty((7, most_rows), dtype=np.int64),
                np.empty((most_entries + most_rows, 3), dtype=np.int64),
            )
        grades, indptr, indices, values, spans, repairs = self._memory
        state = np.zeros(4, dtype=np.int64)
        if not _parse(data, self.missing_nan, grades, indptr, indices, values, spans, repairs, state):
            return super().parse(text)
        n, entries, n_repairs, n_lines = state.tolist()
        for entry, start, stop in repairs[:n_repairs].tolist():
            value = float(ended[start:stop])
            if value in (INF, -INF):
                return super().parse(text)  # refuses the line
            if entry >= 0:
                values[entry] = value
            else:
                grades[-1 - entry] = value
        self.line += n_lines - len(ended) + len(text)
        spans = spans[:, :n]
        first = np.flatnonzero(spans[6])
        pieces = [(row, text[a:b]) for row, (a, b) in zip(first.tolist(), spans[:2, first].T.tolist())]
        doc_ids, comments = (
            DocumentIds(data, starts, stops).texts if kept and (starts < stops).any() else None
            for starts, stops, kept in ((spans[2], spans[3], True), (spans[4], spans[5], self.keep_comments))
        )
        return ParsedRows(grades[:n], indptr[: n + 1], indices[:entries], values[:entries], pieces, doc_ids, comments)


@kernel
def _is_space(data, i):
    """Return whether a byte is ASCII white space within a line; a carriage return is if a line feed follows."""
    c = byte(data, i)
    after = byte(data, i + (c == 13))
    # Without branches: between them numba counts references to the array, and a row needs a sixth more time.
    return (c == 32) | (c == 9) | (c == 11) | (c == 12) | ((c == 13) & (after == 10))


@kernel
def _line_feed(data, i):
    """Return the position of the next line feed from position i on; -1 if a carriage return is alone before it."""
    while byte(data, i) != 10:
        if byte(data, i) == 13 and byte(data, i + 1) != 10:
            return -1
        i += 1
    return i


@kernel
def _after_spaces(data, i):
    """Return the position of the first byte from position i on that is not white space."""
    while _is_space(data, i):
        i += 1
    return i


@kernel
def _parse(data, missing_nan, grades, indptr, indices, values, spans, repairs, state):
    """Parse all lines; return False if one is not a plain row. See `number` for numbers.

    spans, by row: start and stop of the query id, the document id and the rest of the comment; whether the query id
    differs from the row before. repairs: entry (-1 - row for a grade), start and stop of a number that `float` must
    parse. state: number of rows, of entries, of repairs and of lines.
    """
    n = entries = i = lines = 0
    indptr[0] = 0
    while i < len(data):
        i = _after_spaces(data, i)
        if byte(data, i) == 10 or byte(data, i) == 35:  # '#'
            i = _line_feed(data, i)
        else:
            i = _grade_and_query(data, i, n, grades, spans, repairs, state)
            if i >= 0:
                i, entries = _entries(data, i, missing_nan, entries, indices, values, repairs, state)
            if i >= 0:
                i = _comment(data, i, n, spans)
                spans[6, n] = n == 0 or differs(data, spans[0, n], spans[1, n], spans[0, n - 1], spans[1, n - 1])
                n += 1
                indptr[n] = entries
        if i < 0:
            return False
        i += 1
        lines += 1
    state[0], state[1], state[3] = n, entries, lines
    return True


@kernel
def _grade_and_query(data, i, n, grades, spans, repairs, state):
    """Parse grade and query id of row n from position i on; return the position after them, -1 if not plain."""
    begin = i
    value, i, kind = number(data, i)
    if kind == 0 or not _is_space(data, i):
        return -1
    if kind == 2:
        _repair(repairs, state, -1 - n, begin, i)
    grades[n] = value
    i = _after_spaces(data, i)
    # Each comparison follows one that has excluded a line feed, so none reads past the text.
    if byte(data, i) != 113 or byte(data, i + 1) != 105 or byte(data, i + 2) != 100 or byte(data, i + 3) != 58:
        return -1  # no 'qid:'
    i += 4
    begin = i
    while byte(data, i) != 10 and byte(data, i) != 35 and byte(data, i) != 13 and not _is_space(data, i):
        i += 1
    spans[0, n] = begin
    spans[1, n] = i
    return i if i > begin else -1


@kernel
def _repair(repairs, state, entry, start, stop):
    """Record that `float` must parse the number of an entry."""
    k = state[2]
    repairs[k, 0] = entry
    repairs[k, 1] = start
    repairs[k, 2] = stop
    state[2] = k + 1


@kernel
def _entries(data, i, missing_nan, entries, indices, values, repairs, state):
    """Parse the entries of a row from position i on; return the position after them (-1 if not plain) and the total."""
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
        value, i, kind = usual(data, begin)
        if kind == 0:
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
    """Parse a number as `number` does, or a missing value; return 0 unless white space or a comment follows."""
    value, stop, kind = number(data, i)
    if kind == 0 and missing_nan:
        value = np.nan
        stop, kind = _missing(data, i)
    if not (byte(data, stop) == 10 or byte(data, stop) == 35 or _is_space(data, stop)):
        kind = 0
    return value, stop, kind


@kernel
def _missing(data, i):
    """Return the position after `NULL` or `nan` in any case at position i and 1, or i and 0 if there is neither."""
    a = byte(data, i) | 32
    if a != 110:  # 'n'
        return i, 0
    b = byte(data, i + 1) | 32
    if b == 97 and byte(data, i + 2) | 32 == 110:  # 'an'
        return i + 3, 1
    if b == 117 and byte(data, i + 2) | 32 == 108 and byte(data, i + 3) | 32 == 108:  # 'ull'
        return i + 4, 1
    return i, 0


@kernel
def _comment(data, i, n, spans):
    """Find the document id and the rest of the comment of row n, as `split_comment`; return what `_line_feed` does."""
    end = stop = _line_feed(data, i)
    i = _after_spaces(data, i + 1) if i < end else i
    while stop > i and _is_space(data, stop - 1):
        stop -= 1
    k = 0
    while k < 5 and byte(data, i + k) == _DOCID[k]:
        k += 1
    equals = _after_spaces(data, i + k)
    value = _after_spaces(data, equals + 1) if k == 5 and byte(data, equals) == 61 else stop  # '='
    begin = value if value < stop else i
    j = begin
    while j < stop and not _is_space(data, j):
        j += 1
    if value < stop or j == stop or byte(data, j) == 9:  # a tab
        spans[2, n], spans[3, n], spans[4, n] = begin, j, _after_spaces(data, j)
    else:
        spans[2, n], spans[3, n], spans[4, n] = stop, stop, i
    spans[5, n] = stop
    return end
