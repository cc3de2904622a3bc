"""ListNet (Cao, Qin, Liu, Tsai and Li 2007), linear: cross entropy between top-one probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.data.ranking_data import RankingData
from truerank.losses.cross_entropy import CrossEntropy
from truerank.matrices.scores import linear_scores
from truerank.rankers.linear import LinearRanker
from truerank.solvers.early_stopping import ValidationCurve
from truerank.solvers.result import SolverResult, Status

_DENSE_HESSIAN = 512  # columns up to which the second derivatives are kept as a matrix
_EPSILON = float(np.finfo(np.float64).eps)
_SAMPLE_ROWS = 20_000  # rows of the first queries from which the preconditioner is made


class ListNet(LinearRanker):
    """Linear ListNet: the cross entropy between the top-one probabilities of grades and of scores.

    With scores `s = X w` of a query, `P_s(j) = exp(s_j) / sum_i exp(s_i)` is the probability that document j comes
    first, and `P_y` the same of the grades. ListNet minimises, w_q being the queries' weights,

        sum_q w_q [ - sum_j P_y(j) ln P_s(j) ]  +  alpha/2 |w|^2,

    a convex function (with `normalize`, the sum is divided by sum_q w_q). Choose it when whole lists matter more than
    single pairs and a linear score is enough: it is smooth, fast, and needs no pairs.

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the squared norm. It goes with a sum over queries; with `normalize` divide it by their number.
    solver : {"lbfgs", "gradient-descent"}, default "lbfgs"
        "lbfgs" minimises to a gradient norm of `tol`. "gradient-descent" is the paper's algorithm 1: query by query,
        `w <- w - learning_rate * gradient of the query`, `max_iter` times over the queries in their order, from w = 0.
    tol : float, default 1e-6
        "lbfgs" stops when the Euclidean norm of the objective's gradient is at most this.
    max_iter : int, default 1000
        Iterations, or passes over the queries.
    learning_rate : float, default 0.01
        Of "gradient-descent".
    normalize : bool, default False
        Divide the loss by the total weight of the queries that take part.
    measure : str, Measure or callable, default "nDCG@10"
        What `eval_set` is judged by, after each iteration or pass.
    convention : str, default "ranklib"
        What the measure's name leaves open.
    patience : int or None, default None
        With `eval_set`: stop after this many iterations without a better validation measure; None runs to the end.
        Either way the best iterate is kept.
    n_jobs : int or None, default None
        Threads of "lbfgs", over fixed blocks of queries; any number gives the same bits.

    Attributes
    ----------
    coef_ : float64 array (n_features_in_,)
    objective_ : float
        The objective at `coef_`.
    gradient_norm_ : float
        Euclidean norm of its gradient there.
    n_iter_ : int
        Iterations or passes up to `coef_`.
    validation_scores_ : float64 array
        With `eval_set`, the measure after each iteration.
    status_ : str
        Why training stopped, in words.

    Raises
    ------
    InvalidInputError
        On parameters out of range; when gradient descent diverges.

    Notes
    -----
    Queries whose grades are all equal (or that have one document) would only pull scores together and are left out;
    without any other query the weights are 0. exp is shifted by the query's largest score, so that no score overflows.
    Adding a constant to a query's grades or scores changes nothing; multiplying grades does.

    Cost: two products with X an iteration. L-BFGS runs in coordinates in which the Hessian at w = 0 (of the first
    queries, up to 20,000 rows) is the identity, or its diagonal is for sparse rows and for more than 512 columns, so
    that 15 to 40 iterations are usual whatever the columns' scales. Where rounding stops the line search above `tol`,
    Newton steps with the exact Hessian finish (dense rows, up to 512 columns).

    Differences from the paper: (1) the regularisation and L-BFGS; (2) the paper's network is linear too; (3)
    `query_weight` multiplies a query's step in gradient descent, where two copies of a query would take two steps.

    References
    ----------
    Z. Cao, T. Qin, T.-Y. Liu, M.-F. Tsai, H. Li: Learning to rank: from pairwise approach to listwise approach. ICML
    2007, 129-136; equations 3 and 4 (loss and gradient), algorithm 1.

    Examples
    --------
    >>> from truerank import ListNet
    >>> X = [[0.1, 3.0], [0.4, 1.0], [0.9, 2.0], [0.2, 5.0], [0.8, 4.0]]
    >>> ranker = ListNet(alpha=0.01).fit(X, [0, 1, 2, 0, 1], qid=[1, 1, 1, 2, 2])
    >>> ranker.coef_.round(2).tolist(), ranker.gradient_norm_ <= 1e-6
    ([1.87, -0.05], True)
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        solver: str = "lbfgs",
        tol: float = 1e-6,
        max_iter: int = 1000,
        learning_rate: float = 0.01,
        normalize: bool = False,
        measure: Any = "nDCG@10",
        convention: str = "ranklib",
        patience: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.normalize = normalize
        self.measure = measure
        self.convention = convention
        self.patience = patience
        self.n_jobs = n_jobs

    model_attributes = (*LinearRanker.model_attributes, "objective_", "gradient_norm_", "n_iter_")

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        alpha = check_number(self.alpha, "alpha", minimum=0)
        check_choice(self.solver, "solver", ("lbfgs", "gradient-descent"))
        tol = check_number(self.tol, "tol", minimum=0, open_minimum=True)
        max_iter = check_positive_int(self.max_iter, "max_iter")
        learning_rate = check_number(self.learning_rate, "learning_rate", minimum=0, open_minimum=True)
        curve = None if valid is None else ValidationCurve(valid, self.measure, self.convention, self.patience)
        problem = CrossEntropy(data, alpha, bool(self.normalize), self.n_jobs)
        iterates = _Iterates(curve, valid)
        if problem.n_queries == 0:
            result = SolverResult(np.zeros(data.n_features), Status.NOTHING_TO_LEARN, 0, 0.0, gap=0.0)
        elif self.solver == "lbfgs":
            result = minimise(problem, tol, max_iter, iterates)
        else:
            result = descend(problem, learning_rate, max_iter, iterates)
        self.coef_, self.n_iter_ = result.coef, result.n_iter
        self.objective_, self.gradient_norm_ = result.objective, result.gap
        self.__dict__.pop("validation_scores_", None)
        if curve is not None:
            self.validation_scores_ = np.array(curve.values)
            if iterates.best is not None:
                self.coef_, self.n_iter_ = iterates.best, curve.best_round
                self.objective_, gradient = problem.value_and_gradient(self.coef_)
                self.gradient_norm_ = float(np.linalg.norm(gradient))
        self._finish(result.status)


class _Iterates:
    """What happens after each iteration: the validation measure, the best iterate, the word to stop."""

    def __init__(self, curve: ValidationCurve | None, valid: RankingData | None) -> None:
        self._curve, self._valid = curve, valid
        self.best: np.ndarray | None = None

    def add(self, coef: np.ndarray) -> bool:
        if self._curve is None or self._valid is None:
            return False
        stop = self._curve.add(linear_scores(self._valid.X, coef))
        if self._curve.best_round == len(self._curve.values):
            self.best = coef.copy()
        return stop


def minimise(problem: CrossEntropy, tol: float, max_iter: int, iterates: _Iterates) -> SolverResult:
    """L-BFGS in preconditioned coordinates, finished by Newton steps where rounding stops its line search.

    Returns a result whose `gap` is the gradient's norm.
    """
    from scipy.optimize import fmin_l_bfgs_b

    p = problem.X.shape[1]
    dense = not problem.sparse and p <= _DENSE_HESSIAN
    to_coef = _Coordinates(problem, dense)
    latest = {"coef": np.zeros(p), "norm": math.inf, "objective": math.inf}
    seen: dict[bytes, tuple[float, float, float]] = {}
    n_iter, status = 0, Status.NO_PROGRESS

    def evaluate(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = problem.value_and_gradient(to_coef(v))
        own = to_coef.gradient(gradient)
        # Half the squared gradient in these coordinates is about how far the objective is above its minimum.
        seen[v.tobytes()] = value, float(np.linalg.norm(gradient)), 0.5 * float(np.sum(own * own))
        return value, own

    def after_iteration(v: np.ndarray) -> None:
        nonlocal n_iter, status
        n_iter += 1
        value, norm, excess = seen.get(v.tobytes(), (math.nan, math.inf, math.inf))
        seen.clear()
        latest.update(coef=to_coef(v), norm=norm, objective=value)
        if norm <= tol:
            status = Status.CONVERGED
        elif n_iter >= max_iter:
            status = Status.MAX_ITERATIONS
        if iterates.add(latest["coef"]):  # type: ignore[arg-type]
            status = Status.VALIDATION
        # Where the excess is lost in the objective's rounding, no line search can see a descent: Newton's turn.
        if status is not Status.NO_PROGRESS or (dense and excess < 4 * _EPSILON * abs(value)):
            raise StopIteration

    fmin_l_bfgs_b(
        evaluate, np.zeros(p), m=20, factr=0.0, pgtol=0.0, maxiter=10 * max_iter, maxfun=100 * max_iter,
        callback=after_iteration,
    )  # fmt: skip
    coef: np.ndarray = latest["coef"]  # type: ignore[assignment]
    value, gradient = problem.value_and_gradient(coef)
    norm = float(np.linalg.norm(gradient))
    if status is Status.NO_PROGRESS and norm <= tol:
        status = Status.CONVERGED
    while status is Status.NO_PROGRESS and dense:
        factor = _inverse_factor(problem.hessian(coef))
        trial = coef - _apply(factor.T, _apply(factor, gradient))
        trial_value, trial_gradient = problem.value_and_gradient(trial)
        trial_norm = float(np.linalg.norm(trial_gradient))
        if not trial_norm < norm:
            break
        coef, value, gradient, norm = trial, trial_value, trial_gradient, trial_norm
        n_iter += 1
        if norm <= tol:
            status = Status.CONVERGED
        if iterates.add(coef):
            status = Status.VALIDATION
    return SolverResult(coef, status, n_iter, value, gap=norm)


def descend(problem: CrossEntropy, learning_rate: float, max_iter: int, iterates: _Iterates) -> SolverResult:
    """The paper's algorithm 1: a step after each query, in their order."""
    p = problem.X.shape[1]
    coef = np.zeros(p)
    status, n_iter = Status.ALL_ROUNDS, 0
    for n_iter in range(1, max_iter + 1):
        problem.pass_over_queries(coef, learning_rate)
        if not np.isfinite(coef).all():
            raise InvalidInputError(
                f"ListNet: gradient descent diverged in pass {n_iter}; lower learning_rate (now {learning_rate:g})"
            )
        if iterates.add(coef):
            status = Status.VALIDATION
            break
    value, gradient = problem.value_and_gradient(coef)
    return SolverResult(coef, status, n_iter, value, gap=float(np.linalg.norm(gradient)))


class _Coordinates:
    """Coordinates v, `coef = T v`, in which the objective is round at 0; T is triangular or diagonal."""

    def __init__(self, problem: CrossEntropy, dense: bool) -> None:
        p = problem.X.shape[1]
        if dense:
            factor = _inverse_factor(problem.hessian(np.zeros(p), _SAMPLE_ROWS))
            self._factor, self._transpose = factor, np.ascontiguousarray(factor.T)
        else:
            curvature = problem.curvature()
            scale = np.sqrt(np.maximum(curvature, 1e-10 * max(float(curvature.max(initial=0.0)), 1e-300)))
            self._factor, self._transpose = None, 1 / scale

    def __call__(self, v: np.ndarray) -> np.ndarray:
        return self._transpose * v if self._factor is None else _apply(self._transpose, v)

    def gradient(self, gradient: np.ndarray) -> np.ndarray:
        return self._transpose * gradient if self._factor is None else _apply(self._factor, gradient)


def _apply(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    # Not BLAS, whose sums depend on its number of threads.
    return np.einsum("ij,j->i", np.ascontiguousarray(matrix), vector)


@kernel
def _inverse_factor(matrix):  # type: ignore[no-untyped-def]
    """Lower triangular T with `T' T` the inverse of a positive semidefinite matrix.

    Directions without curvature get that of a ten-billionth of the largest, so that T exists.
    """
    p = len(matrix)
    L = np.zeros((p, p))
    largest = 0.0
    for j in range(p):
        largest = max(largest, matrix[j, j])
    floor = 1e-10 * largest
    if floor <= 0.0:
        floor = 1.0
    for j in range(p):
        for i in range(j, p):
            s = matrix[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                L[j, j] = np.sqrt(max(s, floor))
            else:
                L[i, j] = s / L[j, j]
    T = np.zeros((p, p))
    for j in range(p):
        T[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, p):
            s = 0.0
            for k in range(j, i):
                s -= L[i, k] * T[k, j]
            T[i, j] = s / L[i, i]
    return T
