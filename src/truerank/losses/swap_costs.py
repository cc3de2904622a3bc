"""Closed forms of the change of a measure when two documents of a query swap ranks.

`Measure.swap_deltas` computes a measure again for every swap, in O(n³ log n) for a query. If the rank form is known,
sums over the ranking give the change for a pair in O(1). For documents at the ranks a < b (from 0) of relevance r:

    SUM        (gain_a - gain_b) (w_b - w_a) / norm
    PRECISION  the change at the two ranks, and ± Σ_(a < c < b) r_c / (c + 1) for the hits between them
    FIRST      w at the new first hit minus w at the old one
    cascade    ERR: the terms between them times (1 - R_b) / (1 - R_a), those after b unchanged

w and all terms beyond the limit of ranks are 0. Other measures (ROC, tau, Bpref, a function) use `swap_deltas`.

References: C. Burges, From RankNet to LambdaRank to LambdaMART, MSR-TR-2010-82. O. Chapelle et al., Expected reciprocal
rank for graded relevance, CIKM 2009 (ERR).
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import as_read
from truerank.measures.expected_reciprocal_rank import ExpectedReciprocalRank
from truerank.measures.rank_form import FIRST, PRECISION, SUM

CASCADE, ASK = 3, 4


class SwapCosts:
    """Changes of one measure over the queries of given grades (n,).

    `kind` is SUM, PRECISION, FIRST, CASCADE, or ASK (no closed form). `gains` (n,) are the gains of rows, or for ERR
    the stopping probabilities, with the largest grade as the default of `max_grade`. `weights` (longest query,) are the
    weights of ranks. `limits` (m,) is the number of ranks that count. `inverse` (m,) is 1 / norm, or 0 for a query in
    which no swap changes the measure.
    """

    def __init__(self, measure: Measure, y: np.ndarray, offsets: np.ndarray) -> None:
        judgements = Judgements(y, offsets)
        judgements = as_read(judgements, measure.setting("grades")) or judgements
        y = judgements.grades
        self.measure, self.y, self.offsets = measure, y, offsets
        longest = int(np.diff(offsets).max(initial=0))
        self.kind, self.gains = ASK, np.zeros(len(y))
        self.weights, self.inverse = np.zeros(longest), np.ones(len(offsets) - 1)
        self.limits = np.full(len(offsets) - 1, longest)
        form = None if measure.setting("judged_only") else measure.form_of(judgements)
        if form is not None:
            self.kind = form.kind
            self.gains = np.ascontiguousarray(form.hits.mask if form.gains is None else form.gains, dtype=np.float64)
            self.limits = np.minimum(form.limit_of(), longest)
            if form.kind != PRECISION:
                self.weights = np.ascontiguousarray(form.weights, dtype=np.float64)
            self.inverse = np.where(form.empty, 0.0, 1.0 / form.norm)
        elif isinstance(measure, ExpectedReciprocalRank):
            largest = measure.largest(judgements)
            if float(y.max(initial=0.0)) <= largest <= 50.0:  # beyond, 1 - R rounds to 0
                self.kind = CASCADE
                self.gains = (np.exp2(np.maximum(y, 0.0)) - 1.0) / np.exp2(largest)
                if measure.cutoff is not None:
                    self.limits = np.minimum(self.limits, measure.cutoff)
            elif measure.setting("max_grade") is None:
                self.measure = measure(max_grade=max(largest, 1.0))
        self._sign = {"optimistic": -1.0, "pessimistic": 1.0}.get(measure.setting("ties"), 0.0)

    @property
    def in_row_order(self) -> bool:
        """Return True if documents with equal scores keep the row order, False if their grades order them."""
        return self._sign == 0.0

    def of_query(self, query: int, scores: np.ndarray) -> np.ndarray:
        """Return the changes of the measure (n, n) by swaps in one query, from its scores (n,)."""
        rows = slice(int(self.offsets[query]), int(self.offsets[query + 1]))
        y = self.y[rows]
        if self.kind == ASK:
            return np.ascontiguousarray(self.measure.swap_deltas(y, scores))
        order = np.argsort(-scores, kind="stable") if self.in_row_order else np.lexsort((self._sign * y, -scores))
        place = np.empty(len(y), dtype=np.int64)
        place[order] = np.arange(len(y))
        limit, inverse = int(self.limits[query]), float(self.inverse[query])
        weights = np.where(np.arange(len(y)) < limit, self.weights[: len(y)], 0.0)
        if self.kind == SUM:
            gains, weights = self.gains[rows], weights[place]
            return (gains[:, None] - gains) * (weights - weights[:, None]) * inverse
        gains = self.gains[rows][order]
        if self.kind == PRECISION:
            ranked = precision_changes(gains, limit, 0.0 if inverse == 0.0 else 1.0 / inverse)
        elif self.kind == FIRST:
            ranked = first_changes(gains, weights)
        else:
            ranked = cascade_changes(gains, limit)
        return np.ascontiguousarray((ranked + ranked.T)[place][:, place])


# From gains (n,) in ranked order, changes (n, n) by places a < b; 0 elsewhere.


def first_changes(relevant: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Write the changes of a measure that depends on the rank of the first hit, from its value at each rank (n,)."""
    changes = np.zeros((len(relevant), len(relevant)))
    hits = np.flatnonzero(relevant)
    if len(hits):
        first, below = hits[0], np.arange(hits[0] + 1, len(relevant))
        changes[:first, hits] = (weights[:first] - weights[first])[:, None]  # a hit from below comes before the first
        below = below[relevant[below] == 0.0]
        # The first goes down: it or the second is first then.
        changes[first, below] = weights[np.minimum(below, hits[1] if len(hits) > 1 else below)] - weights[first]
    return changes


@kernel
def precision_changes(relevant, limit, norm):
    """Write the changes of AP, from relevance (0 or 1)."""
    n = relevant.size
    changes = np.zeros((n, n))
    count = np.zeros(n + 1)  # relevant documents among the first k
    share = np.zeros(n + 1)  # Σ relevant / rank over the first k, as far as ranks count
    for k in range(n):
        count[k + 1] = count[k] + relevant[k]
        share[k + 1] = share[k] + (relevant[k] / (k + 1) if k < limit else 0.0)
    if norm == 0.0:
        return changes
    for a in range(min(n, limit)):
        for b in range(a + 1, n):
            if relevant[a] == relevant[b]:
                continue
            between = share[b] - share[a + 1]
            lower = count[b + 1] / (b + 1) if b < limit else 0.0
            if relevant[b] > relevant[a]:
                change = (count[a] + 1.0) / (a + 1) - lower + between
            else:
                change = lower - count[a + 1] / (a + 1) - between
            changes[a, b] = change / norm
    return changes


@kernel
def cascade_changes(stops, limit):
    """Write the changes of ERR, from the probability (< 1) of stopping at each rank."""
    n = stops.size
    changes = np.zeros((n, n))
    going = np.ones(n + 1)
    total = np.zeros(n + 1)
    for k in range(n):
        total[k + 1] = total[k] + (going[k] * stops[k] / (k + 1) if k < limit else 0.0)
        going[k + 1] = going[k] * (1.0 - stops[k])
    for a in range(min(n, limit)):
        for b in range(a + 1, n):
            if stops[a] == stops[b]:
                continue
            ratio = (1.0 - stops[b]) / (1.0 - stops[a])
            change = (stops[b] - stops[a]) * going[a] / (a + 1)
            change += (ratio - 1.0) * (total[b] - total[a + 1])
            if b < limit:
                change += going[b] * (ratio * stops[a] - stops[b]) / (b + 1)
            changes[a, b] = change
    return changes
