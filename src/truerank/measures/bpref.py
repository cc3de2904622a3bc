"""Binary preference."""

from __future__ import annotations

import numpy as np

from truerank.data.grouping import sums_by_query
from truerank.measures.base import Measure
from truerank.measures.derived import missing_count
from truerank.measures.ranking import Ordered


class BinaryPreference(Measure):
    """The mean over R relevant documents of 1 - min(n, R) / min(R, N), as trec_eval computes bpref.

    Above a relevant document rank n documents that were judged non-relevant, of N in the qrels (Buckley and Voorhees
    2004). A relevant document that is not ranked adds 0. A negative grade marks an unjudged document.
    """

    NAME = "Bpref"
    OWN = ("rel",)

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        judgements, hits = ordered.judgements, ordered.hits(self.rel)
        bad = (judgements.grades >= 0) & ~hits.mask
        if judgements.judged is not None:
            bad &= judgements.judged
        all_bad = sums_by_query(bad.astype(np.int64), judgements.offsets)
        all_bad += missing_count(judgements, 0.0) - missing_count(judgements, self.rel)
        n = ordered.count_above(bad, hits)
        relevant = hits.total[hits.query]
        limit = np.maximum(np.minimum(relevant, all_bad[hits.query]), 1)
        value = 1.0 - np.minimum(n, relevant) / limit
        return hits.sum(value) / np.maximum(hits.total, 1), hits.total == 0
