"""MeasureSVM: the structural support vector machine that optimises an upper bound on a ranking measure's loss."""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar

from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.losses.ramp import RampOracle
from truerank.losses.worst_rankings import RankingOracle, oracle_for
from truerank.measures import parse_measure
from truerank.rankers.constructor_names import estimator
from truerank.rankers.linear import BinnedLinearRanker
from truerank.rankers.sums.linear import LinearProblem, RampProblem, SummedPlanes
from truerank.solvers.concave_convex import descend_ramp
from truerank.solvers.path import path_values
from truerank.solvers.result import SolverResult


@estimator
class MeasureSVM(BinnedLinearRanker):
    """Linear ranker with the least bound on 1 - AP (SVM-MAP), or on the loss of ROC area, RR or nDCG@k.

    `MeasureSVM()` is SVM-MAP of Yue, Finley, Radlinski and Joachims (2007).

    With `bound="margin"` it minimises, over the m queries that have a relevant and another document,

        ½‖w‖² + C Σ_q v_q max_y [Δ(y) + w·Ψ(x_q, y) - w·Ψ(x_q, y*_q)],    v_q = weight_q / Σ weights

    with y over all rankings of the query, y* the perfect one, Δ one minus the measure, and
    `Ψ(x, y) = 1/(R N) Σ_{i relevant, j other} ±(x_i - x_j)`, + if i is before j. The optimum is global, with
    a lower bound from the dual problem. After `ScoreBinning` the scorer is piecewise constant in each feature.

    For nDCG@k w = 0 is often the optimum of that bound. With `bound="ramp"` it minimises, over the queries whose gains
    differ,

        ½‖w‖² + C Σ_q v_q { max_y [Δ(y) + w·ψ(x_q, y)] - max_y w·ψ(x_q, y) },    ψ(x, y) = Σ_(r ≤ k) D(r) x_(y_r)

    with graded gains and discounts D, which is closer to the loss and not convex. Training starts at the weights that
    `bound="margin"` learns for AP, scaled to scores of unit spread. Each round solves a convex problem in which the
    current ranking replaces the second maximum.

    Parameters
    ----------
    measure : {"AP", "ROC", "RR", "nDCG", "nDCG@k"} or Measure, default "AP"
        nDCG is binary at `rel` under the margin bound, and graded under the ramp bound.
    C : float or list of float, default 1.0
        Weight of the mean loss relative to ½‖w‖², > 0. The validation queries of `eval_set` choose from a list, and
        under the ramp bound also the round.
    bound : {"auto", "margin", "ramp"}, default "auto"
        "auto" is "ramp" for nDCG@k and "margin" for the rest. "ramp" is for nDCG and nDCG@k only.
    rel : float, optional
        Lowest relevant grade. None means the grade in the measure's name ("AP(rel=2)"), else the higher of two grades,
        else the grade of the convention: 1, or 2 for mslr.
    tol : float, default 1e-4
        Stop when the gap between objective and lower bound is at most `tol · max(objective, min(1, C))`.
    max_iter : int, default 10000
        Maximum number of rounds of cutting planes for each C.
    solver : {"1-slack", "n-slack"}, default "1-slack"
        One slack variable for all queries, or one for each (Yue et al.), with the same optimum. n-slack suits few
        queries and tight tolerances.
    slack_tol : float, optional
        Also stop when no query's constraint is violated by more than this, the ε of the paper's Algorithm 1; for
        `solver="n-slack"` and the margin bound only.
    validation_measure : str or Measure, optional
        Measure that selects C; None means `measure`.
    convention : str, default "ranklib"
        Evaluation convention: settings that the names of the measures do not contain.
    scale : {"auto", "never"}, default "auto"
        "auto" divides columns of very different spread by their spread, also in `coef_` (see `LinearRanker`).
    n_jobs : int, optional
        Threads; None means 1, -1 all. The weights have the same bits for any number of threads.

    Attributes
    ----------
    coef_, scale_
        As in `LinearRanker`; `coef_` has one weight for each bin of a `BinnedMatrix`.
    C_ : float
        The chosen value.
    objective_ : float
        The convex objective at `coef_`; under the ramp bound that of the chosen round's problem (of the start, nan).
    dual_objective_, gap_ : float
        A lower bound on the optimum of that convex problem, and its distance from `objective_`. Under the ramp bound
        it says nothing about the whole problem, which is not convex.
    loss_bound_ : float
        An upper bound on the weighted mean training loss Δ (Proposition 1 of the paper): the mean training measure is
        at least `1 - loss_bound_`.
    n_iter_ : int
        Rounds of cutting planes for the chosen weights.
    round_ : int
        Chosen round of the ramp bound, 0 for its start; 0 under the margin bound.
    n_queries_left_out_ : int
        Queries that offer no choice.
    rel_ : float
    path_ : list of dict
        For each C, and each round of the ramp bound: `C`, `round`, `objective`, `dual_objective`, `gap`, `n_iter`,
        `status`, `bound` (as `loss_bound_`), `validation`, and under the ramp bound `ramp`, its whole objective.

    Raises
    ------
    InvalidInputError
        If the measure has no oracle, or for a list of C without `eval_set`.

    Notes
    -----
    A round costs two passes over X and O(n log n) for the worst rankings (O(k²) more for nDCG@k). The number of rounds
    grows with C and 1/tol and not with n. The weights do not depend on the order of the rows.

    For ROC area, w here is half the w of `RankSVM` with pair weights 1/(R N) and C_rank = 4C/m.

    Differences from the paper: (1) oracles in O(n log n); Algorithm 2 needs O(n log n + R N); (2) one plane for all
    queries in a round, and a stop by the duality gap; Algorithm 1 has one for each and a tolerance ε on each slack
    (`solver="n-slack"` with `slack_tol`); (3) the oracle divides scores by R N, as Ψ requires; equation 5 omits it.

    References
    ----------
    Yue, Finley, Radlinski, Joachims (2007), "A support vector method for optimizing average precision", SIGIR.
    Joachims, Finley, Yu (2009), "Cutting-plane training of structural SVMs", Machine Learning 77. Le & Smola (2007),
    "Direct optimization of ranking measures"; Chapelle et al. (2008), "Tighter bounds for structured estimation", NIPS
    (the ramp bound).

    Examples
    --------
    >>> X = [[1.0, 0.0], [0.0, 1.0], [3.0, 1.0], [1.0, 1.0]]
    >>> ranker = MeasureSVM("AP", C=10.0).fit(X, [1, 0, 1, 0], qid=["a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "b", "b"]).tolist()
    [1, 2, 1, 2]
    >>> ranker.gap_ <= 1e-4, ranker.loss_bound_ < 0.05
    (True, True)
    """

    learns_elsewhere = True
    uses_eval_set = True
    chosen_from = "C"
    model_attributes: ClassVar[dict[str, str]] = {
        "C_ objective_ dual_objective_ gap_ loss_bound_ rel_": "float unbounded??",
        "n_iter_ round_ n_queries_left_out_": "int??",
        "path_": "list[] of dict of any??",
    }

    allowed: ClassVar[dict[str, str]] = {
        "bound": "'auto' | 'margin' | 'ramp'",
        "solver": "'1-slack' | 'n-slack'",
        "tol": "float in (0, inf)",
        "slack_tol": "float in (0, inf)?",
        "max_iter": "int in [1, inf)",
        "rel": "float in (-inf, inf)?",
    }

    measure: Any = "AP"
    C: Any = 1.0
    _: KW_ONLY
    bound: str = "auto"
    rel: float | None = None
    tol: float = 1e-4
    max_iter: int = 10_000
    solver: str = "1-slack"
    slack_tol: float | None = None
    validation_measure: Any = None
    convention: str = "ranklib"
    scale: str = "auto"
    n_jobs: int | None = None

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        values = path_values(self.C, "C")
        measure, chooser = self._measure(), self._measure("validation_measure")
        ramp = self._is_ramp(measure)
        if self.slack_tol is not None and (ramp or self.solver != "n-slack"):
            raise InvalidInputError(
                f"slack_tol={self.slack_tol} requires solver='n-slack' and bound='margin'. Set both, or omit slack_tol",
                argument="slack_tol",
            )
        self._keep_edges(data, valid)
        problem = LinearProblem(data.in_parts(self.n_jobs), self.scale)
        rel = relevant_grade(self.rel, measure, problem, self.convention)
        n_blocks = 1 if self.solver == "1-slack" else None

        margin = partial(RankingOracle, "AP", rel=rel) if ramp else partial(oracle_for, measure, rel=rel)
        planes = SummedPlanes(problem, margin, n_blocks)
        solve = partial(planes.solve, tol=self.tol, max_iter=self.max_iter, slack_tol=self.slack_tol)
        result = self._choose("C", values, solve, problem, valid, chooser)
        left_out = planes.n_left_out
        if ramp:
            gain, discount = measure.setting("gain"), measure.setting("discount")
            oracle_of = partial(RampOracle, cutoff=measure.cutoff, gain=gain, discount=discount)
            bound = RampProblem(problem, oracle_of, n_blocks)
            start = result.coef / (problem.score_spread(result.coef) or 1.0)

            def rounds(C: float) -> list[SolverResult]:
                return descend_ramp(bound, C, start, tol=self.tol, max_iter=self.max_iter)

            result = self._choose("C", values, rounds, problem, valid, chooser, details=("ramp",))
            left_out = bound.n_left_out
        self.rel_, self.n_queries_left_out_ = rel, left_out
        self.objective_, self.dual_objective_, self.gap_ = result.objective, result.dual_objective, result.gap
        self.loss_bound_ = float(result.details["risk"])
        self.n_iter_, self.round_ = result.n_iter, int(result.details.get("round", 0))
        self._finish(result.status)

    @property
    def chooses_by_eval_set(self) -> bool:
        """Whether validation queries can change a fit: a choice among several C, or among the rounds of the ramp."""
        return super().chooses_by_eval_set or self._is_ramp(self._measure())

    def _is_ramp(self, measure: Any) -> bool:
        if self.bound == "auto":
            return measure.NAME == "nDCG" and measure.cutoff is not None
        if self.bound == "ramp" and measure.NAME != "nDCG":
            raise InvalidInputError(
                f"bound='ramp' requires the measure nDCG or nDCG@k, got {measure.name}. Use bound='margin'"
            )
        return self.bound == "ramp"


def relevant_grade(rel: float | None, measure: Any, problem: Any, convention: str) -> float:
    """Return the lowest relevant grade: `rel`, the measure's, the higher one of two grades, or the convention's."""
    if rel is not None:
        return float(rel)
    if measure is not None and measure.gives("rel"):
        return float(measure.setting("rel"))
    distinct = problem.distinct_grades()
    if len(distinct) == 2:
        return float(distinct[-1])
    return float(parse_measure("AP", convention=convention).setting("rel"))
