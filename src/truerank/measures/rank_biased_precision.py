"""Rank-biased precision."""

from __future__ import annotations

import numpy as np

from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import hits_of
from truerank.measures.rank_form import SUM, RankForm


class RankBiasedPrecision(Measure):
    """`RBP(p)` = (1 - p) Σ p^(r-1) over the ranks r of relevant documents, p = 0.8 (Moffat and Zobel 2008).

    With `graded=True`, as in ranx, each term is multiplied by the grade. The measure of trec_eval 10 is `rbp`.
    """

    NAME = "RBP"
    OWN = ("p", "rel", "cutoff", "graded")
    POSITIONAL = ("p",)
    TIE_AVERAGE = True

    def rank_form(self, judgements: Judgements) -> RankForm:
        hits, p = hits_of(judgements, self.rel), self.setting("p")
        weights = (1.0 - p) * p ** np.arange(judgements.longest, dtype=np.float64)
        norm = np.ones(judgements.n_queries)
        gains = hits.mask * judgements.grades if self.setting("graded") else None
        return RankForm(SUM, hits, weights, norm, hits.total == 0, gains=gains, limits=self.limits(judgements))
