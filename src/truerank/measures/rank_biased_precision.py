"""Rank-biased precision."""

from __future__ import annotations

import numpy as np

from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import best_grade, hits_of
from truerank.measures.rank_form import SUM, RankForm


class RankBiasedPrecision(Measure):
    """`RBP(p)` = (1 - p) Σ c p^(r-1) over the ranks r of relevant documents, p = 0.8 (Moffat and Zobel 2008).

    The credit c of a document is 1 (`credit="binary"`), its grade (`"grade"`, as in ranx), or its grade over the
    highest grade of the topic (`"share"`, as in trec_eval 10).
    """

    NAME = "RBP"
    OWN = ("p", "rel", "cutoff", "credit")
    POSITIONAL = ("p",)
    TIE_AVERAGE = True

    def rank_form(self, judgements: Judgements) -> RankForm:
        hits, p = hits_of(judgements, self.rel), self.setting("p")
        weights = (1.0 - p) * p ** np.arange(judgements.longest, dtype=np.float64)
        norm, credit = np.ones(judgements.n_queries), self.setting("credit")
        if credit == "share":
            norm = np.maximum(best_grade(judgements), 1.0)
        gains = None if credit == "binary" else hits.mask * judgements.grades
        return RankForm(SUM, hits, weights, norm, hits.total == 0, gains=gains, limits=self.limits(judgements))
