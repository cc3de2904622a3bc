"""Measures that count relevant documents among the first k."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.ranking import Ordered


class Precision(Measure):
    """Relevant documents among the first k ranks, over k (also where the list is shorter, as in trec_eval)."""

    NAME = "P"
    OWN = ("rel", "cutoff")
    REQUIRED = ("cutoff",)
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        assert self.cutoff is not None  # checked before
        return relevant_above(ordered, self.rel, self.cutoff) / self.cutoff, ordered.hits(self.rel).total == 0


class Recall(Measure):
    """Relevant documents among the first k ranks, over all relevant documents."""

    NAME = "R"
    OWN = ("rel", "cutoff")
    REQUIRED = ("cutoff",)
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        assert self.cutoff is not None  # checked before
        total = ordered.hits(self.rel).total
        return relevant_above(ordered, self.rel, self.cutoff) / np.maximum(total, 1), total == 0


class Success(Measure):
    """1 if a relevant document is among the first k ranks, else 0."""

    NAME = "Success"
    OWN = ("rel", "cutoff")
    REQUIRED = ("cutoff",)
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        hits = ordered.hits(self.rel)
        first = hits.first(ordered.hit_ranks(self.rel), np.inf)
        return (first <= self.cutoff).astype(np.float64), hits.total == 0


class RPrecision(Measure):
    """Relevant documents among the first R ranks, over R, the number of relevant documents."""

    NAME = "Rprec"
    OWN = ("rel",)
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        total = ordered.hits(self.rel).total
        return relevant_above(ordered, self.rel, total) / np.maximum(total, 1), total == 0


def relevant_above(ordered: Ordered, rel: float, cutoff: int | np.ndarray) -> np.ndarray:
    """Relevant documents (k, m) at ranks up to a cutoff, one number or one for each query (m,)."""
    hits = ordered.hits(rel)
    limit = cutoff[hits.query] if isinstance(cutoff, np.ndarray) else cutoff
    return hits.sum((ordered.hit_ranks(rel) <= limit).astype(np.float64))
