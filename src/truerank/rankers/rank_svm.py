"""RankSVM: the linear support vector machine over all pairs of a query with different grades, solved exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.threads import query_blocks, run_blocks
from truerank.data.ranking_data import RankingData
from truerank.losses.graded_pairs import SQUARED_HINGE, GradedPairs, order_by_rank, weight_by
from truerank.matrices.row_passes import RowPasses
from truerank.rankers.linear import LinearRanker
from truerank.solvers.result import SolverResult, Status

_MOST_COLUMNS = 1000  # up to here a stubborn system is solved by its matrix
_HINGE_BLOCKS = 4  # more make fewer rounds and larger small programs
_BLOCK_VALUES = 1 << 17  # numbers in a block of rows: its second pass finds them in the cache


class RankSVM(LinearRanker):
    """Linear RankSVM, exact: hinge or squared hinge over all pairs, which are counted and never listed.

    Minimises, over all pairs (a, b) of a query q with grades y_a > y_b,

        ½ ‖w‖² + C Σ_q v_q Σ_{(a, b)} max(0, 1 - w·(x_a - x_b))^k,    k = 1 ("hinge") or 2 ("squared_hinge")

    with v_q the query's weight (see `weighting`). Use it where a linear model should order documents as judged, and as
    the yardstick of `PairwiseDescent`, which approaches the hinge form.

    Parameters
    ----------
    C : float, default 1e-3
        Weight of the sum over pairs against the norm. Scales: `MeasureSVM`'s C is divided by the number of queries,
        this one multiplies a sum over pairs, and `PairwiseDescent`'s lambda goes with a mean over pairs, so
        lambda = 1 / (C · pairs).
    loss : {"squared_hinge", "hinge"}, default "squared_hinge"
        The squared hinge is smooth and solved by Newton's method; the hinge by cutting planes.
    weighting : {"pairs", "rows", "queries"}, default "pairs"
        What a query counts in proportion to. "pairs": every pair of the data weighs 1 (times `query_weight`), so that
        long queries rule; "rows": a pair weighs its query's rows / pairs, as if a document were drawn and then its
        opponent (sofia-ml's way, and on LETOR's MQ2008, whose queries have 5 to 121 documents, the better one);
        "queries": 1 / pairs. All are scaled to the total of "pairs", so that C keeps its meaning.
    tol : float, default 1e-6
        Training stops when the duality gap is at most `tol` times the objective.
    max_iter : int, default 1000
        Newton steps, or rounds of cutting planes, at most.
    warm_start : bool, default False
        Start from the last fit's `coef_` (squared hinge), for a path over C.
    n_jobs : int, optional
        Threads; None means 1, -1 all. The result has the same bits with any number.

    Attributes
    ----------
    coef_ : float64 array (p,)
        Weight of each column.
    objective_ : float
        The objective at `coef_`, as above.
    dual_objective_ : float
        A lower bound on the optimum.
    gap_ : float
        `objective_ - dual_objective_`. For the squared hinge it is half the squared gradient norm (see Notes).
    gradient_norm_ : float
        Euclidean norm of the gradient at `coef_` (squared hinge; nan for the hinge).
    n_iter_ : int
        Newton steps or rounds.
    n_pairs_ : int
        Pairs with different grades in the training queries.

    Raises
    ------
    InvalidInputError
        On parameters outside their ranges.

    Notes
    -----
    Pairs of equal grade carry no loss. A query whose grades are all equal has no pairs; without any pairs the weights
    are 0. Documents with the same features and different grades keep their loss of 1. Rows may be sparse; float32
    stays float32. There is no intercept: no ranking depends on one.

    Cost: one evaluation takes O(n log n) for the sorted scores and counts, whatever the number of pairs, and one pass
    over X; a Newton step takes as many products as its conjugate gradients need, each one pass over X.

    Certificate of the squared hinge: with ξ the pairs' violations at w, α = 2Cξ is feasible for the dual
    `Σ α - ½‖Σ α z‖² - Σ α²/(4C)`, and `Σ α z = w - ∇P(w)`; inserting it gives `P(w) - D(α) = ½‖∇P(w)‖²` exactly.

    References
    ----------
    Herbrich, Graepel & Obermayer (2000), "Large margin rank boundaries for ordinal regression"; Joachims (2002),
    "Optimizing search engines using clickthrough data"; Chapelle & Keerthi (2010), "Efficient algorithms for ranking
    with SVMs"; Lee & Lin (2014), "Large-scale linear RankSVM".

    Examples
    --------
    >>> X = [[1.0, 0.0], [0.0, 1.0], [3.0, 1.0], [1.0, 1.0]]
    >>> ranker = RankSVM(C=10.0).fit(X, [1, 0, 2, 0], qid=["a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "b", "b"]).tolist()
    [1, 2, 1, 2]
    >>> ranker.gap_ <= 1e-6 * ranker.objective_
    True
    """

    model_attributes: ClassVar[tuple[str, ...]] = (
        *LinearRanker.model_attributes,
        "objective_", "dual_objective_", "gap_", "gradient_norm_", "n_iter_", "n_pairs_",
    )  # fmt: skip

    def __init__(
        self,
        C: float = 1e-3,
        *,
        loss: str = "squared_hinge",
        weighting: str = "pairs",
        tol: float = 1e-6,
        max_iter: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.weighting = weighting
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        C = check_number(self.C, "C", minimum=0.0, open_minimum=True)
        tol = check_number(self.tol, "tol", minimum=0.0, open_minimum=True)
        max_iter = check_positive_int(self.max_iter, "max_iter")
        loss = check_choice(self.loss, "loss", ("squared_hinge", "hinge"))
        weighting = check_choice(self.weighting, "weighting", ("pairs", "rows", "queries"))
        start = getattr(self, "coef_", None) if self.warm_start else None
        if start is not None and len(start) != data.n_features:
            start = None
        pairs = GradedPairs(np.asarray(data.y), data.offsets, data.query_weight, self.n_jobs)
        pairs.set_weight(weight_by(weighting, pairs.n_pairs, data.offsets, data.query_weight))
        if loss == "hinge":
            result = solve_hinge(data.X, pairs, np.asarray(data.y), C, tol, max_iter)
        else:
            result = solve_squared_hinge(RowPasses(data.X), pairs, C, tol, max_iter, start)
        self.coef_ = result.coef
        self.n_iter_ = result.n_iter
        self.objective_, self.dual_objective_, self.gap_ = result.objective, result.dual_objective, result.gap
        self.gradient_norm_ = float(result.details.get("gradient_norm", np.nan))
        self.n_pairs_ = int(np.sum(pairs.n_pairs))
        self._finish(result.status)


def solve_squared_hinge(
    rows: RowPasses,
    pairs: GradedPairs,
    C: float,
    tol: float,
    max_iter: int = 1000,
    start: np.ndarray | None = None,
) -> SolverResult:
    """Minimise `½‖w‖² + C Σ weight max(0, 1 - w·(x_a - x_b))²` by Newton's method with conjugate gradients.

    Stops when `½‖gradient‖² <= tol · objective`; the left side is the duality gap (see `RankSVM`).

    Notes
    -----
    The objective is once differentiable and piecewise quadratic; its generalised Hessian at w is
    `I + 2C Σ_violated weight z zᵀ` (Chapelle & Keerthi 2010, section 3). Conjugate gradients are preconditioned by
    the diagonal over all pairs, scaled by the share that is violated, so that columns of very different scale do not
    slow them; where they need more than p products all the same (p <= 1000), as many give the whole Hessian, whose
    Cholesky factor takes the step and preconditions the ones to come. Along the direction the scores are linear in
    the step, so a line search needs no pass over X.
    """
    n, p = rows.shape
    offsets = pairs.offsets
    w = np.zeros(p) if start is None else np.array(start, dtype=np.float64)
    if pairs.total_weight == 0.0:
        zero = np.zeros(p)
        return SolverResult(zero, Status.NOTHING_TO_LEARN, 0, 0.0, 0.0, 0.0, {"gradient_norm": 0.0})
    blocks = query_blocks(offsets, max(64, int(_BLOCK_VALUES / rows.values_by_row)))
    scores, values, products = np.zeros(n), np.empty(n), np.empty(n)
    bounds = [(int(offsets[first]), int(offsets[last])) for first, last in blocks]

    def sum_rows(coefficients: np.ndarray) -> np.ndarray:
        return _in_order(run_blocks(lambda lo, hi: rows.sums(coefficients, lo, hi), bounds, pairs.n_jobs), p)

    def hessian_product(direction: np.ndarray) -> np.ndarray:
        def work(first: int, last: int) -> np.ndarray:
            lo, hi = int(offsets[first]), int(offsets[last])
            rows.scores(direction, values, lo, hi)
            pairs.curvature(values, products, first, last)
            return rows.sums(products, lo, hi)

        return direction + C * _in_order(run_blocks(work, blocks, pairs.n_jobs), p)

    if np.any(w):
        run_blocks(lambda lo, hi: rows.scores(w, scores, lo, hi), bounds, pairs.n_jobs)
    spread = rows.pair_spread(order_by_rank(pairs.ranks, offsets), pairs.ranks, offsets, pairs.weight)
    loss, derivative = pairs.loss(scores, SQUARED_HINGE)
    objective = 0.5 * float(w @ w) + C * loss
    gradient = w + C * sum_rows(derivative)
    squared = float(gradient @ gradient)
    first_squared = max(squared, np.finfo(float).tiny)
    preconditioner: Callable[[np.ndarray], np.ndarray] | None = None
    status, n_iter, n_products = Status.MAX_ITERATIONS, 0, 0
    while True:
        if 0.5 * squared <= tol * objective:
            status = Status.CONVERGED
            break
        if n_iter == max_iter:
            break
        n_iter += 1
        share = float(np.sum(pairs.degrees)) / max(1.0, 2.0 * float(np.sum(pairs.n_pairs)))
        if preconditioner is None:
            diagonal = 1.0 + 2.0 * C * share * spread
            precondition: Callable[[np.ndarray], np.ndarray] = lambda r: r / diagonal  # noqa: B023, E731
        else:
            precondition = preconditioner
        forcing = min(0.1, (squared / first_squared) ** 0.25)
        # Half the residual that the tolerance asks for is enough for the last step.
        goal = max(forcing * np.sqrt(squared), 0.5 * np.sqrt(2.0 * tol * objective))
        most = max(50, p if p <= _MOST_COLUMNS else 200)
        direction, used = _conjugate_gradients(hessian_product, gradient, precondition, goal, most)
        n_products += used
        if used == most and p <= _MOST_COLUMNS:
            # As many products more give the whole matrix, which also preconditions the steps to come.
            preconditioner = _inverse(hessian_product, p)
            direction = -preconditioner(gradient)
            n_products += p
        run_blocks(lambda lo, hi: rows.scores(direction, values, lo, hi), bounds, pairs.n_jobs)  # noqa: B023
        step = _line_search(pairs, C, w, scores, objective, derivative, direction, values)
        if step is None:
            status = Status.NO_PROGRESS
            # The counts kept by the pairs belong to a trial step; nothing reads them again.
            break
        t, objective, derivative = step
        w = w + t * direction
        scores += t * values
        gradient = w + C * sum_rows(derivative)
        squared = float(gradient @ gradient)
    gap = 0.5 * squared
    details = {"gradient_norm": float(np.sqrt(squared)), "n_products": n_products}
    return SolverResult(w, status, n_iter, objective, objective - gap, gap, details)


def _in_order(parts: list[np.ndarray], p: int) -> np.ndarray:
    total = np.zeros(p)
    for part in parts:
        total += part
    return total


def _conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray],
    gradient: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
    goal: float,
    max_products: int,
) -> tuple[np.ndarray, int]:
    """Approximate solution of `H d = -gradient`, until the residual's norm is at most `goal`; products used."""
    direction = np.zeros_like(gradient)
    residual = -gradient
    z = precondition(residual)
    search = z.copy()
    rho = float(residual @ z)
    for used in range(1, max_products + 1):
        image = product(search)
        step = rho / float(search @ image)
        direction += step * search
        residual -= step * image
        if float(residual @ residual) <= goal * goal:
            return direction, used
        z = precondition(residual)
        rho, previous = float(residual @ z), rho
        search = z + (rho / previous) * search
    return direction, max_products


def _inverse(product: Callable[[np.ndarray], np.ndarray], p: int) -> Callable[[np.ndarray], np.ndarray]:
    """The product with the inverse of a positive definite (p, p) operator, by a Cholesky factor of its matrix."""
    from scipy.linalg import cho_factor, cho_solve

    matrix = np.array([product(column) for column in np.eye(p)])
    matrix = 0.5 * (matrix + matrix.T)
    # Columns of very different scale lose no digits when the diagonal is brought to 1 first.
    scale = 1.0 / np.sqrt(np.diagonal(matrix))
    scaled = matrix * scale * scale[:, None]
    jitter = 0.0
    while True:
        try:
            factor = cho_factor(scaled + jitter * np.eye(p), lower=True)
            break
        except np.linalg.LinAlgError:  # rounding; what is solved is then a preconditioner still
            jitter = max(10.0 * jitter, 1e-14)
    return lambda vector: scale * cho_solve(factor, scale * vector)


def _line_search(
    pairs: GradedPairs,
    C: float,
    w: np.ndarray,
    scores: np.ndarray,
    objective: float,
    derivative: np.ndarray,
    direction: np.ndarray,
    values: np.ndarray,
) -> tuple[float, float, np.ndarray] | None:
    """Step t, objective and loss derivative at `w + t direction`, or None where floating point finds no descent.

    The full step nearly always does; else the derivative along the direction, which is increasing, is brought towards
    0 by the secant rule.
    """
    ww, wd, dd = float(w @ w), float(w @ direction), float(direction @ direction)
    slope = wd + C * float(derivative @ values)
    if not slope < 0.0:
        return None
    t = 1.0
    for _ in range(30):
        loss, trial_derivative = pairs.loss(scores + t * values, SQUARED_HINGE)
        trial = 0.5 * (ww + 2.0 * t * wd + t * t * dd) + C * loss
        trial_slope = wd + t * dd + C * float(trial_derivative @ values)
        # The second test is for the last steps, where the gain drowns in the rounding of the objective.
        if trial_slope <= 0.5 * abs(slope) and trial <= objective * (1.0 + 1e-13):
            return t, trial, trial_derivative
        # Too far: the slope has turned steeply upwards.
        t *= max(0.05, min(0.95, slope / (slope - trial_slope))) if trial_slope > 0.0 else 0.5
        if t * np.sqrt(dd) <= 1e-16 * np.sqrt(ww):
            break
    return None


def solve_hinge(
    X: Any, pairs: GradedPairs, grades: np.ndarray, C: float, tol: float, max_iter: int = 1000
) -> SolverResult:
    """Minimise `½‖w‖² + C Σ weight max(0, 1 - w·(x_a - x_b))` by cutting planes, to `gap <= tol · objective`."""
    from truerank.losses.pair_oracle import PairHingeOracle
    from truerank.matrices.rows import LinearRows
    from truerank.solvers.cutting_planes import CuttingPlanes

    planes = CuttingPlanes(
        LinearRows(X, pairs.n_jobs),
        PairHingeOracle(grades, pairs.offsets),
        weight=pairs.weight,
        n_blocks=_HINGE_BLOCKS,
        n_jobs=pairs.n_jobs,
    )
    # The solver's tolerance is absolute below an objective of 1; at w = 0 the objective is C times the pairs' weight.
    goal = tol * min(1.0, max(C * pairs.total_weight, 1e-300))
    used = 0
    while True:
        result = planes.solve(C, tol=goal, max_iter=max_iter - used)
        used += result.n_iter
        converged = result.status is not Status.CONVERGED or result.gap <= tol * result.objective
        if converged or used >= max_iter:
            return replace(result, n_iter=used)
        goal *= 0.25
