"""Fusion rules by rank.

Each is a function of a `RunPool` that returns scores (n,) of its documents, higher is better. `rank_j` is the rank of
document d in run j (1 is best, ties by descending document id), and `c` the number of runs that retrieved it. Sums are
over these c runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truerank.core.checks import check_number
from truerank.features.run_pool import RunPool

K = 60  # the value of Cormack et al. for reciprocal rank fusion


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


def borda(pool: RunPool) -> np.ndarray:
    """Borda count (Aslam and Montague 2001, Models for metasearch, SIGIR).

    With N documents in the topic's union, a run gives `N - rank_j + 1` points to each document of its list, and
    `(N - n_j + 1) / 2` to each other document, n_j being the length of the list.
    """
    return weighted_borda(pool, np.ones(pool.n_runs))


def weighted_borda(pool: RunPool, weights: Sequence[float] | np.ndarray) -> np.ndarray:
    """Borda count in which run j's points count `w_j` times (Aslam and Montague 2001, by the MAP of the runs)."""
    w = pool.checked_weights(weights)
    size = np.diff(pool.offsets).astype(np.float64)
    rest = (size[:, None] - pool.lengths + 1.0) / 2.0  # (m, r)
    points = np.repeat(size, pool.lengths.sum(axis=1)) - pool.ranks + 1.0
    retrieved = pool.add_up((points - pool.spread(rest.ravel())) * w[pool.run_of_entry])
    return retrieved + (rest * w).sum(axis=1)[pool.query_of_row]


def _inverse_squares(pool: RunPool) -> np.ndarray:
    return pool.add_up_ranks(1.0 / np.arange(1.0, pool.longest + 1) ** 2)
