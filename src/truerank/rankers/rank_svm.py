"""RankSVM: solve the linear support vector machine over all pairs of different grades in a query exactly."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar

import numpy as np

from truerank.data.ranking_data import RankingData
from truerank.losses.graded_pairs import GradedPairs
from truerank.rankers.constructor_names import estimator
from truerank.rankers.linear import BinnedLinearRanker
from truerank.rankers.sums.linear import LinearProblem, SummedPairs, SummedPlanes
from truerank.solvers.cutting_planes import CuttingPlanes
from truerank.solvers.newton import minimise_pairs
from truerank.solvers.path import path_values
from truerank.solvers.result import SolverResult, Status

_HINGE_BLOCKS = 4  # more make fewer rounds and larger small programs


@estimator
class RankSVM(BinnedLinearRanker):
    """Linear ranker that minimises the hinge or squared hinge over all pairs, which it does not list (RankSVM).

    Minimises, over all pairs (a, b) of a query q with grades y_a > y_b,

        ½ ‖w‖² + C Σ_q v_q Σ_{(a, b)} max(0, 1 - w·(x_a - x_b))^k,    k = 1 ("hinge") or 2 ("squared_hinge")

    with v_q the query's weight (see `weighting`). `PairwiseDescent` approximates the hinge form.

    Parameters
    ----------
    C : float or list of float, default 1e-3
        Weight of the sum over pairs relative to ½‖w‖². From a list, the value that is best on `eval_set` is chosen.
        `alpha` of `PairwiseDescent` is 1 / (C · pairs); `MeasureSVM` divides its C by the number of queries.
    loss : {"squared_hinge", "hinge"}, default "squared_hinge"
        The squared hinge is smooth and solved by Newton's method; the hinge by cutting planes.
    weighting : {"pairs", "rows", "queries"}, default "pairs"
        Weight of a pair, times `query_weight`. "pairs": 1, so that long queries dominate; "rows": its query's rows /
        pairs, as if a document were drawn and then its opponent (as in sofia-ml; better on LETOR's MQ2008); "queries":
        1 / its query's pairs. The weights are scaled to the total of "pairs", so that C keeps its meaning.
    tol : float, default 1e-6
        Training stops when the duality gap is at most `tol` times the objective.
    max_iter : int, default 1000
        Maximum number of Newton steps or rounds of cutting planes.
    warm_start : bool, default False
        Start from the last fit's `coef_` (squared hinge), for a path over C.
    validation_measure : str or Measure, default "nDCG@10"
        Measure that selects C.
    convention : str, default "ranklib"
        Evaluation convention: settings that the name of the measure does not contain.
    scale : {"auto", "never"}, default "auto"
        "auto" divides columns of very different spread by their spread, also in `coef_` (see `LinearRanker`).
    n_jobs : int, optional
        Threads; None means 1, -1 all. The result has the same bits for any number of threads.

    Attributes
    ----------
    coef_, scale_
        As in `LinearRanker`; `coef_` has one weight for each bin of a `BinnedMatrix`.
    C_ : float
        The chosen value.
    objective_, dual_objective_, gap_ : float
        The objective at `coef_`, a lower bound on the optimum, and the difference of the two.
    gradient_norm_ : float
        Euclidean norm of the gradient at `coef_` (squared hinge; nan for the hinge).
    n_iter_ : int
        Newton steps or rounds.
    n_pairs_ : int
        Pairs with different grades in the training queries.
    path_ : list of dict
        For each C: `C`, `objective`, `dual_objective`, `gap`, `n_iter`, `status`, `validation`.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range.

    Notes
    -----
    Documents of equal grade form no pair; without any pair the weights are 0. There is no intercept, because no ranking
    depends on one. The weights do not depend on the order of the rows.

    Cost: an evaluation costs O(n log n) for any number of pairs, and one pass over X. A Newton step costs one pass over
    X for each step of its conjugate gradients.

    Certificate of the squared hinge: with ξ the pairs' violations at w, α = 2Cξ is feasible for the dual D, and
    `P(w) - D(α) = ½‖∇P(w)‖²`.

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

    learns_elsewhere = True
    uses_eval_set = True
    chosen_from = "C"
    model_attributes: ClassVar[dict[str, str]] = {
        "C_ objective_ dual_objective_ gap_ gradient_norm_": "float unbounded??",
        "n_iter_ n_pairs_": "int??",
        "path_": "list[] of dict of any??",
    }

    allowed: ClassVar[dict[str, str]] = {
        "loss": "'squared_hinge' | 'hinge'",
        "weighting": "'pairs' | 'rows' | 'queries'",
        "tol": "float in (0, inf)",
        "max_iter": "int in [1, inf)",
    }

    C: Any = 1e-3
    _: KW_ONLY
    loss: str = "squared_hinge"
    weighting: str = "pairs"
    tol: float = 1e-6
    max_iter: int = 1000
    warm_start: bool = False
    validation_measure: Any = "nDCG@10"
    convention: str = "ranklib"
    scale: str = "auto"
    n_jobs: int | None = None

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        values = path_values(self.C, "C")
        tol, max_iter = float(self.tol), int(self.max_iter)
        self._keep_edges(data, valid)
        problem = LinearProblem(data.in_parts(self.n_jobs), self.scale)
        sums = SummedPairs(problem, self.weighting)
        planes = SummedPlanes(problem, GradedPairs, _HINGE_BLOCKS, of_pairs=True) if self.loss == "hinge" else None
        last = self._start(problem)

        def solve(C: float) -> SolverResult:
            nonlocal last
            if planes is not None:
                return solve_hinge(planes, sums.total_weight, C, tol, max_iter)
            result = minimise_pairs(sums, C, tol, max_iter, last)
            last = result.coef if len(values) > 1 else None
            return result

        result = self._choose("C", values, solve, problem, valid, self.validation_measure)
        self.n_iter_ = result.n_iter
        self.objective_, self.dual_objective_, self.gap_ = result.objective, result.dual_objective, result.gap
        self.gradient_norm_ = float(result.details.get("gradient_norm", np.nan))
        self.n_pairs_ = int(sums.n_pairs)
        self._finish(result.status)

    def _start(self, problem: Any) -> np.ndarray | None:
        """Return the weights of the last fit in the units of this problem."""
        start = getattr(self, "coef_", None) if self.warm_start else None
        if start is None or len(start) != problem.n_weights:
            return None
        return start if problem.scale is None else start * problem.scale


def solve_hinge(planes: CuttingPlanes, total_weight: float, C: float, tol: float, max_iter: int = 1000) -> SolverResult:
    """Minimise `½‖w‖² + C Σ weight max(0, 1 - w·(x_a - x_b))` by cutting planes, to `gap <= tol · objective`."""
    # The solver's tolerance is absolute below an objective of 1; at w = 0 the objective is C times the pairs' weight.
    goal = tol * min(1.0, max(C * total_weight, 1e-300))
    used = 0
    while True:
        result = planes.solve(C, tol=goal, max_iter=max_iter - used)
        used += result.n_iter
        converged = result.status is not Status.CONVERGED or result.gap <= tol * result.objective
        if converged or used >= max_iter:
            return replace(result, n_iter=used)
        goal *= 0.25
