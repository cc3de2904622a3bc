"""Fusion rules by score.

Each is a function of a `RunPool` that returns scores (n,) of its documents, higher is better. `s_j` is the score of
document d in run j after min-max scaling within the list, and `c` the number of runs that retrieved d. Sums are over
these c runs. A list whose scores are all equal has `s_j = 0`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truerank.core.checks import check_number
from truerank.data.grouping import offsets_of
from truerank.features.run_pool import RunPool


def min_max_scores(pool: RunPool, equal: float = 0.0) -> np.ndarray:
    """Return `(score - min) / (max - min)` within each list, float64 (e,); `equal` if all scores are equal."""
    low = pool.per_list(np.minimum, pool.scores)
    # Halves keep the range finite near the largest float.
    half = pool.per_list(np.maximum, pool.scores) / 2 - low / 2
    scaled = (pool.scores / 2 - pool.spread(low / 2)) / pool.spread(np.where(half > 0, half, 1.0))
    return np.where(pool.spread(half) > 0, scaled, equal)


def comb_sum(pool: RunPool) -> np.ndarray:
    """CombSUM: `Σ_j s_j` (Fox and Shaw 1993, Combination of multiple searches, TREC-2)."""
    return pool.add_up(min_max_scores(pool))


def comb_mnz(pool: RunPool) -> np.ndarray:
    """CombMNZ: `c Σ_j s_j` (Fox and Shaw 1993)."""
    return pool.times_retrieved * comb_sum(pool)


def comb_anz(pool: RunPool) -> np.ndarray:
    """CombANZ: `(1/c) Σ_j s_j`, the mean over the runs that retrieved the document (Fox and Shaw 1993)."""
    return comb_sum(pool) / np.maximum(pool.times_retrieved, 1.0)


def comb_gmnz(pool: RunPool, gamma: float = 0.5) -> np.ndarray:
    """CombGMNZ: `c^γ Σ_j s_j` (Lee 1997, Analyses of multiple evidence combination, SIGIR).

    γ = 0 is CombSUM and γ = 1 is CombMNZ. The default is our choice.
    """
    return pool.times_retrieved ** check_number(gamma, "gamma") * comb_sum(pool)


def comb_max(pool: RunPool) -> np.ndarray:
    """CombMAX: `max_j s_j` (Fox and Shaw 1993)."""
    result = np.zeros(pool.n_rows)
    np.maximum.at(result, pool.rows, min_max_scores(pool))
    return result


def comb_min(pool: RunPool) -> np.ndarray:
    """CombMIN: `min_j s_j` over the runs that retrieved the document (Fox and Shaw 1993)."""
    result = np.full(pool.n_rows, np.inf)
    np.minimum.at(result, pool.rows, min_max_scores(pool))
    return result


def comb_med(pool: RunPool) -> np.ndarray:
    """CombMED: the median of the `s_j` over the runs that retrieved the document (Fox and Shaw 1993)."""
    scores = min_max_scores(pool)
    order = np.lexsort((scores, pool.rows))
    count = np.bincount(pool.rows, minlength=pool.n_rows)
    first = offsets_of(count)[:-1]
    ranked = scores[order]
    return 0.5 * (ranked[first + (count - 1) // 2] + ranked[first + count // 2])


def weighted_sum(pool: RunPool, weights: Sequence[float] | np.ndarray) -> np.ndarray:
    """Weighted CombSUM: `Σ_j w_j s_j`, with a finite weight for each run of the pool.

    `truerank fuse` uses each run's mean of the measure over the training topics as its weight (performance weighting:
    Wu, Bi, Zeng, Han 2009, Assigning appropriate weights for the linear combination data fusion method, IPM 45).
    """
    return pool.add_up(min_max_scores(pool) * pool.checked_weights(weights)[pool.run_of_entry])


def mixed(pool: RunPool, weights: Sequence[float] | np.ndarray) -> np.ndarray:
    """`√c Σ_j w_j s_j` (Wu and Crestani 2002, Data fusion with estimated weights, CIKM)."""
    return weighted_sum(pool, weights) * np.sqrt(pool.times_retrieved)


def weighted_mnz(pool: RunPool, weights: Sequence[float] | np.ndarray) -> np.ndarray:
    """Weighted CombMNZ: `(Σ_j w_j) (Σ_j s_j)` (Wu and Crestani 2002); equal weights give the ranking of CombMNZ."""
    return comb_sum(pool) * pool.add_up(pool.checked_weights(weights)[pool.run_of_entry])
