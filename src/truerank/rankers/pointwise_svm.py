"""PointwiseSVM: the classification baseline, a linear support vector machine on single documents."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import check_number, check_positive_int
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.data.ranking_data import RankingData
from truerank.matrices.binned import BinnedMatrix
from truerank.matrices.rows import LinearRows
from truerank.rankers.linear import BinnedLinearRanker
from truerank.rankers.measure_svm import relevant_grade
from truerank.solvers.cutting_planes import CuttingPlanes
from truerank.solvers.path import best_of_path, values_of_C
from truerank.solvers.result import SolverResult, Status


class PointwiseSVM(BinnedLinearRanker):
    """Linear SVM that separates relevant from other documents, whatever their query: accuracy as the target.

    Minimises `½‖w‖² + ½b² + C Σ_i c_i max(0, 1 - z_i (w·x_i + b))` with z = +1 for relevant documents and -1 for the
    others, c_i the class weight times the query's weight. It is the baseline that SVM-MAP was compared with: SVM-acc
    as it is, SVM-acc2 with `class_weight="ratio"`; SVM-acc3 and SVM-acc4 are pipelines with `PercentileInQuery` and
    `MinMaxInQuery` before it.

    Parameters
    ----------
    C : float or list of float, default 1.0
        Weight of the sum over documents against the norm. From a list the validation queries of `eval_set` choose.
    class_weight : {None, "ratio"} or dict, default None
        "ratio" weighs relevant documents by (other documents) / (relevant documents), others by 1. A dict gives the
        weights {0: …, 1: …} of other and relevant documents.
    rel : float, optional
        Lowest relevant grade, needed where there are more than two grades; else the higher of the two.
    tol : float, default 1e-4
        liblinear's tolerance, or for binned scores the relative duality gap.
    max_iter : int, default 10000
    validation_measure : str or Measure, default "AP"
        Chooses C.
    convention : str, default "ranklib"
        Fills in what the measure's name leaves open.
    random_state : int, optional
        Seed of liblinear's order of coordinates.

    Attributes
    ----------
    coef_, intercept_ : float64 array (p,) or one weight for each bin, float
    C_ : float
    objective_ : float
        The objective above.
    dual_objective_, gap_ : float
        Lower bound and certificate for binned scores; NaN from liblinear, which reports none.
    n_iter_ : int
    rel_ : float
    path_ : list of dict
        For each C, as in `MeasureSVM`.

    Notes
    -----
    Dense and sparse rows go to liblinear (scikit-learn's `LinearSVC`, hinge loss, dual coordinate descent). A
    `BinnedMatrix` goes to the cutting-plane solver of `MeasureSVM`, because liblinear would need the 0/1 matrix.

    Examples
    --------
    >>> X = [[1.0, 0.0], [0.0, 1.0], [3.0, 1.0], [1.0, 1.0]]
    >>> PointwiseSVM(C=10.0).fit(X, [1, 0, 1, 0]).rank(X).tolist()
    [1, 4, 2, 3]
    """

    model_attributes: ClassVar[tuple[str, ...]] = (
        *BinnedLinearRanker.model_attributes,
        "intercept_", "C_", "objective_", "dual_objective_", "gap_", "n_iter_", "rel_", "path_",
    )  # fmt: skip

    def __init__(
        self,
        C: Any = 1.0,
        *,
        class_weight: Any = None,
        rel: float | None = None,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        validation_measure: Any = "AP",
        convention: str = "ranklib",
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.class_weight = class_weight
        self.rel = rel
        self.tol = tol
        self.max_iter = max_iter
        self.validation_measure = validation_measure
        self.convention = convention
        self.random_state = random_state

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        values = values_of_C(self.C)
        tol = check_number(self.tol, "tol", minimum=0.0, open_minimum=True)
        max_iter = check_positive_int(self.max_iter, "max_iter")
        self.rel_ = relevant_grade(self.rel, None, np.asarray(data.y), type(self).__name__)
        relevant = np.asarray(data.y) >= self.rel_
        weight = self._weights(relevant)
        if data.query_weight is not None:
            weight = weight * np.repeat(data.query_weight, data.group_sizes)
        self._keep_edges(data.X)
        if valid is not None:
            self._check_edges(valid.X)
        if not weight[relevant].any() or not weight[~relevant].any():

            def solve(C: float) -> SolverResult:
                return SolverResult(np.zeros(LinearRows(data.X).n_weights + 1), Status.NOTHING_TO_LEARN, 0, 0.0)

        elif isinstance(data.X, BinnedMatrix):
            oracle = HingeOracle(np.where(relevant, 1.0, -1.0), weight)
            planes = CuttingPlanes(RowsWithBias(data.X), oracle)

            def solve(C: float) -> SolverResult:
                return planes.solve(C, tol=tol, max_iter=max_iter)

        else:
            # A row may have the weight 0; liblinear leaves it out.
            def solve(C: float) -> SolverResult:
                return self._liblinear(data.X, relevant, weight, C, tol, max_iter)

        self.C_, result, self.path_ = best_of_path(
            solve, values, valid, lambda coef, X: self._linear_scores(coef[:-1], X), self.validation_measure,
            self.convention,
        )  # fmt: skip
        self.coef_, self.intercept_ = result.coef[:-1], float(result.coef[-1])
        self.objective_, self.dual_objective_, self.gap_ = result.objective, result.dual_objective, result.gap
        self.n_iter_ = result.n_iter
        self._finish(result.status)

    def _weights(self, relevant: np.ndarray) -> np.ndarray:
        given = self.class_weight
        if given is None:
            return np.ones(len(relevant))
        if given == "ratio":
            n_relevant = int(relevant.sum())
            return np.where(relevant, (len(relevant) - n_relevant) / max(n_relevant, 1), 1.0)
        if isinstance(given, dict) and set(given) == {0, 1}:
            pair = [check_number(given[key], f"class_weight[{key}]", minimum=0.0) for key in (0, 1)]
            return np.where(relevant, pair[1], pair[0])
        raise InvalidInputError(f"class_weight must be None, 'ratio' or {{0: number, 1: number}}, got {given!r}")

    def _liblinear(
        self, X: Any, relevant: np.ndarray, weight: np.ndarray, C: float, tol: float, max_iter: int
    ) -> SolverResult:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        from truerank.core.random_streams import seed_of

        svm = LinearSVC(
            loss="hinge", dual=True, C=C, tol=tol, max_iter=max_iter, random_state=seed_of(self.random_state) % 2**31
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            svm.fit(X, relevant, sample_weight=weight)
        coef = np.append(svm.coef_[0], svm.intercept_[0]).astype(np.float64)
        margins = np.where(relevant, 1.0, -1.0) * (self._linear_scores(coef[:-1], X) + coef[-1])
        risk = float(weight @ np.maximum(0.0, 1.0 - margins))
        n_iter = int(np.max(svm.n_iter_))
        status = Status.MAX_ITERATIONS if n_iter >= max_iter else Status.CONVERGED
        return SolverResult(coef, status, n_iter, 0.5 * float(coef @ coef) + C * risk, details={"risk": risk})

    def _predict(self, X: Any) -> np.ndarray:
        return super()._predict(X) + self.intercept_

    def check_model(self) -> None:
        """Called after loading: weights and intercept."""
        super().check_model()
        if not isinstance(getattr(self, "intercept_", None), float) or not np.isfinite(self.intercept_):
            raise ModelFileError(f"{type(self).__name__}: intercept_ must be a finite number")


class HingeOracle:
    """`Σ_i c_i max(0, 1 - z_i s_i)`, all rows as one query: the pointwise hinge for the cutting-plane solver.

    Parameters
    ----------
    signs : float64 array (n,) of +1 and -1
    weight : float64 array (n,), >= 0
    """

    def __init__(self, signs: np.ndarray, weight: np.ndarray) -> None:
        self._gain = signs * weight
        self._signs, self._weight = signs, weight
        self.offsets = np.array([0, len(signs)], dtype=np.int64)
        self.kept = np.array([True])

    def __call__(self, scores: np.ndarray, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Summed weight of the rows within the margin (1,), and coefficients (n,) of the scores."""
        inside = self._signs * scores < 1.0
        return np.array([self._weight[inside].sum()]), np.where(inside, -self._gain, 0.0)


class RowsWithBias(LinearRows):
    """Rows with one more feature that is 1 everywhere."""

    def __init__(self, X: Any, n_jobs: int | None = None) -> None:
        self._rows = LinearRows(X, n_jobs)
        self.n_rows, self.n_weights = self._rows.n_rows, self._rows.n_weights + 1

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """`X @ weights[:-1] + weights[-1]`."""
        return self._rows.scores(weights[:-1]) + weights[-1]

    def block_sums(self, coefficients: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """As in `LinearRows`, with the sum of the coefficients as last column."""
        sums = self._rows.block_sums(coefficients, bounds)
        bias = [float(coefficients[a:b].sum()) for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist())]
        return np.column_stack([sums, bias])
