"""Average precision."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.ranking import Ordered


class AveragePrecision(Measure):
    """Mean over all relevant documents of the precision at their rank; a document that is not ranked adds 0.

    `AP@k` lets ranks beyond k add nothing; `denominator="reachable"` then divides by min(R, k), as LightGBM, XGBoost
    and CatBoost do, else by R. Its mean over queries is MAP.
    """

    NAME = "AP"
    OWN = ("rel", "cutoff", "denominator")
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        hits, ranks = ordered.hits(self.rel), ordered.hit_ranks(self.rel)
        precision = hits.ordinal / ranks
        total = hits.total
        if self.cutoff is not None:
            precision[ranks > self.cutoff] = 0.0
            if self.setting("denominator") == "reachable":
                total = np.minimum(total, self.cutoff)
        return hits.sum(precision) / np.maximum(total, 1), total == 0
