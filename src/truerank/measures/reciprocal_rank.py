"""Measures of the rank of the first relevant document."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.derived import ranks
from truerank.measures.ranking import Ordered


class _FirstHit(Measure):
    """A measure that is a function of the rank of the first relevant document."""

    OWN = ("rel", "cutoff")
    TIE_AVERAGE = True
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        hits = ordered.hits(self.rel)
        first = hits.first(ordered.hit_ranks(self.rel), np.inf)
        if self.cutoff is not None:
            first[first > self.cutoff] = np.inf
        return self._of_rank(first), hits.total == 0

    def _average(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        # Of a query's tied groups only the first with relevant documents matters. With r relevant among its n, the
        # first stands at the group's place j + 1 with probability p_j: p_0 = r/n, p_{j+1} = p_j (n-j-r)/(n-j-1).
        judgements, hits = ordered.judgements, ordered.hits(self.rel)
        result = np.zeros((ordered.k, judgements.n_queries))
        start, size = ordered.groups()
        running = np.concatenate([[0], np.cumsum(hits.mask[ordered.rows])])
        group_of_place = np.repeat(np.arange(len(start)), size)
        n_rows = max(1, judgements.n_rows)
        first_place = hits.first(ordered.hit_ranks(self.rel), 0.0)[:, hits.queries].astype(np.int64) - 1
        first_place += judgements.offsets[hits.queries] + n_rows * np.arange(ordered.k)[:, None]
        group = group_of_place[first_place.ravel()]
        n, r = size[group], running[start[group] + size[group]] - running[start[group]]
        before = ranks(judgements)[start[group] % n_rows] - 1
        value, p, alive = np.zeros(len(group)), r / np.maximum(n, 1), np.arange(len(group))
        j = 0
        while len(alive):
            rank = (before[alive] + j + 1).astype(np.float64)
            if self.cutoff is not None:
                rank[rank > self.cutoff] = np.inf
            value[alive] += p[alive] * self._of_rank(rank)
            alive = alive[(n - r)[alive] > j]
            p[alive] *= (n - j - r)[alive] / (n - j - 1)[alive]
            j += 1
        result[:, hits.queries] = value.reshape(ordered.k, -1)
        return result, hits.total == 0

    def _of_rank(self, rank: np.ndarray) -> np.ndarray:
        """Value at ranks; inf is a document that is not found."""
        raise NotImplementedError


class ReciprocalRank(_FirstHit):
    """1 / rank of the first relevant document, 0 if it is not ranked or beyond the cutoff. Its mean is MRR."""

    NAME = "RR"
    __slots__ = ()

    def _of_rank(self, rank: np.ndarray) -> np.ndarray:
        return 1.0 / rank


class Success(_FirstHit):
    """1 if a relevant document is among the first k ranks, else 0."""

    NAME = "Success"
    REQUIRED = ("cutoff",)
    __slots__ = ()

    def _of_rank(self, rank: np.ndarray) -> np.ndarray:
        return np.isfinite(rank).astype(np.float64)
