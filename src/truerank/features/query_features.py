"""Features of queries that need no judgements: score gaps, agreement of lists, and features of the caller.

Of each run: `length` (log of the number of documents), `gap-1`, `gap-5` and `gap-10` (share of the list's range of
scores between the first document and the document 1, 5 or 10 ranks below) and `spread` (deviation of the scores in the
first 10 ranks as a share of the range). Of each pair of runs: `overlap-10` and `overlap-100`, the documents that both
have in these ranks, as a share of the ranks. A query that a run lacks has 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.features.rules import min_max_scores
from truerank.features.run_pool import RunPool

_GAPS, _OVERLAPS, _FIRST = (1, 5, 10), (10, 100), 10


def query_features(pool: RunPool) -> tuple[np.ndarray, list[str]]:
    """Return features (m, f) of a pool's queries and their names, including `RunPool(query_features=)`.

    >>> pool = RunPool({"a": {"1": {"d1": 4.0, "d2": 2.0}}, "b": {"1": {"d2": 7.0, "d3": 6.0}}})
    >>> values, names = query_features(pool)
    >>> dict(zip(names, values[0].round(3).tolist()))["overlap-10 of a, b"]
    0.1
    """
    m, r = pool.n_queries, pool.n_runs
    scaled, ranks = min_max_scores(pool), pool.ranks
    lists = pool.spread(np.arange(m * r))
    columns, names = [np.log1p(pool.lengths)], [f"length of {name}" for name in pool.names]
    for gap in _GAPS:
        here = np.zeros(m * r)
        chosen = ranks == gap + 1
        here[lists[chosen]] = 1.0 - scaled[chosen]
        columns.append(here.reshape(m, r))
        names += [f"gap-{gap} of {name}" for name in pool.names]
    near = ranks <= _FIRST
    count = np.maximum(np.bincount(lists[near], minlength=m * r), 1)
    mean = np.bincount(lists[near], weights=scaled[near], minlength=m * r) / count
    square = np.bincount(lists[near], weights=(scaled[near] - mean[lists[near]]) ** 2, minlength=m * r) / count
    columns.append(np.sqrt(square).reshape(m, r))
    names += [f"spread of {name}" for name in pool.names]
    for depth in _OVERLAPS:
        inside = np.zeros((r, pool.n_rows), dtype=bool)
        entries = ranks <= depth
        inside[pool.run_of_entry[entries], pool.rows[entries]] = True
        for first, second in combinations(range(r), 2):
            both = np.bincount(pool.query_of_row[inside[first] & inside[second]], minlength=m)
            columns.append(both[:, None] / depth)
            names.append(f"overlap-{depth} of {pool.names[first]}, {pool.names[second]}")
    if pool.query_values is not None:
        columns.append(pool.query_values)
        names += pool.query_value_names
    return np.concatenate(columns, axis=1), names


def own_features(given: Mapping[Any, Mapping[str, float]], queries: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return the caller's features (m, f) of queries and their names, from `{query: {name: number}}`."""
    known = {str(query): own for query, own in given.items()}
    names = list(dict.fromkeys(str(name) for own in known.values() for name in own))
    lacking = next((query for query in queries if query not in known or set(names) - {*map(str, known[query])}), None)
    if lacking is not None:
        raise InvalidInputError(
            f"query_features has no numbers for query {lacking!r}. Every query requires: {', '.join(names[:6])}",
            argument="query_features",
        )
    values = np.array([[float(known[query][name]) for name in names] for query in queries]).reshape(-1, len(names))
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        what = f"query {queries[row]!r} has {names[column]} = {values[row, column]}"
        raise InvalidInputError(f"query_features must be finite numbers, but {what}", argument="query_features")
    return values, names
