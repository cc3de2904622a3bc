"""ListNet (Cao, Qin, Liu, Tsai and Li 2007), linear: cross entropy between top-one probabilities."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.rounds import tell
from truerank.data.ranking_data import RankingData
from truerank.losses.listwise import LISTWISE
from truerank.matrices.rows import linear_scores
from truerank.rankers.constructor_names import estimator
from truerank.rankers.linear import BinnedLinearRanker
from truerank.rankers.sums.linear import make_problem
from truerank.solvers.early_stopping import EarlyStopping
from truerank.solvers.lbfgs import descend, minimise
from truerank.solvers.path import path_values
from truerank.solvers.result import SolverResult, Status


@estimator
class ListNet(BinnedLinearRanker):
    """Linear ListNet: the cross entropy between the top-one probabilities of grades and of scores.

    With scores `s = X w` of a query, `P_s(j) = exp(s_j) / sum_i exp(s_i)` is the probability that document j comes
    first, and `P_y` the same of the grades. ListNet minimises, w_q being the queries' weights,

        sum_q w_q [ - sum_j P_y(j) ln P_s(j) ]  +  alpha/2 |w|^2,

    a convex function (with `normalize`, the sum is divided by sum_q w_q). Choose it when whole lists matter more than
    single pairs and a linear score is enough: it is smooth, fast, and needs no pairs.

    Parameters
    ----------
    alpha : float or list of float, default 1.0
        Weight of the squared norm. It goes with a sum over queries; with `normalize` divide it by their number. From a
        list the validation queries of `eval_set` choose.
    objective : {"softmax", "xe-ndcg"}, default "softmax"
        What makes P_y of grades, the same objects as boosted trees have (`truerank.losses.listwise`): "softmax" as
        above, "xe-ndcg" in proportion to `2^y - 1/2`, a bound of nDCG (Bruch 2021; its random part at its mean).
    solver : {"lbfgs", "gradient-descent"}, default "lbfgs"
        "lbfgs" minimises to a gradient norm of `tol`. "gradient-descent" is the paper's algorithm 1: query by query,
        `w <- w - learning_rate * gradient of the query`, `max_iter` times over the queries, from w = 0. They come in an
        order that depends on what they hold and not on where they stand.
    tol : float, default 1e-6
        "lbfgs" stops when the Euclidean norm of the objective's gradient is at most this.
    max_iter : int, default 1000
        Iterations, or passes over the queries.
    learning_rate : float, default 0.01
        Of "gradient-descent".
    normalize : bool, default False
        Divide the loss by the total weight of the queries that take part.
    measure : str, Measure or callable, default "nDCG@10"
        What `score` reports, and what `eval_set` is judged by unless `validation_measure` says otherwise.
    validation_measure : str, Measure or callable, optional
        What `eval_set` is judged by after each iteration or pass, ties averaged so that no order of the rows decides;
        None means `measure`.
    convention : str, default "ranklib"
        What the measure's name leaves open.
    patience : int or None, default None
        With `eval_set`: stop after this many iterations without a better validation measure; None runs to the end.
        Either way the best iterate is kept.
    scale : {"auto", "never"}, default "auto"
        "auto" divides columns of very different spread by it and folds that back into `coef_`; columns in [0, 1] stay.
        The spread is the deviation within the queries, of sparse rows the root mean square of the stored values: the
        same rows held sparse then learn other weights; the norm above is then that of the divided columns' weights.
    n_jobs : int or None, default None
        Threads of "lbfgs", over fixed blocks of queries; any number gives the same bits.

    Attributes
    ----------
    coef_ : float64 array (n_features_in_,), or one weight for each bin
    alpha_ : float
        The value that was chosen.
    scale_ : float64 array (n_features_in_,) or None
        What each column was divided by, if it was.
    path_ : list of dict
        For each alpha: `alpha`, `objective`, `gap` (the gradient's norm), `n_iter`, `status`, `validation`.
    objective_ : float
        The objective at `coef_`.
    gradient_norm_ : float
        Euclidean norm of its gradient there.
    n_iter_ : int
        Iterations or passes up to `coef_`.
    validation_scores_ : float64 array
        With `eval_set`, the measure after each iteration.
    history_ : dict of arrays
        After each iteration of the value that was chosen: `objective` (NaN in passes of gradient descent, which do not
        compute it) and, with `eval_set`, `validation`.
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

    alpha: Any = 1.0
    _: KW_ONLY
    objective: str = "softmax"
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
    model_attributes = (
        *BinnedLinearRanker.model_attributes, "alpha_", "objective_", "gradient_norm_", "n_iter_", "path_",
    )  # fmt: skip

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        values = path_values(self.alpha, "alpha", zero=True)
        chooser = self._measure("validation_measure")
        check_choice(self.objective, "objective", tuple(LISTWISE))
        check_choice(self.solver, "solver", ("lbfgs", "gradient-descent"))
        tol = check_number(self.tol, "tol", minimum=0, open_minimum=True)
        max_iter = check_positive_int(self.max_iter, "max_iter")
        learning_rate = check_number(self.learning_rate, "learning_rate", minimum=0, open_minimum=True)
        self._keep_edges(data, valid)
        problem = make_problem(data, self.scale, self.n_jobs)

        def solve(alpha: float) -> SolverResult:
            loss = problem.cross_entropy(alpha, bool(self.normalize), LISTWISE[self.objective]())
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
