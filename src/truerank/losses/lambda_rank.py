"""LambdaRank: logistic pairs whose weight is the change of a measure if the two documents swap.

`IPSLambdaRank` is the variant for relevances that are estimated from clicks. With y_i in [0, 1] the estimated relevance
of document i and D = 1/log2(1 + rank) at the present scores, its loss compares each document with all others:

    Σ_i y_i Σ_{j≠i} |D_i - D_j| log(1 + exp(-σ (s_i - s_j))).

The loss is linear in y, so that unbiased estimates give an unbiased loss, like the sum over clicks of 1/propensity
(Joachims and others 2017, equation 7). LambdaRank's pairs with y_i > y_j would learn the noise of estimates.

References: T. Joachims, A. Swaminathan, T. Schnabel: Unbiased Learning-to-Rank with Biased Feedback, WSDM 2017. C.
Burges: From RankNet to LambdaRank to LambdaMART, MSR-TR-2010-82.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.checks import check_number
from truerank.core.errors import InvalidInputError
from truerank.losses.boosting_kernels import discounted_pairs, given_pairs
from truerank.losses.protocols import Block, ByQuery
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
        self.sigma = check_number(sigma, "sigma", "(0, inf)")
        self._of: np.ndarray | None = None
        self._costs: SwapCosts | None = None

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.prepare(y, offsets)
        return super().__call__(y, scores, offsets)

    def prepare(self, y: np.ndarray, offsets: np.ndarray) -> None:
        """Compute the values that depend only on the grades, once for each array."""
        if self._of is y:
            return
        self._of, self._costs = y, None
        costs = SwapCosts(self.measure, y, offsets)
        one_limit = (costs.limits == costs.limits[:1]).all()
        if costs.kind == SUM and costs.in_row_order and one_limit:
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


class IPSLambdaRank(ByQuery):
    """LambdaRank for relevances in [0, 1], with the slope `sigma` > 0 of the logistic function. It costs O(Σ n²)."""

    by_place = True

    def __init__(self, sigma: float = 1.0) -> None:
        self.sigma = check_number(sigma, "sigma", "(0, inf)")

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if len(y) and (y.min() < 0 or y.max() > 1):
            raise InvalidInputError(
                f"ips-lambdarank requires relevances in [0, 1], got {y.min():g} to {y.max():g}. Estimate them with "
                "`truerank clicks train-data`, or divide the grades by the highest grade",
                code="relevances",
            )
        return super().__call__(y, scores, offsets)

    def add(self, block: Block) -> None:
        for q in range(block.first, block.last):
            rows = slice(int(block.offsets[q]), int(block.offsets[q + 1]))
            y, s = block.y[rows], block.scores[rows]
            D = np.empty(len(s))
            D[np.argsort(-s, kind="stable")] = 1.0 / np.log2(2.0 + np.arange(len(s)))
            x = self.sigma * (s[:, None] - s[None, :])
            small = np.exp(-np.abs(x))
            rho = np.where(x >= 0, small, 1.0) / (1.0 + small)
            push = self.sigma * y[:, None] * np.abs(D[:, None] - D[None, :]) * rho
            bend = self.sigma * push * (1.0 - rho)
            block.gradients[rows] = push.sum(axis=0) - push.sum(axis=1)
            block.hessians[rows] = bend.sum(axis=0) + bend.sum(axis=1)
