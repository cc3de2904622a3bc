"""Counts of documents and queries, which reports sum over queries."""

from __future__ import annotations

import numpy as np

from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import Hits, hits_of
from truerank.measures.rank_form import SUM, RankForm
from truerank.measures.ranking import Ordered


class _Counted(Measure):
    """A count for each query, summed over queries in reports; no query is empty."""

    AGGREGATE = "sum"
    TIE_AVERAGE = True

    def _of(self, judgements: Judgements) -> np.ndarray:
        raise NotImplementedError

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        counts = self._of(ordered.judgements).astype(np.float64)
        return np.tile(counts, (ordered.k, 1)), np.zeros(len(counts), dtype=bool)


class RelevantRetrievedCount(_Counted):
    """The number of relevant documents among the first k ranks or all (trec_eval's num_rel_ret, ranx's hits)."""

    NAME = "NumRelRet"
    OWN = ("rel", "cutoff")

    def rank_form(self, judgements: Judgements) -> RankForm:
        m = judgements.n_queries
        ones, never = np.ones(judgements.longest), np.zeros(m, dtype=bool)
        return RankForm(SUM, self._hits(judgements), ones, np.ones(m), never, limits=self.limits(judgements))

    def _hits(self, judgements: Judgements) -> Hits:
        """Return the documents that count if they are ranked."""
        return hits_of(judgements, self.rel)


class RetrievedCount(RelevantRetrievedCount):
    """The number of ranked documents (trec_eval's num_ret). As in ir_measures, `NumRet(rel=1)` counts relevant ones."""

    NAME = "NumRet"

    def _hits(self, judgements: Judgements) -> Hits:
        if "rel" in self._given:
            return super()._hits(judgements)
        return Hits(judgements.offsets, np.ones(judgements.n_rows, dtype=bool))


class RelevantCount(_Counted):
    """The number of relevant documents, retrieved or not (trec_eval's num_rel)."""

    NAME = "NumRel"
    OWN = ("rel",)

    def _of(self, judgements: Judgements) -> np.ndarray:
        return hits_of(judgements, self.rel).total


class QueryCount(_Counted):
    """The number of queries, 1 for each (trec_eval's num_q)."""

    NAME = "NumQ"

    def _of(self, judgements: Judgements) -> np.ndarray:
        return np.ones(judgements.n_queries)
