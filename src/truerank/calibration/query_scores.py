"""One number for each query that says how far to trust its ranking, read from the scores alone."""

from __future__ import annotations

import numpy as np

from truerank.data.grouping import query_of_rows, ranks_by_query, sums_by_query

STATISTICS = ("best", "mean-top", "gap", "mean", "spread", "size", "agreement")
"""What is read from a result list, in the order of the columns."""
QUERY_SCORES = ("mean-top", "expected-relevant", "best", "gap", "agreement", "learned")


def list_statistics(scores: np.ndarray, offsets: np.ndarray, k: int) -> np.ndarray:
    """Statistics of each result list, float64 (m, 6), or (m, 7) where there are several scores.

    Parameters
    ----------
    scores : float64 array (n, r)
        Grouped rows. The first column ranks; others are those of further runs, nan where a run lacks the document.
    offsets : int64 array (m + 1,)
    k : int
        Documents at the top.

    Returns
    -------
    float64 array (m, 6 or 7)
        Highest score; mean of the k highest; by how much the highest exceeds the next (0 for a single document); mean
        and standard deviation of all; logarithm of their number; and agreement: of the k first documents the mean
        share of the other runs that hold them.
    """
    own, sizes, query = scores[:, 0], np.diff(offsets), query_of_rows(offsets)
    order = np.lexsort((-own, query))
    ranked = own[order]
    best, second = ranked[offsets[:-1]], ranked[offsets[:-1] + np.minimum(1, sizes - 1)]
    top = ranks_by_query(own, offsets) <= k
    n_top = np.minimum(sizes, k)
    mean = sums_by_query(own, offsets) / sizes
    spread = np.sqrt(sums_by_query((own - mean[query]) ** 2, offsets) / sizes)
    columns = [best, sums_by_query(np.where(top, own, 0.0), offsets) / n_top, best - second, mean, spread]
    columns.append(np.log(sizes))
    if scores.shape[1] > 1:
        held = (~np.isnan(scores[:, 1:])).mean(axis=1)
        columns.append(sums_by_query(np.where(top, held, 0.0), offsets) / n_top)
    return np.stack(columns, axis=1)
