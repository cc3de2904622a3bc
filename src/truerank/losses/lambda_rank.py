"""LambdaRank: logistic pairs whose weight is the change of a measure if the two documents swap."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.checks import check_number
from truerank.losses.boosting_kernels import discounted_pairs, given_pairs
from truerank.losses.by_query import Block, ByQuery
from truerank.losses.swap_costs import SwapCosts
from truerank.measures.base import Measure
from truerank.measures.rank_form import SUM


class LambdaRank(ByQuery):
    """Logistic pairs, of slope `sigma`, whose weight is the change of `measure` if the two documents swap.

    Cost for each query: O(min(n, cutoff) n) for measures that add up gain times weight by rank (nDCG, P, R, RBP,
    ...); O(n²) for AP, RR, Success and ERR; O(n³ log n) by `swap_deltas` for any other (ROC, tau, Bpref, a
    function). ERR without `max_grade` uses the largest training grade.
    """

    by_place = True

    def __init__(self, measure: Measure, sigma: float = 1.0) -> None:
        self.measure = measure
        self.sigma = check_number(sigma, "sigma", minimum=0.0, open_minimum=True)
        self._of: np.ndarray | None = None
        self._costs: SwapCosts | None = None

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.prepare(y, offsets)
        return super().__call__(y, scores, offsets)

    def prepare(self, y: np.ndarray, offsets: np.ndarray) -> None:
        """Compute what depends on the grades only, once for the same array."""
        if self._of is y:
            return
        self._of, self._costs = y, None
        costs = SwapCosts(self.measure, y, offsets)
        if costs.kind == SUM and costs.in_row_order and costs.one_limit:
            self._gains, self._inverse = costs.gains, costs.inverse
            self._cutoff = int(costs.limits.max(initial=1))
            self._discounts = costs.weights.copy()
            self._discounts[self._cutoff :] = 0.0
        else:
            self._costs = costs

    def add(self, block: Block) -> Any:
        if self._costs is None:
            discounted_pairs(*block, self._gains, self._discounts, self._inverse, self.sigma, self._cutoff)
            return
        y, scores = block.y, block.scores
        for q, rows in block.mixed():
            weights = np.abs(self._costs.of_query(q, scores[rows]))
            given_pairs(y[rows], scores[rows], weights, self.sigma, block.gradients[rows], block.hessians[rows])
