"""ListNet (Cao et al. 2007), linear: the cross entropy between top-one probabilities."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar, Literal

import numpy as np

from truerank.core.rounds import tell
from truerank.data.ranking_data import RankingData
from truerank.losses.listwise import LISTWISE
from truerank.matrices.rows import linear_scores
from truerank.rankers.constructor_names import estimator
from truerank.rankers.linear import BinnedLinearRanker
from truerank.rankers.sums.linear import LinearProblem, SummedCrossEntropy
from truerank.solvers.early_stopping import EarlyStopping
from truerank.solvers.lbfgs import descend, minimise
from truerank.solvers.path import path_values
from truerank.solvers.result import SolverResult, Status


@estimator
class ListNet(BinnedLinearRanker):
    """Linear ranker that minimises the cross entropy of the top-one probabilities of grades and scores (ListNet).

    With scores `s = X w` of a query, `P_s(j) = exp(s_j) / sum_i exp(s_i)` is the probability that document j comes
    first, and `P_y` is the same for the grades. With w_q the query's weight, ListNet minimises

        sum_q w_q [ - sum_j P_y(j) ln P_s(j) ]  +  alpha/2 |w|^2,

    a convex function. Use it if whole lists matter more than single pairs and a linear score suffices.

    Parameters
    ----------
    alpha : float or list of float, default 1.0
        Weight of the squared norm. From a list, the validation queries of `eval_set` select a value.
    objective : {"softmax", "xe-ndcg"}, default "softmax"
        How grades become P_y: "softmax" as above, or "xe-ndcg" in proportion to `2^y - 1/2`, a bound of nDCG (Bruch
        2021, with its random part at its mean).
    solver : {"lbfgs", "gradient-descent"}, default "lbfgs"
        "gradient-descent" is the paper's algorithm 1: from w = 0, a step `w <- w - learning_rate * gradient of the
        query` for each query, in an order that depends on the queries' content alone.
    tol : float, default 1e-6
        "lbfgs" stops when the Euclidean norm of the gradient is at most this.
    max_iter : int, default 1000
        Iterations, or passes over the queries.
    learning_rate : float, default 0.01
        Step of "gradient-descent".
    normalize : bool, default False
        Divide the sum over queries by their total weight.
    measure : str, Measure or callable, default "nDCG@10"
        Measure that `score` reports.
    validation_measure : str, Measure or callable, optional
        Measure on `eval_set` after each iteration, averaged over ties; None means `measure`.
    convention : str, default "ranklib"
        Evaluation convention: settings that the names of the measures do not contain.
    patience : int, optional
        Stop after this many iterations without a better validation measure; None runs to the end. The best weights are
        kept in both cases.
    scale : {"auto", "never"}, default "auto"
        "auto" divides columns of very different spread by their spread, also in `coef_` (see `LinearRanker`).
    n_jobs : int, optional
        Threads; None means 1. The result has the same bits for any number of threads.

    Attributes
    ----------
    coef_, scale_
        As in `LinearRanker`; `coef_` has one weight for each bin of a `BinnedMatrix`.
    alpha_ : float
        The chosen value.
    path_ : list of dict
        For each alpha: `alpha`, `objective`, `gap` (the gradient norm), `n_iter`, `status`, `validation`.
    objective_, gradient_norm_ : float
        The objective and the Euclidean norm of its gradient at `coef_`.
    n_iter_ : int
        Iterations or passes up to `coef_`.
    history_ : dict of arrays
        For each iteration with the selected alpha: `objective` (NaN in gradient descent) and, with `eval_set`,
        `validation` (also `validation_scores_`).

    Raises
    ------
    InvalidInputError
        If a parameter is out of range, or gradient descent diverges.

    Notes
    -----
    Queries with a single grade are left out; without any other query the weights are 0. A constant added to the grades
    of a query changes nothing; a factor changes the model.

    An iteration costs two products with X, and 15 to 40 iterations are usually enough. L-BFGS runs in coordinates in
    which the Hessian at w = 0 (of up to 20,000 rows) is the identity; with sparse rows or more than 512 columns, only
    its diagonal is 1. If rounding stops the line search above `tol`, Newton steps finish (dense rows, up to 512
    columns).

    Differences from the paper: regularisation, L-BFGS, and `query_weight`, which multiplies a query's step in gradient
    descent, while two copies of the query would take two steps.

    References
    ----------
    Cao et al. (2007), "Learning to rank: from pairwise approach to listwise approach", equations 3 and 4, algorithm 1.

    Examples
    --------
    >>> from truerank import ListNet
    >>> X = [[0.1, 3.0], [0.4, 1.0], [0.9, 2.0], [0.2, 5.0], [0.8, 4.0]]
    >>> ranker = ListNet(alpha=0.01).fit(X, [0, 1, 2, 0, 1], qid=[1, 1, 1, 2, 2])
    >>> ranker.coef_.round(2).tolist(), ranker.gradient_norm_ <= 1e-6
    ([1.87, -0.05], True)
    """

    alpha: Any = 1.0
    _: KW_ONLY
    objective: Literal["softmax", "xe-ndcg"] = "softmax"
    solver: str = "lbfgs"
    tol: float = 1e-6
    max_iter: int = 1000
    learning_rate: float = 0.01
    normalize: bool = False
    measure: Any = "nDCG@10"
    validation_measure: Any = None
    convention: str = "ranklib"
    patience: int | None = None
    scale: str = "auto"
    n_jobs: int | None = None

    learns_elsewhere = True
    uses_eval_set = True
    model_attributes: ClassVar[dict[str, str]] = {
        "alpha_ objective_ gradient_norm_": "float unbounded??",
        "n_iter_": "int??",
        "path_": "list[] of dict of any??",
    }

    allowed: ClassVar[dict[str, str]] = {
        "objective": "'softmax' | 'xe-ndcg'",
        "solver": "'lbfgs' | 'gradient-descent'",
        "tol learning_rate": "float in (0, inf)",
        "max_iter": "int in [1, inf)",
    }

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        values = path_values(self.alpha, "alpha", zero=True)
        chooser = self._measure("validation_measure")
        tol, max_iter, learning_rate = float(self.tol), int(self.max_iter), float(self.learning_rate)
        self._keep_edges(data, valid)
        problem = LinearProblem(data.in_parts(self.n_jobs), self.scale)

        def solve(alpha: float) -> SolverResult:
            loss = SummedCrossEntropy(problem, alpha, bool(self.normalize), LISTWISE[self.objective]())
            if loss.n_queries == 0:
                return SolverResult(np.zeros(loss.n_weights), Status.NOTHING_TO_LEARN, 0, 0.0, gap=0.0)
            curve = None if valid is None else EarlyStopping(chooser, self.convention, self.patience, valid=valid)
            best, objectives, called_off = np.zeros(0), [], False

            def after(weights: np.ndarray, objective: float) -> bool:
                nonlocal best, called_off
                objectives.append(objective)
                measured, stop = None, False
                if curve is not None and valid is not None:
                    stop = curve.add(linear_scores(valid.X, problem.coef(weights)))
                    measured = curve.values[-1]
                    if curve.is_best:
                        best = weights.copy()
                called_off = tell(len(objectives), max_iter, validation=measured, objective=objective)
                return stop or called_off

            if self.solver == "lbfgs":
                result = minimise(loss, tol, max_iter, after)
            else:
                result = descend(loss, learning_rate, max_iter, after)
            if called_off:
                result = replace(result, status=Status.CALLBACK)
            history = {"objective": np.array(objectives)}
            if curve is None or not curve.values:
                return replace(result, details=history)
            history["validation"] = np.array(curve.values)
            objective, gradient = loss.value_and_gradient(best)
            return replace(
                result, coef=best, n_iter=curve.best_round, objective=objective, gap=float(np.linalg.norm(gradient)),
                details=history,
            )  # fmt: skip

        result = self._choose("alpha", values, solve, problem, valid, chooser)
        self.n_iter_, self.objective_, self.gradient_norm_ = result.n_iter, result.objective, result.gap
        nothing = np.zeros(0)
        self.history_ = {"objective": result.details.get("objective", nothing)}
        self.__dict__.pop("validation_scores_", None)
        if valid is not None:
            self.validation_scores_ = self.history_["validation"] = result.details.get("validation", nothing)
        self._finish(result.status)
