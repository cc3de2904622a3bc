"""Detect columns that are positions rather than values: ranks within queries, and row numbers."""

from __future__ import annotations

import re

import numpy as np

from truerank.data.grouping import offsets_of, query_of_rows

_NEARLY = 0.9  # share of the queries that hold ranks
_BY_CHANCE = 0.001  # probability that whole numbers in the same limits look like this; above it we are silent
_FIRST_QUERIES = 10  # tried before all queries
_FEWEST_ROWS = 10  # of a column that counts rows


def are_ranks(values: np.ndarray, offsets: np.ndarray, n_columns: int = 1) -> bool:
    """Return whether values (n,), in grouped order, are ranks in nearly every query; `n_columns` are tried in all.

    Ranks of n documents are distinct whole numbers from 1 (or, for 3 documents and more, from 0) up to 2 n: positions
    of a list whose other documents may not be judged. Equal values may share the lowest, highest or mean of their
    ranks, or be counted once (dense ranks). The best end is not known, because points n, n - 1, ... 1 are the same
    numbers.

    >>> lists = np.arange(0, 49, 8)
    >>> [are_ranks(np.tile(own, 6), lists) for own in ([2, 1, 4, 3, 8, 7, 6, 5], [1, 1, 2, 4, 5, 6, 7, 8], [4] * 8)]
    [True, False, False]
    >>> are_ranks(np.tile([1, 2, 2, 4, 5, 6, 7, 8], 6), lists)
    True
    """
    several = np.flatnonzero(np.diff(offsets) > 1)
    for queries in (several[:_FIRST_QUERIES], several):  # most columns are refused by the first
        if not len(queries):
            return False
        ranked, log_chances = _ranked(values, offsets, queries)
        if ranked.sum() < (_NEARLY if queries is several else 0.5) * len(queries):
            return False
    log_choices = _log_factorials(len(several))[[len(several), ranked.sum(), (~ranked).sum()]] @ [1.0, -1.0, -1.0]
    return bool(log_chances[ranked].sum() + log_choices + np.log(n_columns) < np.log(_BY_CHANCE))


def _ranked(values: np.ndarray, offsets: np.ndarray, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each query with at least two documents whether it holds ranks, and log P(these values by chance)."""
    starts = offsets[queries[0] : queries[-1] + 2] - offsets[queries[0]]
    own = np.asarray(values[offsets[queries[0]] : offsets[queries[-1] + 1]], dtype=np.float64)
    with np.errstate(over="ignore"):
        doubled = own + own
    if not (doubled == np.floor(doubled)).any():  # the usual scores: ranks are whole numbers, or means of two
        return np.zeros(len(queries), dtype=bool), np.zeros(len(queries))
    ordered = own[np.lexsort((own, query_of_rows(starts)))]
    first, last = starts[queries - queries[0]], starts[queries - queries[0] + 1] - 1
    base = 0.0 if (ordered == 0).any() else 1.0
    wrong = np.append(~(np.diff(ordered) >= 1.0), False)  # also NaN
    wrong[last] = False
    before = offsets_of(wrong | (ordered != np.floor(ordered)))
    high, size = ordered[last] - base + 1.0, last - first + 1
    distinct = (before[last + 1] == before[first]) & (ordered[first] >= base) & (high <= 2 * size) & (size >= 3 - base)
    tied, log_ties = _tied_ranks(ordered, starts, first, last)
    top = np.where(distinct, high, size).astype(np.int64)
    logs = _log_factorials(int(top.max()))
    log_distinct = logs[top] - logs[top - size] - size * np.log(top)  # that whole numbers up to `top` are distinct
    return distinct | tied, np.where(distinct, log_distinct, log_ties)


def _tied_ranks(
    ordered: np.ndarray, starts: np.ndarray, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each query in ascending order whether its values are their own ranks, and log P(this by chance).

    Equal values share ranks by one rule in all queries, the rule that most queries follow. Of n whole numbers up to the
    highest, less than 2^(n - 1) n! / product of (size of a tie)! are such ranks.
    """
    new = np.append(True, np.diff(ordered) != 0)
    new[starts[:-1][np.diff(starts) > 0]] = True
    begins, tie = np.flatnonzero(new), np.cumsum(new) - 1
    ends, of_row = np.append(begins[1:], len(ordered)), query_of_rows(starts)
    low, high = begins[tie] - starts[of_row] + 1, ends[tie] - starts[of_row]
    wrong = [offsets_of(ordered != ranks) for ranks in (low, high, (low + high) / 2, tie - tie[starts[of_row]] + 1)]
    found = max((before[last + 1] == before[first] for before in wrong), key=np.count_nonzero)
    logs = _log_factorials(len(ordered))
    of_ties = np.append(0.0, np.cumsum(logs[ends - begins]))
    n, found = last - first + 1, found & (ordered[first] < ordered[last])
    ways = logs[n] - of_ties[tie[last] + 1] + of_ties[tie[first]] + (n - 1) * np.log(2.0)
    return found, np.minimum(ways - n * np.log(np.where(found, ordered[last], 1.0)), 0.0)


def _log_factorials(n: int) -> np.ndarray:
    """Return log k! for k = 0 ... n."""
    return np.append(0.0, np.log(np.arange(1, n + 1)).cumsum())


def count_rows(values: np.ndarray) -> bool:
    """Return whether values (n,), in the caller's order of rows, are the numbers of at least 10 rows."""
    return len(values) >= _FEWEST_ROWS and values[0] in (0.0, 1.0) and bool((np.diff(values) == 1.0).all())


def are_row_labels(values: np.ndarray) -> bool:
    """Return whether values (n,) are distinct whole numbers from 0, like the index of a frame or of its sample."""
    if values.dtype.kind not in "iuf" or not len(values) or not values.min() >= 0:
        return False
    return bool((values == np.floor(values)).all()) and len(np.unique(values)) == len(values)


def is_unnamed(name: str) -> bool:
    """Return whether a column has the name of an index in CSV: no name, or the name that pandas gives it on reading."""
    return re.fullmatch(r"(Unnamed: \d+(\.\d+)*)?", name) is not None
