"""Binary preference."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.derived import missing_count
from truerank.measures.ranking import Ordered


class BinaryPreference(Measure):
    """Bpref: mean over R relevant documents of 1 - min(n, R) / min(R, N), as trec_eval computes it.

    n is the number of judged non-relevant documents ranked above the document, N that of all judged non-relevant ones,
    retrieved or not (Buckley and Voorhees 2004). A document that is not ranked adds 0; one with none above it adds 1.
    Documents of negative grade count as unjudged, as in trec_eval.
    """

    NAME = "Bpref"
    OWN = ("rel",)
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        judgements, hits = ordered.judgements, ordered.hits(self.rel)
        bad = (judgements.grades >= 0) & ~hits.mask
        if judgements.judged is not None:
            bad &= judgements.judged
        offsets = judgements.offsets
        running = np.concatenate([[0], np.cumsum(bad)])
        all_bad = running[offsets[1:]] - running[offsets[:-1]]
        all_bad += missing_count(judgements, 0.0) - missing_count(judgements, self.rel)
        above = np.cumsum(bad[ordered.rows], axis=1)
        at = ordered.hit_ranks(self.rel) - 1 + hits.first_row
        first = np.take_along_axis(above, np.broadcast_to(hits.first_row, at.shape), axis=1)
        first -= bad[ordered.rows[:, hits.first_row]]
        n = np.take_along_axis(above, at, axis=1) - first
        relevant = hits.total[hits.query]
        limit = np.maximum(np.minimum(relevant, all_bad[hits.query]), 1)
        value = 1.0 - np.minimum(n, relevant) / limit
        return hits.sum(value) / np.maximum(hits.total, 1), hits.total == 0
