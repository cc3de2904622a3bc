"""The LETOR 4 script's MeanNDCG."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.derived import ideal_grades, segment_range
from truerank.measures.ndcg import discounts, gain_of_grade, gains_of
from truerank.measures.ranking import Ordered


class MeanNormalisedDCG(Measure):
    """The mean of nDCG@1, nDCG@2, …, nDCG@n over all ranks of the query's list of n documents."""

    NAME = "MeanNDCG"
    OWN = ("gain", "discount")
    TIE_AVERAGE = True

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        judgements = ordered.judgements
        gain, discount = self.setting("gain"), self.setting("discount")
        row_gains = gains_of(judgements, gain)
        gains = ordered.smoothed(row_gains) if ordered.ties == "average" else row_gains[ordered.rows]
        grades, ideal_offsets = ideal_grades(judgements)
        offsets, sizes = judgements.offsets, judgements.sizes
        rank = segment_range(sizes) + 1
        weights = discounts(discount, int(rank.max()) if len(rank) else 0)[rank - 1]
        # Beyond the positive grades the best list gains nothing.
        best = np.zeros(judgements.n_rows)
        within = rank <= np.repeat(np.diff(ideal_offsets), sizes)
        best[within] = gain_of_grade(grades[(np.repeat(ideal_offsets[:-1], sizes) + rank - 1)[within]], gain)
        dcg, ideal = (ordered.running(values * weights) for values in (gains, best[None]))
        share = dcg / np.where(ideal > 0, ideal, 1.0)
        best_gain = np.zeros(judgements.n_queries)
        full = np.flatnonzero(sizes)
        best_gain[full] = best[offsets[full]]
        return ordered.sum(share) / np.maximum(sizes, 1), best_gain <= 0
