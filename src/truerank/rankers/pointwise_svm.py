"""PointwiseSVM: a linear support vector machine on single documents, as a classification baseline."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import check_number, is_sparse
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.losses.graded_pairs import HingeOracle
from truerank.matrices.binned import BinnedMatrix, StoredMatrix
from truerank.matrices.content import inverse_scales
from truerank.matrices.rows import LinearRows
from truerank.rankers.constructor_names import estimator
from truerank.rankers.linear import BinnedLinearRanker, PartProblem
from truerank.rankers.measure_svm import relevant_grade
from truerank.rankers.sums.linear import LinearProblem
from truerank.solvers.path import path_values
from truerank.solvers.result import SolverResult, Status


@estimator
class PointwiseSVM(BinnedLinearRanker):
    """Linear SVM that separates relevant documents from the others, regardless of their query.

    With z = 1 for relevant documents and -1 for others, κ = `intercept_scaling`, and c_i the class weight times the
    query's weight, it minimises

        ½‖w‖² + ½(b/κ)² + C Σ_i c_i max(0, 1 - z_i (w·x_i + b)).

    It is the baseline of SVM-MAP's authors: SVM-acc with `class_weight=None`, SVM-acc2 with "ratio"; SVM-acc3 and
    SVM-acc4 are pipelines with `PercentileInQuery` and `MinMaxInQuery`.

    Parameters
    ----------
    C : float or list of float, default 0.01
        Weight of the sum over documents relative to the norms. From a list, the validation queries of `eval_set` select
        a value.
    class_weight : {"ratio", None} or dict, default "ratio"
        "ratio" weights relevant documents by (other documents) / (relevant documents). With None all documents have the
        weight 1, which ranks badly if few documents are relevant. A dict gives the weights {0: …, 1: …} of other and
        relevant documents.
    intercept_scaling : float, default 1.0
        κ. A larger value regularises the intercept less and makes the solver slower.
    rel : float, optional
        Lowest relevant grade. None means the higher of two grades, else the grade of the convention: 1, or 2 for mslr.
    tol : float, default 1e-4
        Tolerance of liblinear, or the relative duality gap of the cutting planes (see Notes).
    max_iter : int, default 10000
    validation_measure : str or Measure, default "AP"
        Measure that selects C.
    convention : str, default "ranklib"
        Evaluation convention: settings that the name of the measure does not contain.
    random_state : int, optional
        Seed of liblinear's order of coordinates.
    scale : {"auto", "never"}, default "auto"
        "auto" divides columns of very different spread, or of a spread far from 1, by it (see `LinearRanker`), after
        the mean of dense columns is subtracted.

    Attributes
    ----------
    coef_, scale_
        As in `LinearRanker`; `coef_` has one weight for each bin of a `BinnedMatrix`.
    intercept_ : float
    C_ : float
        The chosen value.
    objective_ : float
        The objective above.
    dual_objective_, gap_ : float
        Lower bound and gap of the cutting planes; NaN from liblinear.
    n_iter_ : int
    rel_ : float
    path_ : list of dict
        For each C, as in `MeasureSVM`.

    Notes
    -----
    liblinear (scikit-learn's `LinearSVC`) learns from dense and sparse rows; cutting planes learn from a `BinnedMatrix`
    and on a cluster.

    Examples
    --------
    >>> X = [[1.0, 0.0], [0.0, 1.0], [3.0, 1.0], [1.0, 1.0]]
    >>> PointwiseSVM(C=10.0).fit(X, [1, 0, 1, 0]).rank(X).tolist()
    [1, 4, 2, 3]
    """

    learns_elsewhere = True
    uses_eval_set = True
    chosen_from = "C"
    model_attributes: ClassVar[dict[str, str]] = {
        "intercept_": "float",
        "C_ objective_ dual_objective_ gap_ rel_": "float unbounded??",
        "n_iter_": "int??",
        "path_": "list[] of dict of any??",
    }

    allowed: ClassVar[dict[str, str]] = {
        "tol intercept_scaling": "float in (0, inf)",
        "max_iter": "int in [1, inf)",
        "rel": "float in (-inf, inf)?",
    }

    C: Any = 0.01
    _: KW_ONLY
    class_weight: Any = "ratio"
    intercept_scaling: float = 1.0
    rel: float | None = None
    tol: float = 1e-4
    max_iter: int = 10_000
    validation_measure: Any = "AP"
    convention: str = "ranklib"
    random_state: Any = None
    scale: str = "auto"

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        values = path_values(self.C, "C")
        self._keep_edges(data, valid)
        problem = LinearProblem(data.in_parts(None), self.scale, intercept=self.intercept_scaling)
        rel = relevant_grade(self.rel, None, problem, self.convention)
        labels = problem.label_weights(rel)
        weights = self._class_weights(*labels)
        middle = problem.middle
        if not (labels[0] * weights[0] and labels[1] * weights[1]):

            def solve(C: float) -> SolverResult:
                return SolverResult(np.zeros(problem.n_weights), Status.NOTHING_TO_LEARN, 0, 0.0)

        elif problem.alone is not None and not isinstance(data.X, BinnedMatrix):
            X, middle = self._liblinear_rows(data.X, problem.alone, problem.scale)
            hinge = problem.alone.document_hinge(rel, weights)

            def solve(C: float) -> SolverResult:
                return self._liblinear(X, hinge, C)

        else:
            planes = problem.document_planes(rel, weights)

            def solve(C: float) -> SolverResult:
                return planes.solve(C, tol=self.tol, max_iter=self.max_iter)

        result = self._choose("C", values, solve, problem, valid, self.validation_measure)
        self.rel_ = rel
        self.intercept_ = self.intercept_scaling * float(result.coef[-1]) - float(np.sum(self.coef_ * middle))
        self.objective_, self.dual_objective_, self.gap_ = result.objective, result.dual_objective, result.gap
        self.n_iter_ = result.n_iter
        self._finish(result.status)

    @staticmethod
    def _liblinear_rows(X: Any, problem: PartProblem, scale: np.ndarray | None) -> tuple[Any, np.ndarray]:
        """Return the rows for liblinear, which copies them anyway, and the means that were subtracted."""
        X = X[problem.order]
        if scale is None:
            return X, np.zeros(X.shape[1])
        unit = inverse_scales(scale)
        if is_sparse(X):
            return X.multiply(unit[None, :]).tocsr(), np.zeros(X.shape[1])
        X = X.astype(np.float64)
        own = problem.document_weights()
        shares = own / own.max()
        mass = math.fsum(shares)
        middle = np.array([math.fsum(column * shares / mass) for column in X.T])  # exact: no order of rows shows
        return (X - middle) * unit, middle

    def _class_weights(self, relevant: float, others: float) -> tuple[float, float]:
        """Return c_i of relevant and of other documents, given the summed query weights of both."""
        given = self.class_weight
        if given is None:
            return 1.0, 1.0
        if given == "ratio":
            return others / relevant if relevant > 0 else 1.0, 1.0
        if isinstance(given, dict) and set(given) == {0, 1}:
            other, own = (check_number(given[key], f"class_weight[{key}]", "[0, inf)") for key in (0, 1))
            return own, other
        raise InvalidInputError(
            argument="class_weight", expected="None, 'ratio' or {0: number, 1: number}", value=given
        )

    def _liblinear(self, X: StoredMatrix, hinge: HingeOracle, C: float) -> SolverResult:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        from truerank.core.random_streams import seed_of

        kappa = self.intercept_scaling
        svm = LinearSVC(
            loss="hinge", dual=True, C=C, tol=self.tol, max_iter=self.max_iter, intercept_scaling=kappa,
            random_state=seed_of(self.random_state) % 2**31,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # liblinear leaves out a row of weight 0. An interrupt is raised when it returns.
            svm.fit(X, hinge.signs > 0, sample_weight=hinge.weight)
        coef = np.append(svm.coef_[0], svm.intercept_[0] / kappa).astype(np.float64)
        margins = hinge.signs * LinearRows(X, intercept=kappa).scores(coef)
        risk = float(np.sum(hinge.weight * np.maximum(0.0, 1.0 - margins)))
        n_iter = int(np.max(svm.n_iter_))
        status = Status.MAX_ITERATIONS if n_iter >= self.max_iter else Status.CONVERGED
        return SolverResult(coef, status, n_iter, 0.5 * float(coef @ coef) + C * risk, details={"risk": risk})

    def _predict(self, X: Any) -> np.ndarray:
        return super()._predict(X) + self.intercept_
