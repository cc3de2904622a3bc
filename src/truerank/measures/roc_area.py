"""Shares of pairs of documents: the area under the ROC curve, and errors between two grades."""

from __future__ import annotations

import numpy as np

from truerank.data.grouping import sums_by_query
from truerank.measures.base import EMPTY_VALUES, Measure
from truerank.measures.ranking import Ordered


class ROCArea(Measure):
    """Share of the (relevant, non-relevant) pairs of ranked documents that stand in the right order.

    A query without such a pair, be it for lack of relevant or of non-relevant documents, is empty. `ties="average"`
    counts a tied pair as half, which is the area that statistics packages compute.
    """

    NAME = "ROC"
    OWN = ("rel",)
    TIE_AVERAGE = True

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        hits = ordered.hits(self.rel)
        others = np.diff(ordered.judgements.offsets) - hits.ranked
        pairs = hits.ranked * others
        wrong = hits.sum((ordered.hit_ranks(self.rel) - hits.ordinal).astype(np.float64))
        return 1.0 - wrong / np.maximum(pairs, 1), pairs == 0

    def _average(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        mask = ordered.hits(self.rel).mask
        wrong, pairs = wrong_pairs(ordered, mask, ~mask)
        return 1.0 - wrong / np.maximum(pairs, 1), pairs == 0


class Accuracy(Measure):
    """Share of the (relevant, other) pairs among the first k documents that stand in the right order.

    ir_measures' Accuracy: the probability that a relevant document is ranked above one that is not. A query without a
    relevant document among them, or with nothing else, is empty and skipped.
    """

    NAME = "Accuracy"
    OWN = ("rel", "cutoff")
    DEFAULTS = {"empty": "skip"}  # noqa: RUF012

    @property
    def rises_with_grades(self) -> bool:
        """Not with a cutoff: one more relevant document among the first k can stand below others."""
        return self.cutoff is None

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        hits, rank = ordered.hits(self.rel), ordered.hit_ranks(self.rel)
        sizes = ordered.judgements.sizes if self.cutoff is None else np.minimum(ordered.judgements.sizes, self.cutoff)
        within = (rank <= (self.cutoff or np.inf)).astype(np.float64)
        found = hits.sum(within)
        pairs = found * (sizes - found)
        values = 1.0 - hits.sum((rank - hits.ordinal) * within) / np.maximum(pairs, 1)
        values = np.where(pairs > 0, values, EMPTY_VALUES[self.setting("empty")])
        return values, (hits.ranked == 0) | (hits.ranked == ordered.judgements.sizes)


class WrongPairs(Measure):
    """`pairs(a, b)`: share of wrongly ordered pairs of a document of grade `a` and one of grade `b`. Lower is better.

    The pairs of figure 6 of the AdaRank paper: `pairs(2, 0)` definitely and not relevant, `pairs(2, 1)` definitely and
    partially, `pairs(1, 0)`. A query without such a pair is skipped, unless `empty=` says otherwise.
    """

    NAME = "pairs"
    OWN = ("a", "b")
    POSITIONAL = ("a", "b")
    REQUIRED = ("a", "b")
    DEFAULTS = {"empty": "skip"}  # noqa: RUF012
    TIE_AVERAGE = True
    higher_is_better = False

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        grades = ordered.judgements.grades
        high, low = max(self.setting("a"), self.setting("b")), min(self.setting("a"), self.setting("b"))
        wrong, pairs = wrong_pairs(ordered, grades == high, (grades == low) & (low != high))
        return wrong / np.maximum(pairs, 1), pairs == 0

    _average = _values


def wrong_pairs(ordered: Ordered, good: np.ndarray, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a `good` and a `bad` row (masks (n,)) with the bad one first (k, m), and all such pairs (m,).

    Under `ties="average"` a tied pair is half wrong.
    """
    is_good, is_bad = good[ordered.rows], bad[ordered.rows].astype(np.float64)
    above = ordered.running(is_bad)  # bad ones of the query down to this place
    if ordered.ties == "average":  # those of a place's own tied group count half
        start, size = ordered.groups()
        inside = np.add.reduceat(is_bad.ravel(), start) if len(start) else np.zeros(0)
        above = np.repeat((above - is_bad).ravel()[start] + inside / 2, size).reshape(above.shape)
    good_count, bad_count = (sums_by_query(mask.astype(np.int64), ordered.judgements.offsets) for mask in (good, bad))
    return ordered.sum(np.where(is_good, above, 0.0)), good_count * bad_count
