"""The ramp bound of nDCG, with a feature map that weights documents by the discount of their rank.

For a query with gains G, scores s and discounts D(1) >= D(2) >= … (0 beyond the cutoff), a ranking y has the value
`s·ψ(y) = Σ_r D(r) s_(y_r)` (Le & Smola 2007) and the loss `Δ(y) = 1 - Σ_r D(r) G_(y_r) / IDCG`. The ramp bound of the
loss of the predicted ranking (Chapelle et al. 2008) is

    R(s) = max_y [Δ(y) + s·ψ(y)] - max_y s·ψ(y)        >= Δ(argmax_y s·ψ(y)),

because the ranking by score attains the second maximum. The first maximum is `1 + max_y Σ_r D(r) (s - G/IDCG)_(y_r)`,
attained by the documents in descending order of `s - G/IDCG`. Each maximum costs one sort.

R is a difference of convex functions. With the second maximum replaced by its value at a fixed ranking, the *anchor*,
the bound is convex, lies above R, and touches it if the anchor is the ranking by score: the solver's loss.

References: Chapelle, Do, Le, Smola, Teo (2008), "Tighter bounds for structured estimation", NIPS. Le & Smola (2007),
"Direct optimization of ranking measures", arXiv 0704.3359.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import query_blocks, run_blocks
from truerank.data.grouping import mixed_queries, sums_by_query
from truerank.matrices.sorting import longest_query, room_to_sort, sort_descending
from truerank.measures.ndcg import discounts, gain_of_grade


class RampOracle:
    """The convex part of nDCG's ramp bound around an anchor, as an oracle of the cutting-plane solver.

    `cutoff=None` counts the whole list; `gain` and `discount` are the settings of nDCG. Queries with different gains
    are `kept` (m,). Equal values keep the order of the rows. Each sort costs O(n log n).

    Two documents, the better one behind by 1: the worst outcome is the ranking by score, and the bound is the loss.

    >>> oracle = RampOracle(np.array([1.0, 0.0]), np.array([0, 2]), cutoff=2)
    >>> oracle.bounds(np.array([-1.0, 0.0])).round(4).tolist()
    [0.3691]
    """

    def __init__(
        self,
        grades: np.ndarray,
        offsets: np.ndarray,
        *,
        cutoff: int | None = None,
        gain: str = "exponential",
        discount: str = "log2",
    ) -> None:
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        sizes = np.diff(self.offsets)
        longest = int(sizes.max(initial=0))
        weights = discounts(discount, longest)
        if cutoff is not None:
            weights[cutoff:] = 0.0
        self._discounts = weights
        gains = gain_of_grade(np.asarray(grades, dtype=np.float64), gain)
        self._order = np.arange(len(gains), dtype=np.int64)
        ideal = sums_by_query(gains * self._weights_by_rank(gains), self.offsets)
        self.kept = mixed_queries(gains, self.offsets) & (ideal > 0)
        # G / IDCG; 0 in the queries that are left out, so that they have loss and coefficients 0.
        scale = np.where(self.kept, 1.0 / np.where(ideal > 0, ideal, 1.0), 0.0)
        self._shares = gains * np.repeat(scale, sizes)
        self._kept_rows = np.repeat(self.kept, sizes)
        self._anchor = np.zeros(len(gains))
        self.set_anchor(np.zeros(len(gains)))

    def set_anchor(self, scores: np.ndarray, n_jobs: int | None = None) -> None:
        """Set the anchor to the ranking by the given scores (n,)."""
        self._anchor = self._weights_by_rank(scores, n_jobs)

    def __call__(self, scores: np.ndarray, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss Δ (m,) of each query's worst ranking y, and its coefficients (n,), `ψ(y) - ψ(anchor)`."""
        worst = self._weights_by_rank(scores - self._shares, n_jobs)
        loss = np.where(self.kept, 1.0 - sums_by_query(self._shares * worst, self.offsets), 0.0)
        return loss, np.where(self._kept_rows, worst - self._anchor, 0.0)

    def bounds(self, scores: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return the ramp bound R (m,) of each query at the given scores (n,); 0 for queries that are not kept."""
        worst = self._weights_by_rank(scores - self._shares, n_jobs)
        best = self._weights_by_rank(scores, n_jobs)
        values = sums_by_query((worst - best) * scores - worst * self._shares, self.offsets)
        return np.where(self.kept, 1.0 + values, 0.0)

    def _weights_by_rank(self, values: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return the discount of the rank of each row, ranked by the given values, float64 (n,)."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        result = np.zeros(len(values))

        def work(first: int, last: int) -> None:
            _discounts_of_ranks(values, self._order, self.offsets, self._discounts, first, last, result)

        run_blocks(work, query_blocks(self.offsets, 16_384), n_jobs)
        return result


@kernel
def _discounts_of_ranks(values, order, offsets, discounts, first, last, result):
    """Sort `order` within each query by descending value, from the last call's order; write discounts by row."""
    spare = room_to_sort(longest_query(offsets, first, last))
    for q in range(first, last):
        start, size = offsets[q], offsets[q + 1] - offsets[q]
        sort_descending(values, order[start : start + size], size, spare)
        for r in range(size):
            result[order[start + r]] = discounts[r]
