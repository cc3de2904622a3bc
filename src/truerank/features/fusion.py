"""Fusion without learning: rules that make one score of what several runs say of a document.

Each rule is a function of a `RunPool` that returns scores (n,) of its documents, higher is better. `s_j` is document
d's score in run j after min-max scaling within the run's list for the topic, `rank_j` its rank there (1 is best, equal
scores by descending document id), `c` the number of runs that retrieved it; sums run over those c runs.

Where no list has two equal scores the values equal ranx's (`ranx.fuse(..., norm="min-max")`). Among equal scores ranx
ranks in the order in which its sort leaves them, which the file decides; here the document ids decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_number
from truerank.core.errors import InvalidInputError
from truerank.data.grouping import offsets_of
from truerank.features.run_pool import RunPool

K = 60  # of reciprocal rank fusion: Cormack et al.'s


def min_max_scores(pool: RunPool, equal: float = 0.0) -> np.ndarray:
    """`(score - min) / (max - min)` within each list, float64 (e,); `equal` where a list's scores are all the same."""
    low = pool.per_list(np.minimum, pool.scores)
    # Halves keep the range finite where the ends are near the largest float.
    half = pool.per_list(np.maximum, pool.scores) / 2 - low / 2
    scaled = (pool.scores / 2 - pool.spread(low / 2)) / pool.spread(np.where(half > 0, half, 1.0))
    return np.where(pool.spread(half) > 0, scaled, equal)


def reciprocal_rank_fusion(pool: RunPool, k: float = K) -> np.ndarray:
    """RRF: `Σ_j 1 / (k + rank_j)`.

    References
    ----------
    Cormack, Clarke, Büttcher: Reciprocal rank fusion outperforms Condorcet and individual rank learning methods.
    SIGIR 2009.

    Examples
    --------
    >>> pool = RunPool({"a": {"1": {"d1": 4.0, "d2": 2.0}}, "b": {"1": {"d2": 7.0, "d3": 6.0}}})
    >>> pool.doc_ids.tolist(), reciprocal_rank_fusion(pool, k=0).tolist()
    (['d3', 'd2', 'd1'], [0.5, 1.5, 1.0])
    """
    check_number(k, "k", minimum=0.0)
    return pool.add_up_ranks(1.0 / (k + np.arange(1, pool.longest + 1)))


def comb_sum(pool: RunPool) -> np.ndarray:
    """CombSUM: `Σ_j s_j` (Fox and Shaw 1993, Combination of multiple searches, TREC-2)."""
    return pool.add_up(min_max_scores(pool))


def comb_mnz(pool: RunPool) -> np.ndarray:
    """CombMNZ: `c Σ_j s_j` (Fox and Shaw 1993)."""
    return _count(pool) * comb_sum(pool)


def comb_anz(pool: RunPool) -> np.ndarray:
    """CombANZ: `(1/c) Σ_j s_j`, the mean over the runs that retrieved the document (Fox and Shaw 1993)."""
    return comb_sum(pool) / np.maximum(_count(pool), 1.0)


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


def inverse_square_rank(pool: RunPool) -> np.ndarray:
    """ISR: `c Σ_j 1 / rank_j²` (Mourão, Martins, Magalhães 2015, Comput. Med. Imaging Graph. 39, 35-45)."""
    return _count(pool) * pool.add_up_ranks(1.0 / np.arange(1.0, pool.longest + 1) ** 2)


def borda(pool: RunPool) -> np.ndarray:
    """Borda count: with N documents in the topic's union, a run gives `N - rank_j + 1` to those that it retrieved.

    The others share its remaining points, `(N - n_j + 1) / 2` each, n_j being the length of its list; a run that lacks
    the topic gives the same to all (Aslam and Montague 2001, Models for metasearch, SIGIR).
    """
    size = np.diff(pool.offsets).astype(np.float64)
    rest = (size[:, None] - pool.lengths + 1.0) / 2.0  # (m, r)
    points = np.repeat(size, pool.lengths.sum(axis=1)) - pool.ranks + 1.0
    return pool.add_up(points - pool.spread(rest.ravel())) + rest.sum(axis=1)[pool.query_of_row]


def weighted_sum(pool: RunPool, weights: Sequence[float] | np.ndarray) -> np.ndarray:
    """Weighted CombSUM: `Σ_j w_j s_j`, one weight for each run of the pool.

    `truerank fuse` takes each run's mean of the measure over the training topics as its weight (performance weighting:
    Wu, Bi, Zeng, Han 2009, Assigning appropriate weights for the linear combination data fusion method, IPM 45).

    Raises
    ------
    InvalidInputError
        When there is not one finite weight for each run.
    """
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (pool.n_runs,) or not np.isfinite(values).all():
        raise InvalidInputError(
            f"weights must hold one finite number for each of the {pool.n_runs} runs, got {weights!r}"
        )
    return pool.add_up(min_max_scores(pool) * values[pool.run_of_entry])


METHODS: dict[str, Callable[[RunPool], np.ndarray]] = {
    "rrf": reciprocal_rank_fusion,
    "comb-sum": comb_sum,
    "comb-mnz": comb_mnz,
    "comb-anz": comb_anz,
    "comb-max": comb_max,
    "comb-min": comb_min,
    "comb-med": comb_med,
    "isr": inverse_square_rank,
    "borda": borda,
}


def fuse(runs: Any, method: str = "rrf", *, depth: int | None = 1000, weights: Any = None) -> Any:
    """One run of several, without learning.

    Parameters
    ----------
    runs : mapping of name to run, sequence of runs, or RunPool
        A run is a `Run`, a path, or `{topic: {document: score}}`.
    method : {"rrf", "comb-sum", "comb-mnz", "comb-anz", "comb-max", "comb-min", "comb-med", "isr", "borda", \
"weighted-sum"}
        See `truerank.features.fusion` for the formulas.
    depth : int or None, default 1000
        Documents kept for each topic; None keeps all.
    weights : array-like (r,), optional
        Of "weighted-sum", one for each run.

    Returns
    -------
    Run
        Topics in order of first appearance; its tag is the method.

    Raises
    ------
    InvalidInputError
        On an unknown method, a depth below 1, no runs, or weights that do not fit.

    Notes
    -----
    A topic that a run lacks is fused of the others. One dictionary look-up for each retrieved document.

    Examples
    --------
    >>> fused = fuse([{"q": {"d1": 2.0, "d2": 1.0}}, {"q": {"d2": 9.0, "d3": 5.0}}], "comb-mnz")
    >>> fused.doc_ids.tolist(), fused.scores.tolist()
    (['d2', 'd1', 'd3'], [2.0, 1.0, 0.0])
    """
    check_choice(method, "method", (*METHODS, "weighted-sum"))
    if (weights is None) == (method == "weighted-sum"):
        raise InvalidInputError("method 'weighted-sum' needs weights, one for each run; the other methods take none")
    pool = runs if isinstance(runs, RunPool) else RunPool(runs)
    scores = METHODS[method](pool) if weights is None else weighted_sum(pool, weights)
    return pool.to_run(scores, depth=depth, tag=method)


def _count(pool: RunPool) -> np.ndarray:
    """Runs that retrieved each document, float64 (n,)."""
    return np.bincount(pool.rows, minlength=pool.n_rows).astype(np.float64)
