"""Rank-biased precision."""

from __future__ import annotations

import numpy as np

from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import hits_of
from truerank.measures.rank_form import SUM, RankForm


class RankBiasedPrecision(Measure):
    """`RBP(p)` = (1 - p) Σ p^(r-1) over the ranks r of relevant documents, p = 0.8 (Moffat and Zobel 2008)."""

    NAME = "RBP"
    OWN = ("p", "rel", "cutoff")
    POSITIONAL = ("p",)
    TIE_AVERAGE = True

    def rank_form(self, judgements: Judgements) -> RankForm:
        hits, p = hits_of(judgements, self.rel), self.setting("p")
        weights = (1.0 - p) * p ** np.arange(judgements.longest, dtype=np.float64)
        norm = np.ones(judgements.n_queries)
        return RankForm(SUM, hits, weights, norm, hits.total == 0, limits=self.limits(judgements))
