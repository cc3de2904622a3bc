"""Ranking stability: the change of a query's ranking after small changes of its features (Belous 2015)."""

from __future__ import annotations

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import RandomState, Scorer
from truerank.inspection.importance import scores_of
from truerank.io.rows import RowsLike, rows_of


def ranking_stability(
    ranker: Scorer, data: RowsLike, *, repeats: int = 10, random_state: RandomState = None
) -> np.ndarray:
    """Return each query's mean Kendall distance between its ranking and the rankings after small changes of features.

    The result, float64 (m,), is the share of a query's document pairs that the rankings order differently: 0 is
    perfectly stable, and 1 is a reversal. A pair that is tied in only one ranking counts half. The result is NaN for
    queries with fewer than two documents. A constant ranker has the value 0, so also use a measure of quality.

    A small change replaces a value by an *observed neighbour*: the next larger or the next smaller value of the feature
    in `data`, with equal probability (the extreme values have one neighbour). Missing values and features with a single
    value do not change. `ranker` is any object with `predict(X)`, and `data` has dense rows. `repeats` copies of the
    data are changed. Cost: `repeats + 1` predictions and O(Σ n²) pairs.

    Examples
    --------
    >>> from truerank import RankingData
    >>> class ByFirst:
    ...     def predict(self, X):
    ...         return X[:, 0]
    >>> data = RankingData([[1.0], [2.0], [9.0]], [0, 1, 2])
    >>> ranking_stability(ByFirst(), data, random_state=0).round(2).tolist()  # 1 and 2 may meet or swap
    [0.5]
    """
    repeats = check_positive_int(repeats, "repeats")
    data = rows_of(data, model=ranker)
    if not isinstance(data.X, np.ndarray):
        raise InvalidInputError("ranking_stability requires dense rows. Call X.toarray()")
    seed = seed_of(random_state)
    steps = [_steps(column) for column in data.X.T]
    before = np.ascontiguousarray(scores_of(ranker, data.X, data))
    total = np.zeros(data.n_queries)
    for repeat in range(repeats):
        rng = stream(seed, "stability", repeat)
        changed = np.empty_like(data.X)
        for k, (down, up) in enumerate(steps):
            changed[:, k] = np.where(rng.random(data.n_rows) < 0.5, down, up)
        after = np.ascontiguousarray(scores_of(ranker, changed, data))
        total += kendall_distances(before, after, data.offsets)
    return total / repeats


def _steps(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest values below and above each value; at an end the only neighbour, else the value itself."""
    values = np.unique(column[~np.isnan(column)])
    if len(values) < 2:
        return column, column
    last, missing = len(values) - 1, np.isnan(column)
    place = np.minimum(np.searchsorted(values, column), last)
    down, up = values[np.abs(place - 1)], values[last - np.abs(last - place - 1)]
    return np.where(missing, column, down), np.where(missing, column, up)


@kernel
def kendall_distances(a, b, offsets):
    """Return the share of each query's pairs that two score vectors order differently; a tie in one counts half."""
    m = offsets.size - 1
    result = np.empty(m)
    for q in range(m):
        start, stop = offsets[q], offsets[q + 1]
        n = stop - start
        twice = np.int64(0)
        for i in range(start, stop):
            for j in range(i + 1, stop):
                first = np.int64(a[i] > a[j]) - np.int64(a[i] < a[j])
                second = np.int64(b[i] > b[j]) - np.int64(b[i] < b[j])
                twice += abs(first - second)
        result[q] = twice / (n * (n - 1)) if n > 1 else np.nan
    return result
