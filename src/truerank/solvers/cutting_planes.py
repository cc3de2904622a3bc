"""Cutting planes for regularised risks that are a maximum over outcomes, in one solver for all oracles.

    min_w P(w) = ½‖w‖² + C Σ_i v_i H_i(w),    H_i(w) = max over outcomes of (loss + Σ coefficients · X_i w) >= 0

with v_i the weights of the queries. The queries are divided into blocks. One call of the oracle returns, for every
block, a plane `q + g·w` below the block's share of the risk, exact at the current w. A small quadratic program over the
planes so far (`bundle_program`) gives the next w and a lower bound D on the optimum. One block is the 1-slack algorithm
of Joachims, Finley and Yu (2009, Algorithm 3). One block for each query is the n-slack problem of Yue and others
(2007). Both problems have the same optimum; with more blocks, there are fewer rounds and larger programs.

The certificate is the gap `P(best w) - D(best α)`, with `D = Σ α_j q_j - ½‖Σ α_j g_j‖²` of a feasible α. Both values
are computed in full, so that rounding or an early stop of the small program does not affect the certificate. Planes
remain valid for a different C, so that a path over C starts with the planes of the last problem.

References: Joachims, Finley, Yu (2009), Cutting-plane training of structural SVMs, Machine Learning 77.
Teo et al. (2010), Bundle methods for regularized risk minimization, JMLR 11. Franc & Sonnenburg (2009), Optimized
cutting plane algorithm for large-scale risk minimization, JMLR 10 (best point and cutting point apart).
"""

from __future__ import annotations

import numpy as np

from truerank.core.rounds import tell
from truerank.solvers.bundle_program import combine, extend_gram, solve_bundle, solve_one_block
from truerank.solvers.result import SolverResult, Status

QP_SHARE = 0.1  # precision of the small program as a share of the gap; inexact solutions make better cutting points
PAIR_STEPS = 50  # pairwise steps before the interior-point method, as a multiple of the number of planes
EXACT_STEPS = 5000  # the same near the limits of floating point, instead of the interior-point method
# A plane is idle if it lies below the largest of its block by more than `IDLE_GAPS` gaps (times 1/C), and its weight is
# at most `IDLE_WEIGHT` times C. It is dropped after `IDLE_ROUNDS` idle rounds.
IDLE_GAPS, IDLE_WEIGHT, IDLE_ROUNDS = 5.0, 1e-5, 20
STALL_EXACT = 3  # rounds without a better bound on either side, after which the small program is solved more exactly
STALL_ROUNDS = 60  # and after which the solver stops


class CuttingPlanes:
    """The planes of a training problem, and the solver that adds planes. A subclass computes the planes (`planes_at`).

    A plane has `n_weights` weights. `n_blocks` is 1 for the 1-slack algorithm, and the number of queries that count for
    n-slack. `anything` is False if no query counts, and `n_left_out` is the number of queries that the oracle does not
    keep.
    """

    def __init__(self, n_weights: int, n_blocks: int, anything: bool, n_left_out: int) -> None:
        p = self.n_weights = n_weights
        self.n_blocks, self.anything, self.n_left_out = n_blocks, anything, n_left_out
        self.n_planes = 0
        self._G, self._H, self._q = np.zeros((0, p)), np.zeros((0, 0)), np.zeros(0)
        self._alpha, self._C = np.zeros(0), 0.0  # weights of the planes for the last C, where the next program starts
        self._block, self._idle = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def solve(
        self, C: float, *, tol: float = 1e-4, max_iter: int = 10_000, slack_tol: float | None = None
    ) -> SolverResult:
        """Minimise `½‖w‖² + C Σ v_i H_i(w)` until `P - D <= tol · max(P, min(1, C))`, in at most `max_iter` rounds.

        Planes of earlier calls are used. Each round costs one pass over X for the scores, the oracle, one pass for the
        planes, and the small program. On well-scaled data, a `tol` of 1e-8 is possible, but not much less.

        With `slack_tol`, the solver also stops if no block's new plane exceeds the block's slack by more than this
        value times the block's weight, the ε of Yue and others' Algorithm 1 for n-slack. The gap is then at most C ·
        slack_tol · Σ v_i.

        Returns a result with `objective` P, `dual_objective` D, `gap` P - D; `details` has `risk`, Σ v_i H_i at the
        solution, which bounds the weighted training loss from above (Proposition 1 of Yue and others), and `n_planes`.
        """
        w = np.zeros(self.n_weights)
        if not self.anything:
            return SolverResult(w, Status.NOTHING_TO_LEARN, 0, 0.0, 0.0, 0.0, {"risk": 0.0, "n_planes": 0})
        best, best_w, best_risk = np.inf, w, np.inf
        dual, gap, goal = 0.0, np.inf, tol * min(1.0, C)
        status, stalled, exact, n_iter = Status.MAX_ITERATIONS, 0, False, 0
        while n_iter < max_iter:
            n_iter += 1
            improved = False
            if self.n_planes:
                precision = 1e-3 * goal if not np.isfinite(gap) else max(QP_SHARE * gap, 1e-3 * goal)
                exact = exact or stalled >= STALL_EXACT
                alpha, z = self._solve_program(C, precision, exact)
                w = -combine(self._G, alpha)
                bound = float(self._q[: self.n_planes] @ alpha) - 0.5 * float(w @ w)
                improved = bound > dual
                dual = max(dual, bound)
                if np.isfinite(gap):
                    self._drop_idle((C * z > IDLE_GAPS * gap) & (alpha <= IDLE_WEIGHT * C))
            slack = None if slack_tol is None else self._slack(w)
            w, values = self._visit(w, C)
            risk = float(np.maximum(values, 0.0).sum())
            primal = 0.5 * float(w @ w) + C * risk
            if primal < best:
                improved = True
                best, best_w, best_risk = primal, w, risk
            gap, goal = best - dual, tol * max(best, min(1.0, C))
            met = slack is not None and bool((values <= slack + slack_tol * self._block_weight()).all())
            if gap <= goal or met:
                status = Status.CONVERGED
                break
            if tell(n_iter, max_iter, objective=best, gap=gap):
                status = Status.CALLBACK
                break
            stalled = 0 if improved else stalled + 1
            if stalled >= STALL_ROUNDS:
                status = Status.NO_PROGRESS
                break
        details = {"risk": best_risk, "n_planes": self.n_planes}
        return SolverResult(best_w, status, n_iter, best, dual, max(gap, 0.0), details)

    def _solve_program(self, C: float, precision: float, exact: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return feasible weights of the planes, and how far each plane lies below the largest of its block."""
        n = self.n_planes
        q, alpha = self._q[:n], self._alpha[:n]
        start = alpha * (C / self._C) if self._C else alpha.copy()
        self._C = C
        if self.n_blocks == 1:
            # Pairwise steps from the last round's weights, while they cost less than the interior-point method, and at
            # the end, because they improve after its linear systems have lost their last digits.
            z, gap = solve_one_block(self._H, q, start, C, precision, (EXACT_STEPS if exact else PAIR_STEPS) * n)
            if gap <= precision or exact:
                alpha[:] = start / max(1.0, float(start.sum()) / C)
                return alpha.copy(), z
        in_features = self.n_weights < n and not exact
        alpha[:], z = solve_bundle(self._G, self._H, q, self._block[:n], self.n_blocks, C, precision, 80, in_features)
        return alpha.copy(), z

    def _slack(self, w: np.ndarray) -> np.ndarray:
        """Return the largest value at w of each block's planes, at least 0 (blocks,)."""
        slack, n = np.zeros(self.n_blocks), self.n_planes
        np.maximum.at(slack, self._block[:n], self._q[:n] + self._G[:n] @ w)
        return slack

    def _block_weight(self) -> np.ndarray:
        """Return the total weight of each block's queries (blocks,)."""
        raise NotImplementedError

    def _visit(self, w: np.ndarray, C: float) -> tuple[np.ndarray, np.ndarray]:
        """Add each block's plane at the program's w, and return w with v_i H_i(w) of the blocks."""
        gradients, offsets = self.planes_at(w)
        values = offsets.copy()
        for b, gradient in enumerate(gradients):
            values[b] += gradient @ w
        self._add_planes(gradients, offsets)
        return w, values

    def _add_planes(self, gradients: np.ndarray, offsets: np.ndarray) -> None:
        first, n = self.n_planes, self.n_planes + len(offsets)
        self._reserve(n)
        self._G[first:n], self._q[first:n] = gradients, offsets
        self._alpha[first:n] = 0.0
        self._block[first:n], self._idle[first:n] = np.arange(len(offsets)), 0
        self.n_planes = n
        extend_gram(self._G, self._H, first, n)

    def planes_at(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the plane `offset + gradient·w` of each block: gradients (blocks, n_weights) and offsets (blocks,)."""
        raise NotImplementedError

    def _reserve(self, n: int) -> None:
        old = len(self._q)
        if n <= old:
            return
        size = max(2 * old, n + 3 * self.n_blocks, 32)
        for name in ("_G", "_q", "_alpha", "_block", "_idle"):
            values = getattr(self, name)
            setattr(self, name, np.pad(values, [(0, size - old), (0, 0)][: values.ndim]))
        self._H = np.pad(self._H, (0, size - old))

    def _drop_idle(self, idle: np.ndarray) -> None:
        n = len(idle)
        self._idle[:n] = np.where(idle, self._idle[:n] + 1, 0)
        keep = np.flatnonzero(self._idle[:n] < IDLE_ROUNDS)
        if len(keep) > 0.9 * n:
            return
        self.n_planes = len(keep)
        for values in (self._G, self._q, self._alpha, self._block, self._idle):
            values[: len(keep)] = values[keep]
        self._H[: len(keep), : len(keep)] = self._H[np.ix_(keep, keep)]


def block_bounds(offsets: np.ndarray, kept: np.ndarray, n_blocks: int | None) -> np.ndarray:
    """Return the first query of each block and, last, the number of queries, int64 (blocks + 1,).

    Blocks are runs of queries with about equal numbers of kept rows, or single kept queries if `n_blocks` is None or
    exceeds their number.
    """
    m = len(kept)
    places = np.flatnonzero(kept)
    if n_blocks is None or n_blocks >= len(places):
        cuts = places[1:]
    else:
        rows = np.cumsum(np.where(kept, np.diff(offsets), 0))
        cuts = np.searchsorted(rows, rows[-1] * np.arange(1, n_blocks) / n_blocks, side="left") + 1
    return np.unique(np.concatenate([[0], cuts, [m]])).astype(np.int64)
