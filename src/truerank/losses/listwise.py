"""Listwise objectives: the cross entropy between targets and the softmax of scores.

With t_i the target of document i, which add up to 1, and P_i = exp(s_i) / Σ_j exp(s_j) within a query, the loss is
`-Σ_i t_i ln P_i`, its gradient P_i - t_i, and the diagonal of its second derivatives P_i (1 - P_i). Boosted trees use
the derivatives by score, and linear rankers use the derivatives by weight (`cross_entropy`).

References: Z. Cao et al., Learning to rank: from pairwise approach to listwise approach, ICML 2007 (ListNet). S. Bruch,
An alternative cross entropy loss for learning-to-rank, WWW 2021 (XE-NDCG; equations 4 to 6).
"""

from __future__ import annotations

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.data.grouping import mixed_queries, query_of_rows, sums_by_query
from truerank.losses.protocols import Block, ByQuery

_LARGEST_GRADE = 1000.0  # 2^grade and sums of it stay finite


class Softmax(ByQuery):
    """Targets softmax(grades), the top-one probabilities of ListNet.

    >>> Softmax().targets(np.array([0.0, 0.0]), np.array([0, 2])).tolist()
    [0.5, 0.5]
    """

    _targets = _of = np.empty(0)

    def targets(self, y: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return the target distribution of every query (n,), from grades (n,)."""
        result = np.zeros(len(y))
        softmax_targets(np.ascontiguousarray(y, dtype=np.float64), offsets, result)
        return result

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._of is not y:
            self._targets, self._of = self.targets(y, offsets), y
        return super().__call__(y, scores, offsets)

    def add(self, block: Block) -> None:
        listwise_rows(*block, self._targets)


class CrossEntropyNDCG(Softmax):
    """Targets in proportion to `2^grade - γ`, γ uniform in [0, 1): XE-NDCG, a convex bound of nDCG.

    Each tree draws a new γ for every document. Linear rankers use the mean of γ, 1/2. If all grades of a query are
    equal, the derivatives are 0. Unlike in the paper, the second derivative is the exact diagonal, P (1 - P).
    """

    by_place = True

    _rng: np.random.Generator | None = None

    def begin(self, rng: np.random.Generator) -> None:
        """Draw γ for the next tree from `rng`."""
        self._rng, self._of = rng, np.empty(0)

    def targets(self, y: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        if float(np.abs(y).max(initial=0.0)) > _LARGEST_GRADE:
            raise InvalidInputError(
                f"xe-ndcg: grades must lie within ±{_LARGEST_GRADE:g}, because the targets use 2^grade, got "
                f"±{float(np.abs(y).max()):g}. Map the grades to a few levels",
                code="large-grade",
            )
        draw = 0.5 if self._rng is None else self._rng.random(len(y))
        gains = np.exp2(np.maximum(y, 0.0)) - draw
        return gains / sums_by_query(gains, offsets)[query_of_rows(offsets)]

    def add(self, block: Block) -> None:
        super().add(block)
        offsets = block.offsets[block.first : block.last + 1]
        equal = np.repeat(~mixed_queries(block.y, offsets), np.diff(offsets))
        for values in (block.gradients, block.hessians):
            values[offsets[0] : offsets[-1]][equal] = 0.0


LISTWISE: dict[str, type[Softmax]] = {"softmax": Softmax, "xe-ndcg": CrossEntropyNDCG}


# Kernels.


@kernel
def softmax(values, result, start, stop):
    """Write `exp(v) / Σ exp(v)` to result[start:stop]; return `ln Σ exp(v - h)` and h, the largest value."""
    high = -np.inf
    for i in range(start, stop):
        high = max(high, values[i])
    total = 0.0
    for i in range(start, stop):
        result[i] = np.exp(values[i] - high)
        total += result[i]
    for i in range(start, stop):
        result[i] /= total
    return np.log(total), high


@kernel
def softmax_targets(y, offsets, targets):
    """Write the softmax of y of every query."""
    for q in range(offsets.size - 1):
        if offsets[q] < offsets[q + 1]:
            softmax(y, targets, offsets[q], offsets[q + 1])


@kernel
def listwise_rows(y, scores, offsets, first, last, gradients, hessians, targets):
    """Write softmax(s) - targets, and P (1 - P)."""
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        if start == stop:
            continue
        softmax(scores, gradients, start, stop)
        for i in range(start, stop):
            p = gradients[i]
            gradients[i] = p - targets[i]
            hessians[i] = p * (1.0 - p)
