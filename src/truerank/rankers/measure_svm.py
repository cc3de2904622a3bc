"""MeasureSVM: the structural support vector machine that optimises an upper bound on a ranking measure's loss."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.losses.worst_rankings import oracle_for
from truerank.matrices.rows import LinearRows
from truerank.rankers.linear import BinnedLinearRanker
from truerank.solvers.cutting_planes import CuttingPlanes
from truerank.solvers.path import best_of_path, values_of_C


class MeasureSVM(BinnedLinearRanker):
    """Linear ranker that minimises a convex upper bound on 1 - AP (SVM-MAP), or on the loss of ROC area, RR or nDCG.

    Minimises, over the m queries that have a relevant and another document,

        ½‖w‖² + C Σ_q v_q max_y [Δ(y) + w·Ψ(x_q, y) - w·Ψ(x_q, y*_q)],    v_q = weight_q / Σ weights

    y over all rankings of the query, y* the perfect one, Δ one minus the measure, and
    `Ψ(x, y) = 1/(R N) Σ_{i relevant, j other} ±(x_i - x_j)`, + where i stands before j. The optimum is global and
    comes with a certificate: a lower bound on the optimum from the dual problem. Use it where a linear scorer is
    wanted and the measure that is reported is one of these; with `ScoreBinning` before it the scorer is piecewise
    constant in each feature. Features should be on a comparable scale.

    Parameters
    ----------
    measure : {"AP", "ROC", "RR", "nDCG", "nDCG@k"} or Measure, default "AP"
        nDCG is binary at `rel`, with the discount of `convention`.
    C : float or list of float, default 1.0
        Weight of the mean loss against the norm, > 0. From a list the validation queries of `eval_set` choose; each
        problem starts with the planes of the last.
    rel : float, optional
        Lowest grade that counts as relevant. Needed where there are more than two grades, unless the measure names
        it, as "AP(rel=2)" does; else the higher of the two.
    tol : float, default 1e-4
        Stop when the gap between objective and lower bound is at most `tol · max(objective, min(1, C))`. 1e-8 is in
        reach.
    max_iter : int, default 10000
        Rounds of cutting planes for each C.
    solver : {"1-slack", "n-slack"}, default "1-slack"
        One slack variable for all queries, or one for each (Yue et al.'s own form). The optimum is the same; n-slack
        needs fewer rounds over the data and larger quadratic programs: it suits few queries and tight tolerances.
    validation_measure : str or Measure, optional
        Chooses C; None means `measure`.
    convention : str, default "ranklib"
        Fills in what the measures' names leave open.
    n_jobs : int, optional
        Threads; None means 1, -1 all. The weights have the same bits with any number.

    Attributes
    ----------
    coef_ : float64 array (p,), or one weight for each bin
    C_ : float
        The value that was chosen.
    objective_ : float
        The objective above at `coef_` (the primal value).
    dual_objective_ : float
        A lower bound on the optimum.
    gap_ : float
        `objective_ - dual_objective_`: no weights are better than these by more than this.
    loss_bound_ : float
        The weighted mean slack, which bounds the mean training loss Δ of the predicted rankings from above
        (Proposition 1 of the paper): mean training AP is at least `1 - loss_bound_`.
    n_iter_ : int
        Rounds for the chosen C.
    n_queries_left_out_ : int
        Queries with one kind of document only, which offer no choice.
    rel_ : float
    path_ : list of dict
        For each C: `C`, `objective`, `dual_objective`, `gap`, `n_iter`, `status`, `bound`, `validation`.

    Raises
    ------
    InvalidInputError
        On more than two grades without `rel`, a measure without an oracle, a list of C without `eval_set`.

    Notes
    -----
    A round costs one pass over X for the scores, a sort of each query, O(n log n) for the worst rankings (O(k²) more
    for nDCG@k), and one pass over X for the plane. The number of rounds grows with C and 1/tol and not with n.
    Memory beside X: some vectors of n. Scores are `X @ coef_`; there is no intercept.

    Scales: `RankSVM`'s C multiplies a sum over pairs. For ROC area, w here is half the w of RankSVM with pair weights
    1/(R N) and C_rank = 4C/m.

    Differences from the paper: (1) oracles in O(n log n) for any number of relevant documents, where Algorithm 2 takes
    O(n log n + R N); (2) one plane for all queries in a round, with a duality gap as the stop, where Algorithm 1 has
    one for each and a tolerance ε on each slack; (3) scores are divided by R N in the oracle, as Ψ demands and its
    equation 5 leaves unsaid.

    References
    ----------
    Yue, Finley, Radlinski, Joachims (2007), "A support vector method for optimizing average precision", SIGIR.
    Joachims, Finley, Yu (2009), "Cutting-plane training of structural SVMs", Machine Learning 77.

    Examples
    --------
    >>> X = [[1.0, 0.0], [0.0, 1.0], [3.0, 1.0], [1.0, 1.0]]
    >>> ranker = MeasureSVM("AP", C=10.0).fit(X, [1, 0, 1, 0], qid=["a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "b", "b"]).tolist()
    [1, 2, 1, 2]
    >>> ranker.gap_ <= 1e-4, ranker.loss_bound_ < 0.05
    (True, True)
    """

    model_attributes: ClassVar[tuple[str, ...]] = (
        *BinnedLinearRanker.model_attributes,
        "C_", "objective_", "dual_objective_", "gap_", "loss_bound_", "n_iter_", "n_queries_left_out_", "rel_", "path_",
    )  # fmt: skip

    def __init__(
        self,
        measure: Any = "AP",
        C: Any = 1.0,
        *,
        rel: float | None = None,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        solver: str = "1-slack",
        validation_measure: Any = None,
        convention: str = "ranklib",
        n_jobs: int | None = None,
    ) -> None:
        self.measure = measure
        self.C = C
        self.rel = rel
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.validation_measure = validation_measure
        self.convention = convention
        self.n_jobs = n_jobs

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        from truerank.measures import parse_measure

        values = values_of_C(self.C)
        tol = check_number(self.tol, "tol", minimum=0.0, open_minimum=True)
        max_iter = check_positive_int(self.max_iter, "max_iter")
        check_choice(self.solver, "solver", ("1-slack", "n-slack"))
        measure = parse_measure(self.measure, convention=self.convention)
        grades = np.asarray(data.y)
        self.rel_ = relevant_grade(self.rel, measure, grades, type(self).__name__)
        oracle = oracle_for(measure, grades, data.offsets, self.rel_)
        self.n_queries_left_out_ = int((~oracle.kept).sum())
        self._keep_edges(data.X)
        if valid is not None:
            self._check_edges(valid.X)
        weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        total = float(weight[oracle.kept].sum())
        planes = CuttingPlanes(
            LinearRows(data.X, self.n_jobs),
            oracle,
            weight=weight / (total or 1.0),
            n_blocks=1 if self.solver == "1-slack" else None,
            n_jobs=self.n_jobs,
        )
        chooser = measure if self.validation_measure is None else self.validation_measure
        self.C_, result, self.path_ = best_of_path(
            lambda C: planes.solve(C, tol=tol, max_iter=max_iter),
            values, valid, self._linear_scores, chooser, self.convention,
        )  # fmt: skip
        self.coef_ = result.coef
        self.objective_, self.dual_objective_, self.gap_ = result.objective, result.dual_objective, result.gap
        self.loss_bound_ = float(result.details["risk"])
        self.n_iter_ = result.n_iter
        self._finish(result.status)


def relevant_grade(rel: float | None, measure: Any, grades: np.ndarray, name: str) -> float:
    """The lowest relevant grade: as given, as the measure says, or the higher of two grades."""
    if rel is not None:
        return check_number(rel, "rel")
    if measure is not None and "rel" in measure.OWN and measure == measure(rel=measure.rel):
        return float(measure.rel)
    distinct = np.unique(grades)
    if len(distinct) > 2:
        shown = ", ".join(f"{grade:g}" for grade in distinct[:6]) + (", …" if len(distinct) > 6 else "")
        raise InvalidInputError(
            f"{name} needs to know which grades are relevant: the data have {len(distinct)} grades ({shown}). Set rel "
            "to the lowest relevant one, for example rel=1"
        )
    return float(distinct[-1]) if len(distinct) == 2 else 1.0
