"""Measures that count relevant documents among the first k."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.derived import Hits, query_of_row, ranks
from truerank.measures.ranking import Ordered


class _Count(Measure):
    """A measure that is linear in the number of relevant documents at the first ranks."""

    TIE_AVERAGE = True
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        hits = ordered.hits(self.rel)
        limit = self._limit(hits)
        within = ordered.hit_ranks(self.rel) <= (limit[hits.query] if isinstance(limit, np.ndarray) else limit)
        return self._share(hits.sum(within.astype(np.float64)), ordered), hits.total == 0

    def _average(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        judgements, hits = ordered.judgements, ordered.hits(self.rel)
        limit = self._limit(hits)
        limit = limit[query_of_row(judgements)] if isinstance(limit, np.ndarray) else limit
        expected = ordered.smoothed(hits.mask.astype(np.float64)) * (ranks(judgements) <= limit)
        return self._share(ordered.sum(expected), ordered), hits.total == 0

    def _limit(self, hits: Hits) -> int | np.ndarray:
        """Ranks that count, one number or one for each query (m,)."""
        assert self.cutoff is not None  # REQUIRED is checked before
        return self.cutoff

    def _share(self, found: np.ndarray, ordered: Ordered) -> np.ndarray:
        """Value (k, m) of the number of relevant documents found (k, m)."""
        raise NotImplementedError


class Precision(_Count):
    """Relevant documents among the first k ranks, over k, also where the list is shorter, as in trec_eval.

    For a query with fewer ranked documents than k, `short="zero"` gives 0, as LETOR 3's script does, and
    `short="shorten"` divides by their number, as XGBoost and CatBoost do.
    """

    NAME = "P"
    OWN = ("rel", "cutoff", "short")
    REQUIRED = ("cutoff",)
    __slots__ = ()

    def _share(self, found: np.ndarray, ordered: Ordered) -> np.ndarray:
        assert self.cutoff is not None  # REQUIRED is checked before
        sizes, short = np.diff(ordered.judgements.offsets), self.setting("short")
        if short == "shorten":
            return found / np.clip(sizes, 1, self.cutoff)
        if short == "zero":
            found[:, sizes < self.cutoff] = 0.0
        return found / self.cutoff


class Recall(_Count):
    """Relevant documents among the first k ranks, over all relevant documents."""

    NAME = "R"
    OWN = ("rel", "cutoff")
    REQUIRED = ("cutoff",)
    __slots__ = ()

    def _share(self, found: np.ndarray, ordered: Ordered) -> np.ndarray:
        return found / np.maximum(ordered.hits(self.rel).total, 1)


class RPrecision(_Count):
    """Relevant documents among the first R ranks, over R, the number of relevant documents."""

    NAME = "Rprec"
    OWN = ("rel",)
    __slots__ = ()

    def _limit(self, hits: Hits) -> int | np.ndarray:
        return hits.total

    def _share(self, found: np.ndarray, ordered: Ordered) -> np.ndarray:
        return found / np.maximum(ordered.hits(self.rel).total, 1)
