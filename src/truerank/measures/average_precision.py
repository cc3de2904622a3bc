"""Average precision."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.derived import Hits, ranks, segment_range
from truerank.measures.ranking import Ordered


class AveragePrecision(Measure):
    """Mean over all relevant documents of the precision at their rank; a document that is not ranked adds 0.

    `AP@k` lets ranks beyond k add nothing; `denominator="reachable"` then divides by min(R, k), as LightGBM, XGBoost
    and CatBoost do, else by R. `ties="end"` counts every tied document at the last rank of its group, as scikit-learn's
    `average_precision_score` and `label_ranking_average_precision_score` do. Its mean over queries is MAP.
    """

    NAME = "AP"
    OWN = ("rel", "cutoff", "denominator")
    TIE_AVERAGE = True
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        hits, at = ordered.hits(self.rel), ordered.hit_ranks(self.rel)
        if ordered.ties == "end":
            return self._normalised(hits.sum(self._at_group_ends(ordered, hits)), hits.total)
        precision = hits.ordinal / at
        if self.cutoff is not None:
            precision[at > self.cutoff] = 0.0
        return self._normalised(hits.sum(precision), hits.total)

    def _normalised(self, values: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        empty = total == 0
        if self.cutoff is not None and self.setting("denominator") == "reachable":
            total = np.minimum(total, self.cutoff)
        return values / np.maximum(total, 1), empty

    def _average(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        # A group of n tied documents, r of them relevant, after s documents with b relevant ones: the document at place
        # s + i is relevant with probability r/n, and then (i - 1)(r - 1)/(n - 1) of the group are expected before it
        # (McSherry and Najork 2008, section 3).
        hits, first, size, relevant, before = _relevant_groups(ordered, self.rel)
        place = np.repeat(first, size) + segment_range(size)
        rank = ranks(ordered.judgements)[place % max(1, ordered.judgements.n_rows)]
        i, n, r = segment_range(size), np.repeat(size, size), np.repeat(relevant, size)
        found = np.repeat(before, size) + 1 + i * (r - 1) / np.maximum(n - 1, 1)
        value = r / n * found / rank
        if self.cutoff is not None:
            value[rank > self.cutoff] = 0.0
        places = np.zeros(ordered.rows.size)
        places[place] = value
        return self._normalised(ordered.sum(places.reshape(ordered.rows.shape)), hits.total)

    def _at_group_ends(self, ordered: Ordered, hits: Hits) -> np.ndarray:
        """Precision of each relevant document (k, h) with all its tied documents ranked at the group's end."""
        _, first, size, relevant, before = _relevant_groups(ordered, self.rel)
        end = ranks(ordered.judgements)[(first + size - 1) % max(1, ordered.judgements.n_rows)]
        value = np.repeat((before + relevant) / end, relevant)
        if self.cutoff is not None:
            value[np.repeat(end, relevant) > self.cutoff] = 0.0
        return value.reshape(ordered.k, -1)


def _relevant_groups(ordered: Ordered, rel: float) -> tuple[Hits, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Tied groups with relevant documents: first flat place, size, relevant ones in it and before it in its query."""
    hits = ordered.hits(rel)
    first, size = ordered.groups()
    running = np.concatenate([[0], np.cumsum(hits.mask[ordered.rows])])
    relevant = running[first + size] - running[first]
    keep = relevant > 0
    first, size, relevant = first[keep], size[keep], relevant[keep]
    n = max(1, ordered.judgements.n_rows)
    row = first % n
    start_of_query = first - (ranks(ordered.judgements)[row] - 1)
    return hits, first, size, relevant, running[first] - running[start_of_query]
