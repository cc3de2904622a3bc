"""Parse lines of runs and qrels by compiled code; the plain parser reads the forms that this one refuses."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.kernel import kernel
from truerank.io.document_ids import DocumentIds
from truerank.io.letor.decimal_kernel import byte, differs, number


def parse_block(text: bytes, n_columns: int, value_column: int, first_line: int = 1) -> tuple[Any, ...] | None:
    """Return (row, topic) where the topic changes, documents, values, line numbers and tags of whole lines.

    Column 0 of `n_columns` is the topic, 2 the document, 5 (if any) the tag. None if a line is not a plain, legal row.
    """
    if not text.endswith(b"\n"):
        text += b"\n"
    data = np.frombuffer(text, dtype=np.uint8)
    most = len(text) // (2 * n_columns) + 1
    utf8, ends, values = np.empty(len(text), np.uint8), np.zeros(most + 1, np.int64), np.empty(most)
    lines, repairs = np.empty(most, np.int64), np.empty((most, 3), np.int64)
    changes = np.empty((2, most, 3), np.int64)  # of the topic, of the tag
    state = np.zeros(4, np.int64)
    if not _parse(data, n_columns, value_column, first_line, utf8, ends, values, lines, changes, repairs, state):
        return None
    n, n_topics, n_tags, n_repairs = state.tolist()
    for row, start, stop in repairs[:n_repairs].tolist():
        values[row] = float(text[start:stop])
    values = values[:n].copy()
    if not np.isfinite(values).all():
        return None
    topics = [(row, text[a:b]) for row, a, b in changes[0, :n_topics].tolist()]
    tags = {text[a:b] for _, a, b in changes[1, :n_tags].tolist()}
    ends = ends[: n + 1].copy()
    return topics, DocumentIds(utf8[: ends[-1]].copy(), ends[:-1], ends[1:]), values, lines[:n].copy(), tags


@kernel
def _is_space(data, i):
    """Return whether a byte is white space, which separates columns."""
    c = byte(data, i)
    return c == 32 or (9 <= c <= 13)


@kernel
def _parse(data, n_columns, value_column, line, utf8, ends, values, lines, changes, repairs, state):
    """Parse all lines; return False if one is not a plain row.

    utf8, ends: bytes of the documents, and where each ends. changes: row, start and stop of the topic (0) and the tag
    (1) where they differ from the row before. repairs: row, start and stop of numbers that `float` must parse. state:
    number of rows, of changes of the topic and the tag, and of repairs.
    """
    n, size, topics, tags, fixes = 0, 0, 0, 0, 0
    i = 0
    while i < len(data):
        column = 0
        while True:
            while byte(data, i) != 10 and _is_space(data, i):
                i += 1
            if byte(data, i) == 10:
                break
            start = i
            if column == 0 and byte(data, i) == 35:  # a comment
                return False
            while not _is_space(data, i):
                i += 1
            if column == value_column:
                value, stop, kind = number(data, start)
                if kind == 0 or stop != i:
                    return False
                if kind == 2:
                    repairs[fixes, 0], repairs[fixes, 1], repairs[fixes, 2] = n, start, i
                    fixes += 1
                values[n] = value
            if column == 0 or column == 5:
                kind = 0 if column == 0 else 1
                seen = topics if column == 0 else tags
                if seen == 0 or differs(data, start, i, changes[kind, seen - 1, 1], changes[kind, seen - 1, 2]):
                    changes[kind, seen, 0], changes[kind, seen, 1], changes[kind, seen, 2] = n, start, i
                    if column == 0:
                        topics += 1
                    else:
                        tags += 1
            elif column == 2:
                for k in range(start, i):
                    utf8[size] = byte(data, k)
                    size += 1
                ends[n + 1] = size
            column += 1
            if column > n_columns:
                return False
        if column == n_columns:
            lines[n] = line
            n += 1
        elif column > 0:
            return False
        line += 1
        i += 1
    state[0], state[1], state[2], state[3] = n, topics, tags, fixes
    return True
