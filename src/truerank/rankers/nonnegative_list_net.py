"""NonnegativeListNet: ListNet with weights of at least 0, as search engines require for fusion."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from truerank.data.ranking_data import RankingData
from truerank.rankers.constructor_names import estimator
from truerank.rankers.linear import LinearRanker
from truerank.rankers.sums.linear import LinearProblem, SummedCrossEntropy
from truerank.solvers.result import Status


@estimator
class NonnegativeListNet(LinearRanker):
    """Linear ListNet whose weights are all at least 0.

    Minimises ListNet's objective (see `ListNet`) over w >= 0. The problem is convex; SciPy's L-BFGS-B solves it.

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the squared norm.
    tol : float, default 1e-5
        Training stops when no entry of the projected gradient is larger than this.
    max_iter : int, default 1000
    n_jobs : int, optional
        Threads; None means 1. The result has the same bits for any number of threads.

    Attributes
    ----------
    coef_ : float64 array (p,)
    objective_, gradient_norm_ : float
        The objective and the largest entry of its projected gradient at `coef_`.
    n_iter_ : int

    Notes
    -----
    Queries with a single grade are left out; without any other query the weights are 0.

    References
    ----------
    Cao et al. (2007), "Learning to rank: from pairwise approach to listwise approach", equations 3 and 4.

    Examples
    --------
    >>> X = [[0.1, 3.0], [0.4, 1.0], [0.9, 2.0], [0.2, 5.0], [0.8, 4.0]]
    >>> NonnegativeListNet(alpha=0.01).fit(X, [0, 1, 2, 0, 1], qid=[1, 1, 1, 2, 2]).coef_.round(2).tolist()
    [1.9, 0.0]
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "objective_ gradient_norm_": "float unbounded??",
        "n_iter_": "int??",
    }

    allowed: ClassVar[dict[str, str]] = {
        "alpha": "float in [0, inf)",
        "tol": "float in (0, inf)",
        "max_iter": "int in [1, inf)",
    }

    alpha: float = 1.0
    _: KW_ONLY
    tol: float = 1e-5
    max_iter: int = 1000
    n_jobs: int | None = None

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        from scipy.optimize import minimize

        alpha, tol, max_iter = float(self.alpha), float(self.tol), int(self.max_iter)
        problem = SummedCrossEntropy(LinearProblem(data.in_parts(self.n_jobs), "never"), alpha, False, None)
        p = data.n_features
        if problem.n_queries == 0:
            self.coef_, self.n_iter_, self.objective_, self.gradient_norm_ = np.zeros(p), 0, 0.0, 0.0
            self._finish(Status.NOTHING_TO_LEARN)
            return
        found: Any = minimize(
            problem.value_and_gradient, np.zeros(p), jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * p,
            options={"maxiter": max_iter, "gtol": tol, "ftol": 0.0, "maxcor": 20},
        )  # fmt: skip
        coef = np.maximum(found.x, 0.0)
        value, gradient = problem.value_and_gradient(coef)
        left = np.where(coef > 0, gradient, np.minimum(gradient, 0.0))
        self.coef_, self.n_iter_ = coef, int(found.nit)
        self.objective_, self.gradient_norm_ = float(value), float(np.abs(left).max(initial=0.0))
        done = self.gradient_norm_ <= max(tol, 1e-6 * max(1.0, float(value)))
        limit = Status.MAX_ITERATIONS if self.n_iter_ >= max_iter else Status.NO_PROGRESS
        self._finish(Status.CONVERGED if done else limit)
