"""Normalised scores of runs as search engines compute them for hybrid queries, in float32.

* min-max: (s - min)/(max - min). OpenSearch has 0.001 instead of 0, and 1 if all scores of a list are equal;
  Elasticsearch then keeps the scores, and Weaviate and Vespa have 0.
* l2: s / sqrt(Σ s²). Scores are unchanged if all are 0 (Elasticsearch: if the norm is below 1e-6).
* z-score (OpenSearch): (s - mean)/deviation with n - 1 in the deviation, 0.001 where this is not above 0, and the
  largest score of the list where s is the mean.
* rrf: 1/(k + rank); OpenSearch rounds it to ten digits.

A document that a query did not retrieve has the value 0. Sources: the normalization processor and the score ranker
processor (opensearch-project/neural-search 3.6), the linear and rrf retrievers (elasticsearch 9), Vespa's
`normalize_linear` and `reciprocal_rank`.
"""

from __future__ import annotations

import numpy as np

from truerank.features.run_pool import RunPool

TECHNIQUES: dict[str, tuple[str, ...]] = {
    "opensearch": ("min-max", "l2", "z-score", "rrf"),
    "elasticsearch": ("min-max", "l2", "rrf"),
    "vespa": ("min-max", "rrf"),
    "weaviate": ("min-max",),
}
_LOWEST = np.float32(0.001)  # what OpenSearch gives in place of 0
_EPSILON = 1e-6  # below it Elasticsearch does not divide


def engine_values(pool: RunPool, engine: str, technique: str, k: float) -> np.ndarray:
    """Return the normalised score of each entry of the pool's lists, float32 (e,); `k` is the constant of "rrf"."""
    if technique == "rrf":
        values = 1.0 / (k + pool.ranks)
        return (np.round(values, 10) if engine == "opensearch" else values).astype(np.float32)
    scores = pool.scores.astype(np.float32)
    return {"min-max": _min_max, "l2": _l2, "z-score": _z_score}[technique](pool, engine, scores)


def _min_max(pool: RunPool, engine: str, scores: np.ndarray) -> np.ndarray:
    low = pool.per_list(np.minimum, scores).astype(np.float32)
    width = pool.per_list(np.maximum, scores).astype(np.float32) - low
    each = (scores - pool.spread(low)) / pool.spread(np.where(width > 0, width, np.float32(1)))
    apart = pool.spread(width) > 0
    if engine == "opensearch":
        return np.where(apart, np.where(each == 0, _LOWEST, each), np.float32(1))
    if engine == "elasticsearch":
        return np.where(pool.spread(width) < _EPSILON, scores, each)
    return np.where(apart, each, np.float32(0))


def _l2(pool: RunPool, engine: str, scores: np.ndarray) -> np.ndarray:
    norm = np.sqrt(pool.per_list(np.add, scores.astype(np.float64) ** 2))
    least = _EPSILON if engine == "elasticsearch" else 0.0
    divided = (scores / pool.spread(np.where(norm > least, norm, 1.0))).astype(np.float32)
    return np.where(pool.spread(norm) > least, divided, scores if engine == "elasticsearch" else np.float32(0))


def _z_score(pool: RunPool, engine: str, scores: np.ndarray) -> np.ndarray:
    n, exact = pool.list_sizes, scores.astype(np.float64)
    mean = pool.per_list(np.add, exact) / np.maximum(n, 1)
    squares = pool.per_list(np.add, (exact - pool.spread(mean)) ** 2)
    deviation = pool.spread(np.sqrt(squares / np.maximum(n - 1, 1)).astype(np.float32))
    low, high = (pool.spread(pool.per_list(way, exact)).astype(np.float32) for way in (np.minimum, np.maximum))
    centred = scores - pool.spread(mean).astype(np.float32)
    z = centred / np.where(deviation > 0, deviation, np.float32(1))
    z = np.where(deviation > 0, np.where(z <= 0, _LOWEST, z), low)
    return np.where(centred == 0, high, z)
