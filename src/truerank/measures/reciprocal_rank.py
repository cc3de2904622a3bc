"""Reciprocal rank."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.ranking import Ordered


class ReciprocalRank(Measure):
    """1 / rank of the first relevant document, 0 if it is not ranked or beyond the cutoff. Its mean is MRR."""

    NAME = "RR"
    OWN = ("rel", "cutoff")
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        hits = ordered.hits(self.rel)
        first = hits.first(ordered.hit_ranks(self.rel), np.inf)
        if self.cutoff is not None:
            first[first > self.cutoff] = np.inf
        return 1.0 / first, hits.total == 0
