"""Parse lines of runs and qrels, and compare document ids as bytes, by compiled code.

The Python parser reads lines that this parser rejects.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.kernel import kernel
from truerank.io.letor.decimal_kernel import byte, differs, number


def parse_block(text: bytes, n_columns: int, value_column: int, first_line: int = 1) -> tuple[Any, ...] | None:
    """Return (row, topic) where the topic changes, documents (bytes, ends), values, line numbers and tags of lines.

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
    return topics, (utf8[: ends[-1]].copy(), ends), values, lines[:n].copy(), tags


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


@kernel
def same_id(utf8, begins, ends, a, b):
    """Return whether entries a and b have the same id."""
    same, k = ends[a] - begins[a] == ends[b] - begins[b], begins[a]
    while same and k < ends[a]:
        same = byte(utf8, k) == byte(utf8, begins[b] + k - begins[a])
        k += 1
    return same


@kernel
def hash_ids(utf8, begins, ends, hashes):
    """Write the FNV-1a hash of every id; products wrap around, and NumPy warns of it without compilation."""
    for i in range(len(begins)):
        mixed = np.uint64(14695981039346656037)
        for k in range(begins[i], ends[i]):
            mixed = (mixed ^ np.uint64(byte(utf8, k))) * np.uint64(1099511628211)
        hashes[i] = mixed


@kernel
def are_unique(utf8, begins, ends, hashes, offsets):
    """Return whether no group `offsets[i]:offsets[i + 1]` has an id twice, by a hash table of its entries."""
    slots = np.empty(1, dtype=np.int64)
    for i in range(len(offsets) - 1):
        size = 1
        while size < 2 * (offsets[i + 1] - offsets[i]):
            size *= 2
        if size > len(slots):
            slots = np.empty(size, dtype=np.int64)
        slots[:size] = -1
        mask = np.uint64(size - 1)
        for entry in range(offsets[i], offsets[i + 1]):
            slot = (hashes[entry] ^ (hashes[entry] >> np.uint64(32))) & mask
            while slots[slot] >= 0:
                other = slots[slot]
                if hashes[other] == hashes[entry] and same_id(utf8, begins, ends, other, entry):
                    return False
                slot = (slot + np.uint64(1)) & mask
            slots[slot] = entry
    return True
