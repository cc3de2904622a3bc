"""Fusion rules by score, by rank and by majority.

Each is a function of a `RunPool` that returns scores (n,) of its documents, higher is better. `s_j` is the score of
document d in run j after min-max scaling within the list (0 if all scores are equal), `rank_j` its rank (1 is best,
ties by descending document id), and `c` the number of runs that retrieved d. Sums are over these c runs.
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
    """CombSUM: `Σ_j w_j s_j` (Fox and Shaw 1993, Combination of multiple searches, TREC-2), by default with weights 1.

    `truerank fuse` uses each run's mean of the measure over the training topics as its weight (performance weighting:
    Wu, Bi, Zeng, Han 2009, Assigning appropriate weights for the linear combination data fusion method, IPM 45).
    """
    return pool.add_up(min_max_scores(pool) * pool.checked_weights(weights)[pool.run_of_entry])


def comb_mnz(pool: RunPool, weights: Weights = None) -> np.ndarray:
    """CombMNZ: `c Σ_j s_j` (Fox and Shaw 1993), or with weights `(Σ_j w_j) (Σ_j s_j)` (Wu and Crestani 2002)."""
    return comb_sum(pool) * pool.add_up(pool.checked_weights(weights)[pool.run_of_entry])


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


def mixed(pool: RunPool, weights: Weights) -> np.ndarray:
    """`√c Σ_j w_j s_j` (Wu and Crestani 2002, Data fusion with estimated weights, CIKM)."""
    return comb_sum(pool, weights) * np.sqrt(pool.times_retrieved)


def reciprocal_rank_fusion(pool: RunPool, k: float = K) -> np.ndarray:
    """RRF: `Σ_j 1 / (k + rank_j)` (Cormack, Clarke, Büttcher 2009, Reciprocal rank fusion …, SIGIR).

    >>> pool = RunPool({"a": {"1": {"d1": 4.0, "d2": 2.0}}, "b": {"1": {"d2": 7.0, "d3": 6.0}}})
    >>> pool.doc_ids.tolist(), reciprocal_rank_fusion(pool, k=0).tolist()
    (['d3', 'd2', 'd1'], [0.5, 1.5, 1.0])
    """
    check_number(k, "k", minimum=0.0)
    return pool.add_up_ranks(1.0 / (k + np.arange(1, pool.longest + 1)))


def inverse_square_rank(pool: RunPool) -> np.ndarray:
    """ISR: `c Σ_j 1 / rank_j²` (Mourão, Martins, Magalhães 2015, Comput. Med. Imaging Graph. 39, 35-45)."""
    return pool.times_retrieved * _inverse_squares(pool)


def log_inverse_square_rank(pool: RunPool) -> np.ndarray:
    """LogISR: `log(c) Σ_j 1 / rank_j²` (Mourão et al. 2015); 0 for documents of a single run."""
    return _inverse_squares(pool) * np.log(pool.times_retrieved)


def lognorm_inverse_square_rank(pool: RunPool, sigma: float = 0.01) -> np.ndarray:
    """LogNISR: `log(c + σ) Σ_j 1 / rank_j²` (Mourão et al. 2015), σ in [0, 1]; also ranks documents of a single run."""
    check_number(sigma, "sigma", minimum=0.0, maximum=1.0)
    return _inverse_squares(pool) * np.log(pool.times_retrieved + sigma)


def rank_biased_centroid(pool: RunPool, phi: float = 0.8) -> np.ndarray:
    """RBC: `Σ_j (1 - φ) φ^(rank_j - 1)`, the weight of rank-biased precision (Bailey et al. 2017, SIGIR)."""
    check_number(phi, "phi", minimum=0.0, maximum=1.0, open_minimum=True, open_maximum=True)
    return pool.add_up_ranks((1.0 - phi) * phi ** np.arange(pool.longest))


def borda(pool: RunPool, weights: Weights = None) -> np.ndarray:
    """Borda count (Aslam and Montague 2001, Models for metasearch, SIGIR), whose weights are the MAP of the runs.

    With N documents in the topic's union, a run gives `N - rank_j + 1` points to each document of its list, and
    `(N - n_j + 1) / 2` to each other document, n_j being the length of the list. They count `w_j` times, by default 1.
    """
    w = pool.checked_weights(weights)
    size = np.diff(pool.offsets).astype(np.float64)
    rest = (size[:, None] - pool.lengths + 1.0) / 2.0  # (m, r)
    points = np.repeat(size, pool.lengths.sum(axis=1)) - pool.ranks + 1.0
    retrieved = pool.add_up((points - pool.spread(rest.ravel())) * w[pool.run_of_entry])
    return retrieved + (rest * w).sum(axis=1)[pool.query_of_row]


def condorcet(pool: RunPool, weights: Weights = None) -> np.ndarray:
    """Condorcet-fuse (Montague, Aslam 2002, Condorcet fusion for improved retrieval, CIKM); the default weights are 1.

    Documents are sorted by majority; of N documents the first gets N, the last 1. `a` beats `b` if the runs that
    rank a above b have a larger sum of weights than those that rank b above a. A run ranks its own documents above all
    others, and does not compare the others. Ties break by descending document id. If majorities are circular, the order
    is that of a merge sort from descending ids. No document loses to the next. Each topic costs O(r N log N).

    >>> runs = {"a": {"1": {"d1": 3.0, "d2": 2.0}}, "b": {"1": {"d2": 2.0}}, "c": {"1": {"d2": 9.0, "d3": 8.0}}}
    >>> pool = RunPool(runs)
    >>> pool.doc_ids.tolist(), condorcet(pool, [1, 1, 1]).tolist()
    (['d3', 'd2', 'd1'], [2.0, 3.0, 1.0])
    >>> condorcet(pool, [3, 1, 1]).tolist()
    [1.0, 2.0, 3.0]
    """
    w, size = pool.checked_weights(weights), np.diff(pool.offsets)
    places = np.tile(np.repeat(size, size).astype(np.int32), (pool.n_runs, 1))
    places[pool.run_of_entry, pool.rows] = pool.ranks - 1
    order, width = np.arange(pool.n_rows), 1
    while width < size.max(initial=0):
        pairs = -(-np.maximum(size - width, 0) // (2 * width))  # of sorted neighbours in each topic
        topic = np.repeat(np.arange(len(size)), pairs)
        first = pool.offsets[topic] + 2 * width * (np.arange(len(topic)) - np.repeat(np.cumsum(pairs) - pairs, pairs))
        last = np.minimum(first + 2 * width, pool.offsets[topic + 1])
        order = _merged(order, first, first + width, last, places, w)
        width *= 2
    result = np.empty(pool.n_rows)
    result[order] = np.repeat(pool.offsets[1:], size) - np.arange(pool.n_rows)
    return result


def _inverse_squares(pool: RunPool) -> np.ndarray:
    return pool.add_up_ranks(1.0 / np.arange(1.0, pool.longest + 1) ** 2)


def _merged(
    order: np.ndarray, first: np.ndarray, middle: np.ndarray, last: np.ndarray, places: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Merge pairs of sorted neighbours of `order`, all pairs at once; on equal votes the left document comes first."""
    result, left, right = order.copy(), first.copy(), middle.copy()
    for k in range(int((last - first).max())):
        here = np.flatnonzero(first + k < last)
        if len(here) < len(first):
            first, middle, last, left, right = (own[here] for own in (first, middle, last, left, right))
        a, b = order[np.minimum(right, last - 1)], order[np.minimum(left, middle - 1)]
        votes = weights[:, None] * np.sign(places.take(b, axis=1) - places.take(a, axis=1))
        from_right = (right < last) & ((left == middle) | (np.cumsum(votes, axis=0)[-1] > 0))
        result[first + k] = np.where(from_right, a, b)
        right += from_right
        left += ~from_right
    return result
