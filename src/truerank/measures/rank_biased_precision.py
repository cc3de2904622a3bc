"""Rank-biased precision."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.derived import ranks
from truerank.measures.ranking import Ordered


class RankBiasedPrecision(Measure):
    """`RBP(p)` = (1 - p) Σ p^(r-1) over the ranks r of relevant documents, p = 0.8 (Moffat and Zobel 2008)."""

    NAME = "RBP"
    OWN = ("p", "rel", "cutoff")
    POSITIONAL = ("p",)
    TIE_AVERAGE = True
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        hits = ordered.hits(self.rel)
        return hits.sum(self._weights(ordered.hit_ranks(self.rel))), hits.total == 0

    def _average(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        hits = ordered.hits(self.rel)
        expected = ordered.smoothed(hits.mask.astype(np.float64))
        return ordered.sum(expected * self._weights(ranks(ordered.judgements))), hits.total == 0

    def _weights(self, rank: np.ndarray) -> np.ndarray:
        p = self.setting("p")
        weights = (1.0 - p) * p ** (rank - 1.0)
        return weights if self.cutoff is None else np.where(rank <= self.cutoff, weights, 0.0)
