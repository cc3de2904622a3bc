"""Base classes of linear rankers: scaled training data, weights by feature name, binned columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import is_sparse
from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.schema import check_fields
from truerank.core.threads import one_blas_thread, query_blocks, run_blocks
from truerank.core.types import Matrix, MeasureLike
from truerank.data.columns import shown_names
from truerank.data.grouping import offsets_of, query_of_rows, sums_by_query
from truerank.data.ranking_data import RankingData
from truerank.losses.graded_pairs import HingeOracle
from truerank.matrices.binned import BinnedMatrix, StoredMatrix
from truerank.matrices.content import order_and_keys
from truerank.matrices.rows import LinearRows, linear_scores
from truerank.rankers.base import Ranker
from truerank.solvers.path import best_of_path
from truerank.solvers.result import SolverResult

LARGEST_WEIGHT = 1e200
"""Largest weight in a model file, so that sums over columns do not overflow."""
_BLOCK_VALUES = 1 << 19  # numbers in a block of rows, for moments
_PARTS_BYTES = 1 << 28  # of the blocks' matrices that are held at once, before they are added up


class PartProblem:
    """Rows of a part in an order that depends on their content alone and, after `set_units`, in scaled units.

    `order` (n,) has the row at each position. `y`, `offsets`, `query_weight` and `rows` are in that order, so that the
    order of the given rows changes no bit of the weights. `keys` are those of `order_and_keys`.
    """

    rows: LinearRows
    n_weights: int

    def __init__(self, data: RankingData, n_jobs: int | None) -> None:
        grades, weight = np.asarray(data.y), data.query_weight
        self.order, queries, self.keys = order_and_keys(data.X, grades, data.offsets, weight)
        self.y, self.n_jobs = grades[self.order], n_jobs
        self.offsets = offsets_of(np.diff(data.offsets)[queries])
        self.query_weight = None if weight is None else weight[queries]

    def set_units(self, X: StoredMatrix, scale: np.ndarray | None, intercept: float) -> None:
        """Set the divisors of the columns (p,), None for 1, and the intercept's column, 0 for no intercept."""
        self.rows_of = partial(LinearRows, order=self.order, scale=scale, intercept=intercept, n_jobs=self.n_jobs)
        self.rows = self.rows_of(X)
        self.n_weights = self.rows.n_weights

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return `sum_q w_q Xc' Xc` (p, p) and `sum_q w_q Xc' yc` (p,) of rows and grades centred within queries."""
        p = self.n_weights
        blocks = query_blocks(self.offsets, max(64, _BLOCK_VALUES // max(p, 1)))
        at_once = max(4, _PARTS_BYTES // (8 * max(p, 1) ** 2))
        gram, moment = np.zeros((p, p)), np.zeros(p)
        with one_blas_thread():
            for k in range(0, len(blocks), at_once):
                for part in run_blocks(self._moments, blocks[k : k + at_once], self.n_jobs):
                    gram += part[0]
                    moment += part[1]
        return gram, moment

    def _moments(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the moments of the queries first … last - 1."""
        start, stop = int(self.offsets[first]), int(self.offsets[last])
        offsets = self.offsets[first : last + 1] - start
        query, sizes = query_of_rows(offsets), np.diff(offsets)
        counts = np.maximum(sizes, 1)
        own = np.ones(last - first) if self.query_weight is None else self.query_weight[first:last]
        grades = self.y[start:stop]
        centred = grades - (np.bincount(query, weights=grades, minlength=last - first) / counts)[query]
        X: Any = self.rows.block(start, stop)
        if not is_sparse(X):
            filled = np.flatnonzero(sizes)
            origin = np.zeros((last - first, X.shape[1]))
            origin[filled] = X[offsets[filled]]
            _subtract_by_query(X, origin, offsets)  # first, so that a constant column gives exactly 0
            _subtract_by_query(X, sums_by_query(X, offsets) / counts[:, None], offsets)
            moment = np.einsum("ij,i->j", X, own[query] * centred)
            if (own != 1.0).any():
                X *= np.sqrt(own[query])[:, None]
            return X.T @ X, moment
        # Sparse rows stay sparse: `sum w x x'` less each query's size times w mean mean'.
        from scipy.sparse import csr_matrix

        indicator = csr_matrix((np.ones(len(query)), (query, np.arange(len(query)))), shape=(last - first, len(query)))
        means = (indicator @ X).toarray() / counts[:, None]
        gram = (X.T @ X.multiply(own[query][:, None]).tocsr()).toarray()
        gram -= means.T @ (means * (own * sizes)[:, None])
        return gram, np.asarray(X.T @ (own[query] * centred))

    def document_hinge(self, rel: float, weights: tuple[float, float]) -> HingeOracle:
        """Return the hinge on single documents; `weights` multiply the weights of relevant and of other documents."""
        relevant = self.y >= rel
        return HingeOracle(np.where(relevant, 1.0, -1.0), self.document_weights() * np.where(relevant, *weights))

    def document_weights(self) -> np.ndarray:
        """Return the weight of the document at each position (n,): its query's weight."""
        if self.query_weight is None:
            return np.ones(len(self.y))
        return np.repeat(self.query_weight, np.diff(self.offsets))


class LinearRanker(Ranker):
    """Base class of rankers whose score is `X @ coef_`; `_fit` sets `coef_`.

    Attributes
    ----------
    coef_ : float64 array (n_features_in_,)
        Weight of each column.
    scale_ : float64 array (n_features_in_,) or None
        Divisor of each column in training, which `coef_` includes, and 0 for a column that was left out; only of
        rankers with the parameter `scale`. None if no column was scaled.

    Notes
    -----
    `scale="auto"` leaves columns in [0, 1] as they are and divides others by their deviation within queries, or for
    sparse rows by the root mean square of the stored values. Sparse and dense copies of the same rows may therefore
    give different weights.
    """

    model_attributes: ClassVar[dict[str, str]] = {"coef_": "float64[p] in [-1e200, 1e200]", "scale_": "float64[p]??"}
    allow_sparse = True

    coef_: np.ndarray
    scale_: np.ndarray | None
    convention: str

    def _predict(self, X: Any) -> np.ndarray:
        return linear_scores(X, self.coef_)

    def _choose(
        self,
        name: str,
        values: Sequence[float],
        solve: Callable[[float], SolverResult | Sequence[SolverResult]],
        problem: Any,
        valid: RankingData | None,
        measure: MeasureLike,
        details: Sequence[str] = (),
    ) -> SolverResult:
        """Solve for every value of a parameter (`best_of_path`); store the chosen value, its weights and the path."""
        value, result, self.path_ = best_of_path(
            name,
            values,
            solve,
            valid,
            lambda w, X: linear_scores(X, problem.coef(w)),
            measure,
            self.convention,
            details,
        )
        setattr(self, f"{name}_", value)
        self.coef_, self.scale_ = problem.coef(result.coef), problem.scale
        return result

    def _feature_shares(self) -> np.ndarray:
        scale = getattr(self, "scale_", None)
        return self.coef_ if scale is None else self.coef_ * scale

    def feature_weights(self) -> dict[str, float]:
        """Return the nonzero weights by feature name, largest magnitude first (ties in column order).

        Columns without names are "feature 1", "feature 2" and so on, as in LETOR. Each bin of a binned column has a
        weight, named "name > edge".
        """
        names, order = self._weight_names(), np.argsort(-np.abs(self.coef_), kind="stable")
        return {names[k]: float(self.coef_[k]) for k in order if self.coef_[k] != 0}

    def _weight_names(self) -> list[str]:
        return shown_names(getattr(self, "feature_names_in_", None), self.n_features_in_)


class BinnedLinearRanker(LinearRanker):
    """A `LinearRanker` that may be trained on a `BinnedMatrix`.

    Attributes
    ----------
    coef_ : float64 array
        Weight of each column, or column by column of "the value is there" and "above the t-th edge".
    bin_edges_ : list of float64 arrays, or None
        Edges of the training columns. Codes of other edges raise an error.
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "bin_edges_": "list[p] of float[]??",
        "coef_": "float64[] in [-1e200, 1e200]",
    }
    allow_binned = True

    bin_edges_: list[np.ndarray] | None

    def _keep_edges(self, data: RankingData, valid: RankingData | None) -> None:
        """Store the edges of the training data, which must also be those of the validation queries."""
        self.bin_edges_ = list(data.X.edges) if isinstance(data.X, BinnedMatrix) else None
        if valid is not None:
            self._check_edges(valid.X)

    def _predict(self, X: Any) -> np.ndarray:
        self._check_edges(X)
        return linear_scores(X, self.coef_)

    def _feature_shares(self) -> np.ndarray:
        edges = getattr(self, "bin_edges_", None)
        if edges is None:
            return super()._feature_shares()
        return sums_by_query(np.abs(self.coef_), offsets_of([len(one) + 1 for one in edges]))

    def _check_edges(self, X: Matrix) -> None:
        name = type(self).__name__
        if isinstance(X, BinnedMatrix):
            if self.bin_edges_ is None:
                raise InvalidInputError(
                    f"this {name} was trained on values. Pass values, not a BinnedMatrix", code="binned"
                )
            if not X.same_edges(self.bin_edges_):
                raise InvalidInputError(
                    f"the BinnedMatrix has other edges than the training data of this {name}. Transform both with the "
                    "same fitted ScoreBinning",
                    code="other-edges",
                )
        elif self.bin_edges_ is not None:
            raise InvalidInputError(
                f"this {name} was trained on binned scores. Transform X with the ScoreBinning of the training data",
                code="binned",
            )

    def _weight_names(self) -> list[str]:
        names, binned = super()._weight_names(), getattr(self, "bin_edges_", None)
        if binned is None:
            return names
        return [
            label
            for name, edges in zip(names, binned)
            for label in [f"{name} is there"] + [f"{name} > {edge:g}" for edge in edges]
        ]

    def check_model(self) -> None:
        """Check after loading that the weights fit the columns or their bins."""
        super().check_model()
        edges = self.bin_edges_ = getattr(self, "bin_edges_", None)
        n = self.n_features_in_ if edges is None else sum(len(one) + 1 for one in edges)
        check_fields(self, {"coef_": f"float64[{n}]"})


@kernel
def _subtract_by_query(X, values, offsets):
    """Subtract `values` (m, p) of each query from its rows."""
    for query in range(len(offsets) - 1):
        for i in range(offsets[query], offsets[query + 1]):
            for j in range(X.shape[1]):
                X[i, j] -= values[query, j]
