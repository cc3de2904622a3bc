"""Share of judged documents."""

from __future__ import annotations

import numpy as np

from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import Hits
from truerank.measures.rank_form import SUM, RankForm


class JudgedShare(Measure):
    """The share of the first k documents (or of all) that are judged. No query is empty."""

    NAME = "Judged"
    OWN = ("cutoff",)
    TIE_AVERAGE = True

    @property
    def rises_with_grades(self) -> bool:
        """False: unjudged documents have no grade."""
        return False

    def rank_form(self, judgements: Judgements) -> RankForm:
        sizes = judgements.sizes
        judged = np.ones(judgements.n_rows, dtype=bool) if judgements.judged is None else judgements.judged
        seen = sizes if self.cutoff is None else np.minimum(sizes, self.cutoff)
        hits = Hits(judgements.offsets, judged, "judged")
        norm, empty = np.maximum(seen, 1).astype(np.float64), np.zeros(len(sizes), dtype=bool)
        return RankForm(SUM, hits, np.ones(judgements.longest), norm, empty, limits=self.limits(judgements))
