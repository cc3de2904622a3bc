"""The rank form: the formula of a measure in terms of the ranks of contributing documents.

NumPy code in this module and the compiled code of `measures/kernel.py` evaluate the formula. Both add in one order, so
that all bits agree. The rank of a document is given by its tied group: `before` documents are above the group, and
`size` are in it (1 if ties are broken). All orders of the group are equally likely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.measures.derived import Hits, segment_range
from truerank.measures.ranking import Ordered

SUM, PRECISION, FIRST = 0, 1, 2
NO_LIMIT = np.iinfo(np.int64).max >> 1


@dataclass(frozen=True, slots=True)
class RankForm:
    """A value total / norm of each query, from the contributing documents ("hits") at ranks r ≤ limit.

    | kind | total |
    | --- | --- |
    | SUM | Σ gain · weight(r): nDCG, P, R, RBP, … |
    | PRECISION | Σ (hits up to r) / r: AP |
    | FIRST | weight(r) of the first hit: RR, Success |

    With averaged ties, each term is its expectation over the orders of the tied documents. SUM uses the mean weight of
    the group's ranks. PRECISION follows McSherry and Najork (2008, section 3): of n tied documents with r hits, after b
    hits above, the i-th (from 0) is a hit with probability r/n and then has b + 1 + i (r - 1)/(n - 1) hits up to it.
    FIRST has the group's first hit at position j with probability p_0 = r/n, p_{j+1} = p_j (n - j - r)/(n - j - 1).
    """

    kind: int
    hits: Hits
    weights: np.ndarray  # float64 (longest query,): weight of each rank; not read by PRECISION
    norm: np.ndarray  # float64 (m,): not 0; inf makes the value of a query 0
    empty: np.ndarray  # bool (m,): queries in which the measure is undefined
    gains: np.ndarray | None = None  # float64 (n,): gain of each row, for SUM; None means 1 for each hit
    limits: np.ndarray | None = None  # int64 (m,): number of ranks that count in each query; None means all

    def limit_of(self) -> np.ndarray:
        """Return the number of ranks that count in each query (m,)."""
        return np.full(len(self.norm), NO_LIMIT) if self.limits is None else self.limits

    def cumulative(self) -> np.ndarray:
        """Return the sums of the weights of the first 0, 1, … ranks, (longest + 1,)."""
        return np.concatenate([[0.0], np.cumsum(self.weights)])

    def values(self, ordered: Ordered) -> np.ndarray:
        """Return values (k, m) of ordered documents; the values of empty queries are meaningless."""
        hits = self.hits
        before = ordered.hit_places(hits)  # settled ties: each hit is a group of its own
        size = None
        if ordered.ties == "average" and ordered.any_tied:
            before, size = ordered.hit_groups(hits)
        limits = self.limits
        limit = np.broadcast_to(NO_LIMIT, len(hits.query)) if limits is None else limits[hits.query]
        total = (self._sum, self._precision, self._first)[self.kind](ordered, before, size, limit)
        return total / self.norm

    def _sum(self, ordered: Ordered, before: np.ndarray, size: np.ndarray | None, limit: np.ndarray) -> np.ndarray:
        """Return the sums over the hits up to the limit, which are few with a small cutoff."""
        hits, k, m = self.hits, ordered.k, len(self.norm)
        counted: Any = slice(None) if k == 1 and self.limits is None else np.flatnonzero(before < limit)
        ranking, hit = (0, counted) if k == 1 else np.divmod(counted, before.shape[1])
        place, query = before.ravel()[counted], hits.query[hit]
        terms = self.weights[place]
        if size is not None:
            size, limit, running = size.ravel()[counted], limit[hit], self.cumulative()
            mean = (running[np.minimum(place + size, limit)] - running[place]) / size
            terms = np.where(size == 1, terms, mean)
        if self.gains is not None:
            own = ordered.hit_places(hits).ravel()[counted]
            terms = self.gains[ordered.rows[ranking, hits.first_row[hit] + own]] * terms
        return np.bincount(query + m * ranking, weights=terms, minlength=k * m).reshape(k, m)

    def _precision(
        self, ordered: Ordered, before: np.ndarray, size: np.ndarray | None, limit: np.ndarray
    ) -> np.ndarray:
        hits = self.hits
        if size is None:
            return hits.sum(np.where(before < limit, hits.ordinal / (before + 1), 0.0))
        # Every place of a tied group with hits, for the k rankings one after another.
        query = hits.query + len(self.norm) * np.arange(ordered.k)[:, None]
        before, size, query = before.ravel(), size.ravel(), query.ravel()
        new = np.append(True, (before[1:] != before[:-1]) | (query[1:] != query[:-1]))
        start = np.flatnonzero(new[: len(before)])
        r = np.diff(np.append(start, len(before)))
        found = np.tile(hits.ordinal, ordered.k)[start] - 1
        g, n, query = before[start], size[start], query[start]
        i, limits = segment_range(n), np.repeat(np.tile(limit, ordered.k)[start], n)
        g, r, found, query, n = (np.repeat(values, n) for values in (g, r, found, query, n))
        place = g + i
        value = r / n * (found + 1 + i * (r - 1) / np.maximum(n - 1, 1)) / (place + 1)
        value[place >= limits] = 0.0
        m = len(self.norm)
        return np.bincount(query, weights=value, minlength=m * ordered.k).reshape(ordered.k, m)

    def _first(self, ordered: Ordered, before: np.ndarray, size: np.ndarray | None, limit: np.ndarray) -> np.ndarray:
        hits, m = self.hits, len(self.norm)
        result = np.zeros((ordered.k, m))
        if not len(hits.queries):
            return result
        weights = np.append(self.weights, 0.0)
        g, limit = before[:, hits.starts], limit[hits.starts]
        if size is None:
            result[:, hits.queries] = np.where(g < limit, weights[np.minimum(g, len(weights) - 1)], 0.0)
            return result
        same = before == np.repeat(g, hits.ranked[hits.queries], axis=1)
        r = hits.sum(same.astype(np.float64))[:, hits.queries].astype(np.int64).ravel()
        n, g = size[:, hits.starts].ravel(), g.ravel()
        limit = np.tile(limit, ordered.k)
        value, p, alive, j = np.zeros(len(g)), r / n, np.arange(len(g)), 0
        while len(alive):
            place = g[alive] + j
            value[alive] += p[alive] * np.where(place < limit[alive], weights[place], 0.0)
            alive = alive[(n - r)[alive] > j]
            p[alive] *= (n - j - r)[alive] / (n - j - 1)[alive]
            j += 1
        result[:, hits.queries] = value.reshape(ordered.k, -1)
        return result
