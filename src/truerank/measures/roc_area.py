"""Shares of pairs of documents: the area under the ROC curve, and wrongly ordered pairs of two grades."""

from __future__ import annotations

import numpy as np

from truerank.data.grouping import sums_by_query
from truerank.measures.base import EMPTY_VALUES, Measure
from truerank.measures.ranking import Ordered


class ROCArea(Measure):
    """The share of (relevant, non-relevant) pairs of ranked documents in the right order.

    A query without such a pair is empty. `ties="average"` counts a tied pair as half, as statistics packages do.
    """

    NAME = "ROC"
    OWN = ("rel",)
    TIE_AVERAGE = True

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        hits = ordered.hits(self.rel)
        if ordered.ties == "average":
            wrong, pairs = wrong_pairs(ordered, hits.mask, ~hits.mask)
        else:  # without a look at the other documents
            wrong = hits.sum((ordered.hit_ranks(self.rel) - hits.ordinal).astype(np.float64))
            pairs = hits.ranked * (ordered.judgements.sizes - hits.ranked)
        return 1.0 - wrong / np.maximum(pairs, 1), pairs == 0


class Accuracy(Measure):
    """The share of (relevant, non-relevant) pairs among the first k documents in the right order.

    The measure is the Accuracy of ir_measures. A query without such a pair is empty and skipped.
    """

    NAME = "Accuracy"
    OWN = ("rel", "cutoff")
    DEFAULTS = {"empty": "skip"}  # noqa: RUF012

    @property
    def rises_with_grades(self) -> bool:
        """Return False with a cutoff, because a further relevant document among the first k may rank below others."""
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
    """The share of wrongly ordered pairs of documents of grades `a` and `b`, `pairs(a, b)`. Lower is better.

    Figure 6 of the AdaRank paper has `pairs(2, 0)`, `pairs(2, 1)` and `pairs(1, 0)`. By default, queries without pairs
    are skipped.
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


def wrong_pairs(ordered: Ordered, good: np.ndarray, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count (good, bad) pairs of rows from masks (n,): pairs with the bad row first (k, m), and all pairs (m,).

    Under `ties="average"` a tied pair counts as half wrong.
    """
    is_good, is_bad = good[ordered.rows], bad[ordered.rows].astype(np.float64)
    above = ordered.running(is_bad)  # bad rows of the query down to this place
    if ordered.ties == "average":  # bad rows in the tied group of the place count half
        start, size = ordered.groups()
        inside = np.add.reduceat(is_bad.ravel(), start) if len(start) else np.zeros(0)
        above = np.repeat((above - is_bad).ravel()[start] + inside / 2, size).reshape(above.shape)
    good_count, bad_count = (sums_by_query(mask.astype(np.int64), ordered.judgements.offsets) for mask in (good, bad))
    return ordered.sum(np.where(is_good, above, 0.0)), good_count * bad_count
