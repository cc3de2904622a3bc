"""Baselines that no table should be without: ridge regression, one feature, and chance."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.random_streams import seed_of
from truerank.core.threads import one_blas_thread
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import Part
from truerank.data.rows import beside
from truerank.matrices.content import hashed
from truerank.measures import Measure
from truerank.rankers.base import Ranker
from truerank.rankers.constructor_names import estimator
from truerank.rankers.linear import LinearRanker, Problem
from truerank.rankers.query_moments import within_query_moments
from truerank.rankers.sums.linear import make_problem
from truerank.solvers.path import path_values
from truerank.solvers.result import SolverResult, Status

_LARGEST_MATRIX = 1 << 31  # bytes of X' X


@estimator
class RidgeRanker(LinearRanker):
    """Ridge regression of grades on features, both centred within their query.

    Minimises, with bars for the means of query q and w_q its weight,

        sum_q w_q sum_(i in q) ((y_i - ybar_q) - w . (x_i - xbar_q))^2  +  alpha |w|^2,

    that is, least squares with an intercept of its own for each query (which does not change the ranking). A strong
    baseline: on the LETOR collections it is level with the best linear rankers.

    Parameters
    ----------
    alpha : float or list of float, default 1.0
        Weight of the squared norm. From a list the validation queries of `eval_set` choose.
    measure, convention
        What chooses alpha, and what `score` reports.
    scale : {"auto", "never"}, default "auto"
        "auto" divides columns of very different spread by it and folds that back into `coef_`; columns in [0, 1] stay.
        The spread is the deviation within the queries, of sparse rows the root mean square of the stored values: the
        same rows held sparse then learn other weights; the norm above is then that of the divided columns' weights.
    n_jobs : int or None, default None
        Threads, over fixed blocks of queries; any number gives the same sums.

    Attributes
    ----------
    coef_ : float64 array (n_features_in_,)
    alpha_ : float
        The value that was chosen.
    scale_ : float64 array (n_features_in_,) or None
        What each column was divided by, if it was.
    path_ : list of dict
        For each alpha: `alpha`, `validation`.

    Raises
    ------
    InvalidInputError
        On a negative alpha, on a list of them without `eval_set`, on more than 16,384 columns.

    Notes
    -----
    One product `X' X` and one p x p eigendecomposition for all alphas: O(n p^2 + p^3). Directions whose
    regularised curvature is below 1e-12 of the largest get no weight, so that alpha = 0 gives the least squares
    solution of smallest norm. Queries with one grade count: they say which features should not tell documents apart.

    scikit-learn's `Ridge(fit_intercept=False)` on rows that are centred within their query has the same weights and
    takes as long. Here all alphas share one decomposition (five of them take a quarter of the time), sparse rows stay
    sparse (half of it or less), and the sums add up over blocks of queries.

    Examples
    --------
    >>> from truerank import RidgeRanker
    >>> RidgeRanker(alpha=0.0).fit([[1.0], [2.0], [10.0], [11.0]], [0, 2, 0, 2], qid=[1, 1, 2, 2]).coef_.tolist()
    [2.0]
    """

    alpha: Any = 1.0
    _: KW_ONLY
    measure: Any = "nDCG@10"
    convention: str = "ranklib"
    scale: str = "auto"
    n_jobs: int | None = None

    uses_eval_set = True
    learns_elsewhere = True
    model_attributes: ClassVar[tuple[str, ...]] = (*LinearRanker.model_attributes, "alpha_", "path_")

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        alphas = path_values(self.alpha, "alpha", zero=True)
        if 8 * data.n_features**2 > _LARGEST_MATRIX:
            raise InvalidInputError(
                f"ridge solves for a matrix of columns by columns: {data.n_features:,} columns need "
                f"{8 * data.n_features**2 / 2**30:.0f} GiB, more than {_LARGEST_MATRIX >> 30}. For wide data take "
                "rank-svm, measure-svm or list-net, which hold one number a column and read sparse rows (--sparse), or "
                "keep fewer columns"
            )
        problem = make_problem(data, self.scale, self.n_jobs)
        gram, moment = within_query_moments(problem) if isinstance(problem, Problem) else problem.moments()
        with one_blas_thread():
            values, vectors = np.linalg.eigh(gram)
        values = np.maximum(values, 0.0)
        turned = np.einsum("ij,i->j", vectors, moment)
        status = Status.CONVERGED if np.any(moment != 0) else Status.NOTHING_TO_LEARN

        def solve(alpha: float) -> SolverResult:
            curvature = values + alpha
            kept = curvature > 1e-12 * curvature.max(initial=0.0)
            coef = np.einsum("ij,j->i", vectors[:, kept], turned[kept] / curvature[kept])
            return SolverResult(coef, status, 1, float("nan"))

        result = self._choose("alpha", alphas, solve, problem, valid, self.measure)
        self._finish(result.status)


@estimator
class SingleFeature(Ranker):
    """Rank by one column: BM25's, say, or the one that ranks the training queries best.

    Parameters
    ----------
    feature : int, str or None, default None
        Column number from 0, or name. None takes the column and direction with the best mean `measure` on the
        training queries (ties: descending first, then the lowest column).
    ascending : bool, default False
        Small values first. Not used with `feature=None`.
    measure : str, Measure or callable, default "nDCG@10"
        What a column is chosen by.
    convention : str, default "ranklib"
        What the measure's name leaves open.

    Attributes
    ----------
    feature_ : int
        Column.
    sign_ : int
        1, or -1 where small values come first.
    train_score_ : float
        With `feature=None`, the mean measure of that column on the training queries.

    Raises
    ------
    InvalidInputError
        When there is no such column.

    Notes
    -----
    Missing values (nan) rank last, as -inf does. O(rows x columns log rows) when it chooses, else nothing to fit.
    `query_weight` weighs the queries in the mean.

    Examples
    --------
    >>> from truerank import SingleFeature
    >>> ranker = SingleFeature().fit([[1.0, 5.0], [2.0, 3.0], [3.0, 4.0]], [0, 2, 1])
    >>> ranker.feature_, ranker.sign_
    (1, -1)
    """

    learns_elsewhere = True
    model_attributes: ClassVar[tuple[str, ...]] = (*Ranker.model_attributes, "feature_", "sign_")
    allow_nan = True
    missing_values = "last"

    feature: int | str | None = None
    _: KW_ONLY
    ascending: bool = False
    measure: Any = "nDCG@10"
    convention: str = "ranklib"

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        self.__dict__.pop("train_score_", None)
        if self.feature is None:
            measure = self._measure().tie_averaged()
            best: float | None = None
            for sign in (1, -1):
                for k in range(data.n_features):
                    by_query = np.concatenate(data.statistics(_measured, k, sign, measure, merge=beside))
                    value = measure.aggregate(by_query, data.query_weight)
                    if measure.improves(value, best):
                        best, self.feature_, self.sign_ = value, k, sign
            self.train_score_ = best
        else:
            self.feature_ = self._column_number(data.n_features)
            self.sign_ = -1 if self.ascending else 1
        self._finish(Status.CONVERGED)

    def _column_number(self, n_features: int) -> int:
        if isinstance(self.feature, str):
            names = list(getattr(self, "feature_names_in_", []))
            if self.feature not in names:
                known = f"the data have: {', '.join(names[:10])}" if names else "the data have no column names"
                raise InvalidInputError(f"feature: there is no column {self.feature!r}; {known}")
            return names.index(self.feature)
        is_int = isinstance(self.feature, int | np.integer) and not isinstance(self.feature, bool)
        if not is_int or not 0 <= self.feature < n_features:  # type: ignore[operator]
            raise InvalidInputError(
                f"feature must be a column number from 0 to {n_features - 1} or a column's name, got {self.feature!r}"
            )
        return int(self.feature)  # type: ignore[arg-type]

    def _feature_shares(self) -> np.ndarray:
        return np.eye(self.n_features_in_)[self.feature_]

    def _predict(self, X: np.ndarray) -> np.ndarray:
        return last_if_missing(self.sign_ * X[:, self.feature_].astype(np.float64))

    def check_model(self) -> None:
        """Called after loading: the column exists."""
        super().check_model()
        feature, sign = getattr(self, "feature_", None), getattr(self, "sign_", None)
        if not isinstance(feature, int) or not 0 <= feature < self.n_features_in_ or sign not in (1, -1):
            raise ModelFileError(f"SingleFeature: no column {feature!r} with sign {sign!r}")


def _measured(part: Part, k: int, sign: int, measure: Measure) -> list[np.ndarray]:
    scores = last_if_missing(sign * part.data.X[:, k].astype(np.float64))
    return [np.asarray(measure.per_query(part.data.judgements(), scores))]


def last_if_missing(scores: np.ndarray) -> np.ndarray:
    """Scores (n,) in which missing ones are below all others, changed in place."""
    missing = np.isnan(scores)
    if missing.any():
        # Finite, so that every consumer of scores takes them; below what columns may hold.
        scores[missing] = -1e300
    return scores


@estimator
class RandomRanker(Ranker):
    """Chance: a score in [0, 1) drawn for each row from the seed and the row's values.

    The score of a row is a hash of its values and `random_state`, so it is the same alone, among others, in any order
    and on any machine. Rows with the same values are tied (and rank in row order, or as the measure breaks ties).

    Parameters
    ----------
    random_state : int or generator, optional
        Seed; None means 0.

    Attributes
    ----------
    seed_ : int

    Examples
    --------
    >>> from truerank import RandomRanker
    >>> X = [[1.0], [2.0], [3.0]]
    >>> scores = RandomRanker(random_state=1).fit(X, [0, 1, 2]).predict(X)
    >>> bool((scores == RandomRanker(random_state=1).fit(X, [2, 1, 0]).predict(X)).all())
    True
    """

    learns_elsewhere = True
    model_attributes: ClassVar[tuple[str, ...]] = (*Ranker.model_attributes, "seed_")
    allow_nan = True
    missing_values = "a value like others"

    random_state: Any = None

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        self.seed_ = seed_of(self.random_state)
        self._finish(Status.CONVERGED)

    def _feature_shares(self) -> np.ndarray:
        return np.zeros(self.n_features_in_)

    def _predict(self, X: np.ndarray) -> np.ndarray:
        state = np.full(X.shape[0], self.seed_, dtype=np.uint64)
        state = hashed(state + np.uint64(0x9E3779B97F4A7C15))
        for k in range(X.shape[1]):
            column = X[:, k].astype(np.float64)
            column[column == 0] = 0.0  # -0.0 is 0.0
            column[np.isnan(column)] = np.nan  # one nan
            state = hashed(state ^ column.view(np.uint64)) + np.uint64(k + 1)
        return (hashed(state) >> np.uint64(11)).astype(np.float64) * 2.0**-53
