"""Recognise numbers that are positions and not values: ranks within queries, and numbers of rows."""

from __future__ import annotations

import numpy as np

from truerank.data.grouping import offsets_of, query_of_rows

_NEARLY = 0.9  # share of the queries that hold ranks
_BY_CHANCE = 0.001  # probability that whole numbers in the same limits look like this; above it we are silent
_FIRST_QUERIES = 10  # tried before all queries
_FEWEST_ROWS = 10  # of a column that counts rows


def are_ranks(values: np.ndarray, offsets: np.ndarray, n_columns: int = 1) -> bool:
    """Return whether values (n,), in grouped order, are ranks in nearly every query; `n_columns` are tried in all.

    Ranks of n documents are distinct whole numbers from 1 (or, for 3 documents and more, from 0) up to 2 n: positions
    of a list whose other documents may not be judged. Which end is best cannot be seen, because points such as
    n, n - 1, ... 1 for the first to the last are the same numbers.

    >>> lists = np.arange(0, 25, 4)
    >>> are_ranks(np.tile([2, 1, 4, 3], 6), lists), are_ranks(np.tile([2, 1, 4, 4], 6), lists)
    (True, False)
    """
    several = np.flatnonzero(np.diff(offsets) > 1)
    for queries in (several[:_FIRST_QUERIES], several):  # most columns are refused by the first
        if not len(queries):
            return False
        ranked, high, size = _ranked(values, offsets, queries)
        if ranked.sum() < (_NEARLY if queries is several else 0.5) * len(queries):
            return False
    logs = np.concatenate([[0.0], np.log(np.arange(1, max(int(high[ranked].max()), len(several)) + 1)).cumsum()])
    n, top, k = size[ranked], high[ranked].astype(np.int64), int(ranked.sum())
    log_chance = (logs[top] - logs[top - n] - n * np.log(top)).sum()  # that whole numbers up to `top` are distinct
    log_choices = logs[len(several)] - logs[k] - logs[len(several) - k]  # of the queries that hold ranks
    return bool(log_chance + log_choices + np.log(n_columns) < np.log(_BY_CHANCE))


def _ranked(values: np.ndarray, offsets: np.ndarray, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return of each query, with two documents or more: whether it holds ranks, the highest, and its size."""
    start, stop = offsets[queries[0]], offsets[queries[-1] + 1]
    own = np.asarray(values[start:stop], dtype=np.float64)
    ordered = own[np.lexsort((own, query_of_rows(offsets[queries[0] : queries[-1] + 2] - start)))]
    first, last = offsets[queries] - start, offsets[queries + 1] - start - 1
    base = 0.0 if (ordered == 0).any() else 1.0
    wrong = np.append(~(np.diff(ordered) >= 1.0), False)  # also NaN
    wrong[last] = False
    before = offsets_of(wrong | (ordered != np.floor(ordered)))
    high, size = ordered[last] - base + 1.0, last - first + 1
    ranked = (before[last + 1] == before[first]) & (ordered[first] >= base) & (high <= 2 * size) & (size >= 3 - base)
    return ranked, high, size


def count_rows(values: np.ndarray) -> bool:
    """Return whether values (n,), in the caller's order of rows, are the numbers of at least 10 rows."""
    return len(values) >= _FEWEST_ROWS and values[0] in (0.0, 1.0) and bool((np.diff(values) == 1.0).all())


def are_row_labels(values: np.ndarray) -> bool:
    """Return whether values (n,) are distinct whole numbers from 0, as the index of a frame or of its sample is."""
    if values.dtype.kind not in "iuf" or not len(values) or not values.min() >= 0:
        return False
    return bool((values == np.floor(values)).all()) and len(np.unique(values)) == len(values)
