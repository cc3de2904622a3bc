"""LambdaRank: logistic pairs weighed by what their swap would change in a measure, any measure."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.checks import check_number
from truerank.losses.boosting_kernels import discounted_pairs, given_pairs
from truerank.losses.by_query import ByQuery
from truerank.losses.swap_costs import SwapCosts
from truerank.measures.ndcg import NormalisedDCG, gain_of_grade
from truerank.measures.rank_form import SUM


class LambdaRank(ByQuery):
    """Pairs weighed by what their swap would change in a measure.

    A measure that adds up gain times weight by rank (nDCG, P, R, RBP, ...) costs O(min(n, cutoff) n) a query; AP, RR,
    Success and ERR, with or without a cutoff, O(n²); any other (ROC, tau, Bpref, a function) is asked for its
    `swap_deltas`, O(n³ log n), fit for lists of up to about a hundred documents.

    Parameters
    ----------
    measure : Measure
        ERR without `max_grade` takes the largest grade of the training queries.
    sigma : float
        Steepness of the logistic function.
    """

    by_place = True

    def __init__(self, measure: Any, sigma: float = 1.0) -> None:
        self.measure = measure
        self.sigma = check_number(sigma, "sigma", minimum=0.0, open_minimum=True)
        self._of: np.ndarray | None = None
        self._costs: SwapCosts | None = None

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.prepare(y, offsets)
        return super().__call__(y, scores, offsets)

    def prepare(self, y: np.ndarray, offsets: np.ndarray) -> None:
        """Compute what grades alone decide, once for the same array."""
        if self._of is y:
            return
        self._of, self._costs = y, None
        if isinstance(self.measure, NormalisedDCG):
            self._gains, self._discounts, self._inverse = ndcg_parts(self.measure, y, offsets)
            self._cutoff = self.measure.cutoff or len(self._discounts)
            return
        costs = SwapCosts(self.measure, y, offsets)
        if costs.kind == SUM and costs.in_row_order and costs.one_limit:
            self._gains, self._inverse = costs.gains, costs.inverse
            self._cutoff = int(costs.limits.max(initial=1))
            self._discounts = costs.weights.copy()
            self._discounts[self._cutoff :] = 0.0
        else:
            self._costs = costs

    def add(
        self,
        y: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        first: int,
        last: int,
        gradients: np.ndarray,
        hessians: np.ndarray,
    ) -> None:
        """See the base class."""
        if self._costs is None:
            discounted_pairs(
                y, scores, offsets, first, last, self._gains, self._discounts, self._inverse, self.sigma,
                self._cutoff, gradients, hessians,
            )  # fmt: skip
            return
        for q in range(first, last):
            rows = slice(int(offsets[q]), int(offsets[q + 1]))
            if rows.start == rows.stop or np.ptp(y[rows]) == 0:
                continue
            weights = np.abs(self._costs.of_query(q, scores[rows]))
            given_pairs(y[rows], scores[rows], weights, self.sigma, gradients[rows], hessians[rows])


def ndcg_parts(measure: Any, y: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gain of each row, discount of each rank (0 beyond the cutoff), and 1 / ideal DCG of each query (0 where none)."""
    gains = gain_of_grade(y, measure.setting("gain"))
    sizes = np.diff(offsets)
    longest = int(sizes.max(initial=1))
    ranks = np.arange(1, longest + 1)
    if measure.setting("discount") == "log2":
        discounts = 1.0 / np.log2(ranks + 1)
    else:
        discounts = np.concatenate([np.ones(min(2, longest)), 1.0 / np.log2(ranks[2:])])
    if measure.cutoff is not None:
        discounts[measure.cutoff :] = 0.0
    query = np.repeat(np.arange(len(sizes)), sizes)
    best_first = gains[np.lexsort((-gains, query))]
    discounted = best_first * discounts[np.arange(len(y)) - offsets[query]]
    ideal = np.bincount(query, discounted, minlength=len(sizes))
    if measure.setting("short") == "zero" and measure.cutoff is not None:
        ideal = np.where(sizes < measure.cutoff, 0.0, ideal)
    return gains, discounts, np.where(ideal > 0, 1.0 / np.where(ideal > 0, ideal, 1.0), 0.0)
