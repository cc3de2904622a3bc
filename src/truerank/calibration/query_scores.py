"""Statistics of a result list that tell how far to trust its ranking, from the scores alone."""

from __future__ import annotations

import numpy as np

from truerank.data.grouping import query_of_rows, ranks_by_query, sums_by_query

STATISTICS = ("best", "mean-top", "gap", "mean", "spread", "size", "agreement")
QUERY_SCORES = ("mean-top", "expected-relevant", "best", "gap", "agreement", "learned")


def list_statistics(scores: np.ndarray, offsets: np.ndarray, k: int) -> np.ndarray:
    """Return the `STATISTICS` of each result list, float64 (m, 7), or (m, 6) without further runs.

    The columns are the highest score, the mean of the k highest, the highest minus the second (0 for one document),
    mean and standard deviation of all, the logarithm of their number, and the mean share of the further runs that
    contain the first k documents. The first column of `scores` (n, r) ranks; NaN in a further column means that this
    run lacks the document.
    """
    own, sizes, query = scores[:, 0], np.diff(offsets), query_of_rows(offsets)
    ranked = own[np.lexsort((-own, query))]
    best, second = ranked[offsets[:-1]], ranked[offsets[:-1] + np.minimum(1, sizes - 1)]
    top, n_top = ranks_by_query(own, offsets) <= k, np.minimum(sizes, k)
    mean = sums_by_query(own, offsets) / sizes
    spread = np.sqrt(sums_by_query((own - mean[query]) ** 2, offsets) / sizes)
    mean_top = sums_by_query(np.where(top, own, 0.0), offsets) / n_top
    columns = [best, mean_top, best - second, mean, spread, np.log(sizes)]
    if scores.shape[1] > 1:
        held = (~np.isnan(scores[:, 1:])).mean(axis=1)
        columns.append(sums_by_query(np.where(top, held, 0.0), offsets) / n_top)
    return np.stack(columns, axis=1)
