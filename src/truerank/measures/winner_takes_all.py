"""Winner takes all."""

from __future__ import annotations

import numpy as np

from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import Hits, best_grade, query_of_row
from truerank.measures.rank_form import SUM, RankForm


class WinnerTakesAll(Measure):
    """1 if the top document has the best grade of the query, else 0. A query whose best grade is ≤ 0 is empty."""

    NAME = "WTA"
    TIE_AVERAGE = True

    def rank_form(self, judgements: Judgements) -> RankForm:
        best, m = best_grade(judgements), judgements.n_queries
        hits = Hits(judgements.offsets, judgements.grades == best[query_of_row(judgements)])
        return RankForm(SUM, hits, np.ones(judgements.longest), np.ones(m), best <= 0, limits=np.ones(m, np.int64))
