"""Measures of the rank of the first relevant document."""

from __future__ import annotations

import numpy as np

from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import hits_of
from truerank.measures.rank_form import FIRST, RankForm


class ReciprocalRank(Measure):
    """1 / rank of the first relevant document; 0 if it is not ranked up to the cutoff. The mean is MRR."""

    NAME = "RR"
    OWN = ("rel", "cutoff")
    TIE_AVERAGE = True

    def rank_form(self, judgements: Judgements) -> RankForm:
        hits = hits_of(judgements, self.rel)
        weights = self._weights(np.arange(1.0, judgements.longest + 1))
        norm = np.ones(judgements.n_queries)
        return RankForm(FIRST, hits, weights, norm, hits.total == 0, limits=self.limits(judgements))

    def _weights(self, rank: np.ndarray) -> np.ndarray:
        """Return the value of a query by the rank of its first relevant document."""
        return 1.0 / rank


class Success(ReciprocalRank):
    """1 if a relevant document is among the first k ranks, else 0."""

    NAME = "Success"
    REQUIRED = ("cutoff",)

    def _weights(self, rank: np.ndarray) -> np.ndarray:
        return np.ones(len(rank))
