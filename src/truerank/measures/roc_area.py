"""Area under the ROC curve, by query."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.ranking import Ordered


class ROCArea(Measure):
    """Share of the (relevant, non-relevant) pairs of ranked documents that stand in the right order.

    A query without such a pair, be it for lack of relevant or of non-relevant documents, is empty.
    """

    NAME = "ROC"
    OWN = ("rel",)
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        hits = ordered.hits(self.rel)
        others = np.diff(ordered.judgements.offsets) - hits.ranked
        pairs = hits.ranked * others
        wrong = hits.sum((ordered.hit_ranks(self.rel) - hits.ordinal).astype(np.float64))
        return 1.0 - wrong / np.maximum(pairs, 1), pairs == 0
