"""Fusion rules by score and by rank.

Each rule is a function from a `RunPool` to scores (n,) of its documents, higher is better. `s_j` is the score of
document d in run j after min-max scaling within the list (0 if all scores are equal), `rank_j` its rank (1 is best,
ties by descending document id), and `c` the number of runs that retrieved d. Sums are over the c runs that retrieved d.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truerank.core.checks import check_number
from truerank.data.grouping import offsets_of
from truerank.features.run_pool import RunPool

K = 60  # the value of Cormack et al. for reciprocal rank fusion
Weights = Sequence[float] | np.ndarray | None


def min_max_scores(pool: RunPool, equal: float = 0.0) -> np.ndarray:
    """Return `(score - min) / (max - min)` within each list, float64 (e,); `equal` if all scores are equal."""
    low = pool.per_list(np.minimum, pool.scores)
    # Halves keep the range finite near the largest float.
    half = pool.per_list(np.maximum, pool.scores) / 2 - low / 2
    scaled = (pool.scores / 2 - pool.spread(low / 2)) / pool.spread(np.where(half > 0, half, 1.0))
    return np.where(pool.spread(half) > 0, scaled, equal)


def comb_sum(pool: RunPool, weights: Weights = None) -> np.ndarray:
    """Return CombSUM, `Σ_j w_j s_j` (Fox and Shaw 1993, Combination of multiple searches), by default with weights 1.

    `truerank fuse` uses each run's mean of the measure over the training topics as its weight (performance weighting:
    Wu, Bi, Zeng, Han 2009, Assigning appropriate weights for the linear combination data fusion method, IPM 45).
    """
    return pool.add_up(min_max_scores(pool) * pool.checked_weights(weights)[pool.run_of_entry])


def comb_mnz(pool: RunPool, weights: Weights = None) -> np.ndarray:
    """Return CombMNZ, `c Σ_j s_j` (Fox and Shaw 1993), or with weights `(Σ_j w_j) (Σ_j s_j)` (Wu and Crestani 2002)."""
    return comb_sum(pool) * pool.add_up(pool.checked_weights(weights)[pool.run_of_entry])


def comb_anz(pool: RunPool) -> np.ndarray:
    """Return CombANZ, `(1/c) Σ_j s_j`, the mean over the runs that retrieved the document (Fox and Shaw 1993)."""
    return comb_sum(pool) / np.maximum(pool.times_retrieved, 1.0)


def comb_max(pool: RunPool) -> np.ndarray:
    """Return CombMAX, `max_j s_j` (Fox and Shaw 1993)."""
    result = np.zeros(pool.n_rows)
    np.maximum.at(result, pool.rows, min_max_scores(pool))
    return result


def comb_min(pool: RunPool) -> np.ndarray:
    """Return CombMIN, `min_j s_j` over the runs that retrieved the document (Fox and Shaw 1993)."""
    result = np.full(pool.n_rows, np.inf)
    np.minimum.at(result, pool.rows, min_max_scores(pool))
    return result


def comb_med(pool: RunPool) -> np.ndarray:
    """Return CombMED, the median of the `s_j` over the runs that retrieved the document (Fox and Shaw 1993)."""
    scores = min_max_scores(pool)
    order = np.lexsort((scores, pool.rows))
    count = np.bincount(pool.rows, minlength=pool.n_rows)
    first = offsets_of(count)[:-1]
    ranked = scores[order]
    return 0.5 * (ranked[first + (count - 1) // 2] + ranked[first + count // 2])


def reciprocal_rank_fusion(pool: RunPool, k: float = K) -> np.ndarray:
    """Return RRF, `Σ_j 1 / (k + rank_j)` (Cormack, Clarke, Büttcher 2009, Reciprocal rank fusion …, SIGIR).

    >>> pool = RunPool({"a": {"1": {"d1": 4.0, "d2": 2.0}}, "b": {"1": {"d2": 7.0, "d3": 6.0}}})
    >>> pool.doc_ids.tolist(), reciprocal_rank_fusion(pool, k=0).tolist()
    (['d3', 'd2', 'd1'], [0.5, 1.5, 1.0])
    """
    check_number(k, "k", "[0, inf)")
    return pool.add_up(1.0 / (k + pool.ranks))


def borda(pool: RunPool, weights: Weights = None) -> np.ndarray:
    """Return the Borda count (Aslam and Montague 2001, Models for metasearch), whose weights are the runs' MAP.

    With N documents in the topic's union, a run gives `N - rank_j + 1` points to each document of its list, and `(N -
    n_j + 1) / 2` to each other document, n_j being the length of the list. Points are multiplied by `w_j`, by default
    1.
    """
    w = pool.checked_weights(weights)
    size = np.diff(pool.offsets).astype(np.float64)
    rest = (size[:, None] - pool.lengths + 1.0) / 2.0  # (m, r)
    points = np.repeat(size, pool.lengths.sum(axis=1)) - pool.ranks + 1.0
    retrieved = pool.add_up((points - pool.spread(rest.ravel())) * w[pool.run_of_entry])
    return retrieved + (rest * w).sum(axis=1)[pool.query_of_row]
