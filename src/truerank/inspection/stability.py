"""Ranking stability: how far a query's ranking moves under a small change of its features (Belous 2015's concern)."""

from __future__ import annotations

import numpy as np

from truerank.core.checks import check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import RandomState, Scorer
from truerank.data.ranking_data import RankingData
from truerank.inspection.importance import scores_of


def ranking_stability(
    ranker: Scorer, data: RankingData, *, share: float = 1.0, repeats: int = 10, random_state: RandomState = None
) -> np.ndarray:
    """Mean Kendall distance of each query between its ranking and those after small changes of its features.

    A small change replaces values by an *observed neighbour*: the next larger or next smaller different value that the
    feature takes in `data` (a fair coin decides; the least and the largest value have one neighbour). So a change is
    one step in rank, whatever the feature's scale. Missing values and features with one value stay.

    Parameters
    ----------
    ranker : fitted ranker
        Anything with `predict(X)`.
    data : RankingData
        Dense rows.
    share : float in (0, 1], default 1
        Share of the values that change, each drawn independently.
    repeats : int, default 10
        Changed copies of the data.
    random_state : None, int or NumPy generator

    Returns
    -------
    float64 array (m,)
        For each query the share of its document pairs that two rankings put in different order: 0 is perfectly stable,
        1 a reversal. A pair that is tied in one ranking only counts half. nan where a query has fewer than two
        documents.

    Notes
    -----
    Costs `repeats + 1` predictions and O(Σ n²) pairs. Lower is steadier; a constant ranker has 0, so read the figure
    beside a measure of quality.

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
    share = check_number(share, "share", minimum=0.0, maximum=1.0, open_minimum=True)
    repeats = check_positive_int(repeats, "repeats")
    if not isinstance(data.X, np.ndarray):
        raise InvalidInputError("ranking_stability needs dense rows; call X.toarray()")
    seed = seed_of(random_state)
    steps = [_steps(column) for column in data.X.T]
    before = np.ascontiguousarray(scores_of(ranker, data.X, data))
    total = np.zeros(data.n_queries)
    for repeat in range(repeats):
        rng = stream(seed, "stability", repeat)
        changed = np.empty_like(data.X)
        for k, (down, up) in enumerate(steps):
            new = np.where(rng.random(data.n_rows) < 0.5, down, up)
            moved = rng.random(data.n_rows) < share if share < 1 else True
            changed[:, k] = np.where(moved, new, data.X[:, k])
        after = np.ascontiguousarray(scores_of(ranker, changed, data))
        total += kendall_distances(before, after, data.offsets)
    return total / repeats


def _steps(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each value's observed neighbours below and above; at the ends the one there is, itself where there is none."""
    values = np.unique(column[~np.isnan(column)])
    if len(values) < 2:
        return column, column
    place = np.minimum(np.searchsorted(values, column), len(values) - 1)
    down = values[np.where(place == 0, 1, place - 1)]
    up = values[np.where(place == len(values) - 1, len(values) - 2, np.minimum(place + 1, len(values) - 1))]
    missing = np.isnan(column)
    return np.where(missing, column, down), np.where(missing, column, up)


@kernel
def kendall_distances(a, b, offsets):
    """Share of the pairs of each query that two score vectors order differently; tied in one only counts half."""
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
