"""Unbiased LambdaRank: pairs of clicks, corrected for the positions of the documents (Hu et al. 2019).

Documents at low positions get few clicks, even if they are relevant. With p_i the position of document i and c_ij the
logistic loss of the pair (i clicked, j not) times |Δ_ij|, the loss is

    Σ_{y_i > y_j} c_ij / (t⁺(p_i) t⁻(p_j)),

and after each tree, from the same sums of the training queries (weights included),

    t⁺(k) = [ Σ_{p_i = k} c_ij / t⁻(p_j)  /  the same at position 1 ] ^ (1 / (1 + norm)),
    t⁻(k) = [ Σ_{p_j = k} c_ij / t⁺(p_i)  /  the same at position 1 ] ^ (1 / (1 + norm)).

t⁺ is the probability of a click on a relevant document at k relative to position 1, and t⁻ is the relative probability
of no click. Both start at 1 and do not change at positions without pairs.

References: Z. Hu, Y. Wang, Q. Peng, H. Li: Unbiased LambdaMART, WWW 2019; equations 16 to 31.
"""

from __future__ import annotations

import numpy as np

from truerank.core.checks import check_number, check_positive_int
from truerank.core.errors import InvalidInputError, Remedy
from truerank.core.kernel import kernel
from truerank.data.ranking_data import RankingData
from truerank.losses.lambda_rank import LambdaRank
from truerank.losses.protocols import Block
from truerank.matrices.sorting import best_first
from truerank.measures.base import Measure

_LEAST = 1e-3  # of a propensity: no pair weighs more than a million times another


class UnbiasedLambdaRank(LambdaRank):
    """LambdaRank for click logs with known positions.

    `norm` >= 0 regularises the propensities: 0 uses the ratios of sums, and large values shrink all propensities
    towards 1. Positions beyond `max_position` share one propensity. If no positions are given, `rows_as_shown` uses the
    positions of the rows in their query, as XGBoost does. `click_propensities` and `skip_propensities` (K,) are t⁺ and
    t⁻.
    """

    def __init__(
        self,
        measure: Measure,
        sigma: float = 1.0,
        norm: float = 1.0,
        max_position: int = 50,
        rows_as_shown: bool = False,
    ) -> None:
        super().__init__(measure, sigma)
        self.rows_as_shown = bool(rows_as_shown)
        self.norm = check_number(norm, "norm", "[0, inf)")
        self.max_position = check_positive_int(max_position, "max_position")
        self._place: np.ndarray | None = None

    def read(self, data: RankingData) -> None:
        """Read the positions of the rows, from 1, and their weights."""
        if data.position is not None:
            self.take_positions(data.position, data.row_weight)
        elif self.rows_as_shown:
            places = np.arange(data.n_rows) - np.repeat(data.offsets[:-1], data.group_sizes)
            self.take_positions(places + 1, data.row_weight)

    def take_positions(self, position: np.ndarray, weight: np.ndarray | None) -> None:
        """Set the positions (n,) and weights (n,) of the rows."""
        values = np.asarray(position, dtype=np.float64)
        wrong = values[(values < 1) | (values != np.floor(values))]
        if len(wrong):
            raise InvalidInputError(
                f"positions must be integers >= 1 (position 1 is displayed first), got {wrong[0]:g}",
                argument="position",
            )
        self._place = np.minimum(values, self.max_position).astype(np.int64) - 1
        n_positions = int(self._place.max(initial=0)) + 1
        self._weight = np.ones(len(values)) if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        self.click_propensities, self.skip_propensities = np.ones(n_positions), np.ones(n_positions)
        self._sums: np.ndarray | None = None

    def propensities(self) -> dict[str, np.ndarray]:
        """Return copies of the click and skip propensities by name."""
        return {
            "click_propensities": self.click_propensities.copy(),
            "skip_propensities": self.skip_propensities.copy(),
        }

    def reorder(self, rows: np.ndarray) -> None:
        """Reorder positions and weights by the given order of the rows."""
        if self._place is not None:
            self._place, self._weight = self._place[rows], self._weight[rows]

    def begin(self, rng: np.random.Generator) -> None:
        """Update the propensities from the sums of the previous tree."""
        if self._place is not None and self._sums is not None:
            for sums, known in zip(self._sums, (self.click_propensities, self.skip_propensities)):
                if sums[0] > 0.0:
                    ratio = np.maximum(sums / sums[0], _LEAST ** (1.0 + self.norm)) ** (1.0 / (1.0 + self.norm))
                    known[:] = np.where(sums > 0.0, ratio, known)
            self._sums = None

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._place is None:
            raise InvalidInputError(
                "unbiased-lambdarank requires the position of every training row",
                argument="position",
                remedies=[
                    Remedy("to fit", position=...),
                    Remedy(
                        "if the rows of each query are in the order of display",
                        objective_params={"rows_as_shown": True},
                    ),
                ],
            )
        return super().__call__(y, scores, offsets)

    def add(self, block: Block) -> np.ndarray:
        """Return the sums of `debiased_pairs` (2, K) over a block."""
        both = np.stack([self.click_propensities, self.skip_propensities])
        bias = (self.sigma, self._place, self._weight, both, np.zeros_like(both))
        if self._costs is None:
            parts = (self._gains, self._discounts, self._inverse, np.empty((0, 0)), self._cutoff)
            debiased_pairs(*block, *parts, *bias)
        else:
            empty = np.empty(0)
            for q, rows in block.mixed():
                weights = np.abs(self._costs.of_query(q, block.scores[rows]))
                debiased_pairs(*block._replace(first=q, last=q + 1), empty, empty, empty, weights, 0, *bias)
        return bias[-1]

    def collect(self, answers: list[np.ndarray]) -> None:
        """Add the sums of the blocks, for the next tree."""
        self._sums = sum(answers, np.zeros((2, len(self.click_propensities))))


@kernel
def debiased_pairs(
    y, scores, offsets, first, last, gradients, hessians, gains, discounts, inverse, given, cutoff, sigma, place,
    weight, propensities, sums,
):  # fmt: skip
    """Divide logistic pairs by the propensities (2, K) of their positions; add each position's cost to `sums` (2, K).

    A pair has the weight |Δ gain| |Δ discount| / ideal, or `given` (n, n) for a single query if `cutoff` is 0. The
    many arguments are arrays, because a kernel accepts nothing else.
    """
    for q in range(first, last):
        start = offsets[q]
        n = offsets[q + 1] - start
        discount = np.zeros(n)
        if cutoff > 0:
            if inverse[q] == 0.0:
                continue
            order = np.empty(n, dtype=np.int64)
            best_first(scores[start : start + n], order)
            for a in range(min(n, cutoff)):
                discount[order[a]] = discounts[a] * inverse[q]
        for i in range(n):
            for j in range(n):
                if y[start + i] <= y[start + j]:
                    continue
                if cutoff > 0:
                    w = abs((gains[start + i] - gains[start + j]) * (discount[i] - discount[j]))
                else:
                    w = given[i, j]
                if w == 0.0:
                    continue
                x = sigma * (scores[start + i] - scores[start + j])
                small = np.exp(-abs(x))
                rho = small / (1.0 + small) if x >= 0.0 else 1.0 / (1.0 + small)
                cost = w * (np.log1p(small) + max(-x, 0.0)) * weight[start + i]
                plus = propensities[0, place[start + i]]
                minus = propensities[1, place[start + j]]
                sums[0, place[start + i]] += cost / minus
                sums[1, place[start + j]] += cost / plus
                push = sigma * w * rho / (plus * minus)
                bend = sigma * push * (1.0 - rho)
                gradients[start + i] -= push
                gradients[start + j] += push
                hessians[start + i] += bend
                hessians[start + j] += bend
