"""The concave-convex procedure: descent on the ramp bound, a difference of convex functions.

    min_w F(w) = ½‖w‖² + C Σ_i v_i R_i(w),    R_i(w) = max_y [Δ_i(y) + w·ψ_i(y)] - max_y w·ψ_i(y)

Each round replaces the second maximum by its value at the ranking by the current scores, the anchor. The resulting
function is convex, lies above F and touches F at the current w. Its minimum, from the cutting-plane solver, is
therefore below F's current value. F decreases to a point that depends on the start. A certificate applies to the convex
problem of one round.

References: Yuille & Rangarajan (2003), "The concave-convex procedure", Neural Computation 15. Chapelle,
Do, Le, Smola, Teo (2008), "Tighter bounds for structured estimation", NIPS, section 4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from truerank.solvers.result import SolverResult, Status

MAX_ROUNDS = 30
# A round that lowers the bound by less than this share of it is the last.
LEAST_FALL = 1e-4


def descend_ramp(problem: Any, C: float, start: np.ndarray, *, tol: float, max_iter: int) -> list[SolverResult]:
    """Return the rounds of the procedure for a `RampProblem`; the ranking by the first weights is the first anchor.

    The start comes first, then each round's solution while the bound falls by more than `LEAST_FALL` of itself, at most
    `MAX_ROUNDS`; `tol` and `max_iter` apply to each round. `objective`, `dual_objective` and `gap` belong to the convex
    problem of the round; `details` has `risk` (Σ v_i R_i), `ramp` (F), and `round`.
    """

    def ramp(w: np.ndarray) -> tuple[float, float]:
        risk = problem.risk(w)
        return 0.5 * float(w @ w) + C * risk, risk

    if not problem.anything:
        details = {"risk": 0.0, "ramp": 0.0, "round": 0}
        return [SolverResult(np.zeros(problem.n_weights), Status.NOTHING_TO_LEARN, 0, 0.0, 0.0, 0.0, details)]
    bound, risk = ramp(start)
    rounds = [SolverResult(start, Status.CONVERGED, 0, float("nan"), details={"risk": risk, "ramp": bound, "round": 0})]
    for _ in range(MAX_ROUNDS):
        result = problem.planes_around(rounds[-1].coef).solve(C, tol=tol, max_iter=max_iter)
        bound, risk = ramp(result.coef)
        previous = rounds[-1].details["ramp"]
        if not bound < previous:
            break
        rounds.append(replace(result, details={"risk": risk, "ramp": bound, "round": len(rounds)}))
        if previous - bound < LEAST_FALL * previous:
            break
    return rounds
