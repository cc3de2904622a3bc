"""Baseline rankers: ridge regression, a single feature, and random scores."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of
from truerank.core.threads import one_blas_thread
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import Part
from truerank.data.rows import beside
from truerank.matrices.content import hashed
from truerank.measures import Measure
from truerank.rankers.base import Ranker
from truerank.rankers.column_settings import column_of
from truerank.rankers.constructor_names import estimator
from truerank.rankers.linear import LinearRanker
from truerank.rankers.sums.linear import LinearProblem
from truerank.solvers.path import path_values
from truerank.solvers.result import SolverResult, Status

_LARGEST_MATRIX = 1 << 31  # bytes of X' X


@estimator
class RidgeRanker(LinearRanker):
    """Ridge regression of grades on features, both centred within their query.

    With w_q the query's weight and bars for means of query q, it minimises

        sum_q w_q sum_(i in q) ((y_i - ybar_q) - w . (x_i - xbar_q))^2  +  alpha |w|^2.

    On the LETOR collections, ridge regression ranks as well as the best linear rankers.

    Parameters
    ----------
    alpha : float or list of float, default 1.0
        Weight of the squared norm. From a list, the validation queries of `eval_set` select a value.
    measure, convention
        The measure that selects alpha, and that `score` reports.
    scale : {"auto", "never"}, default "auto"
        "auto" divides columns of very different spread by their spread, also in `coef_` (see `LinearRanker`).
    n_jobs : int, optional
        Threads; None means 1. The result has the same bits for any number of threads.

    Attributes
    ----------
    coef_, scale_
        As in `LinearRanker`.
    alpha_ : float
        The chosen value.
    path_ : list of dict
        For each alpha: `alpha`, `validation`.

    Raises
    ------
    InvalidInputError
        If alpha is negative, if a list of alpha has no `eval_set`, or with more than 16,384 columns.

    Notes
    -----
    The cost is O(n p^2 + p^3) for all alphas. Directions whose regularised curvature is below 1e-12 of the largest get
    no weight, so alpha = 0 gives the least-squares solution of smallest norm. Queries with a single grade count, too.

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
    chosen_from = "alpha"
    learns_elsewhere = True
    model_attributes: ClassVar[dict[str, str]] = {
        "alpha_": "float unbounded??",
        "path_": "list[] of dict of any??",
    }

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        alphas = path_values(self.alpha, "alpha", zero=True)
        if 8 * data.n_features**2 > _LARGEST_MATRIX:
            raise InvalidInputError(
                f"X has {data.n_features:,} columns, and ridge would require {8 * data.n_features**2 / 2**30:.0f} GiB "
                f"for their products, more than {_LARGEST_MATRIX >> 30} GiB",
                argument="X",
                remedies=[
                    "use rank-svm, measure-svm or list-net, which need little memory for each column",
                    "keep fewer columns",
                ],
                code="too-wide",
            )
        problem = LinearProblem(data.in_parts(self.n_jobs), self.scale)
        gram, moment = problem.moments()
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
    """Rank by a given column, such as BM25, or by the best column on the training queries.

    Parameters
    ----------
    feature : int or str, optional
        Column number from 0, or name. None chooses the column and direction with the best mean `measure` on the
        training queries, weighted by `query_weight`. Among equally good choices, descending order wins, then the lowest
        column.
    ascending : bool, default False
        Rank small values first. Ignored with `feature=None`.
    measure : str, Measure or callable, default "nDCG@10"
        Measure that selects the column.
    convention : str, default "ranklib"
        Evaluation convention: settings that the name of the measure does not contain.

    Attributes
    ----------
    feature_ : int
        Column.
    sign_ : int
        1, or -1 if small values come first.
    train_score_ : float
        With `feature=None`, the mean measure of the column on the training queries.

    Raises
    ------
    InvalidInputError
        If there is no such column.

    Notes
    -----
    Missing values (NaN) rank last. Choosing costs O(p n log n); otherwise there is nothing to fit.

    Examples
    --------
    >>> from truerank import SingleFeature
    >>> ranker = SingleFeature().fit([[1.0, 5.0], [2.0, 3.0], [3.0, 4.0]], [0, 2, 1])
    >>> ranker.feature_, ranker.sign_
    (1, -1)
    """

    learns_elsewhere = True
    model_attributes: ClassVar[dict[str, str]] = {"feature_": "int in [0, p)", "sign_": "int in [-1, 1]"}
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
            names = list(getattr(self, "feature_names_in_", []))
            self.feature_ = column_of(self.feature, "feature", data.n_features, names)
            self.sign_ = -1 if self.ascending else 1
        self._finish(Status.CONVERGED)

    def _feature_shares(self) -> np.ndarray:
        return np.eye(self.n_features_in_)[self.feature_]

    def _predict(self, X: np.ndarray) -> np.ndarray:
        return last_if_missing(self.sign_ * X[:, self.feature_].astype(np.float64))


def _measured(part: Part, k: int, sign: int, measure: Measure) -> list[np.ndarray]:
    scores = last_if_missing(sign * part.data.X[:, k].astype(np.float64))
    return [np.asarray(measure.per_query(part.data.judgements(), scores))]


def last_if_missing(scores: np.ndarray) -> np.ndarray:
    """Replace missing scores (n,) in place by a score below all other scores."""
    missing = np.isnan(scores)
    if missing.any():
        # A finite score that is below the smallest value that a column may have.
        scores[missing] = -1e300
    return scores


@estimator
class RandomRanker(Ranker):
    """Random scores in [0, 1), as a baseline.

    The score of a row is a hash of its values and `random_state`. Rows with equal values are tied.

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
    model_attributes: ClassVar[dict[str, str]] = {"seed_": "int in [0, inf]"}
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
