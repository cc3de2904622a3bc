"""A ranker whose scores become P(relevant): cross-fitted by query, comparable across queries."""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from truerank.calibration.base import Calibrator, log_probability_pairs, probability_pairs
from truerank.calibration.decisions import decide, expected_relevant
from truerank.calibration.joint import joint_probability_pairs
from truerank.calibration.log_odds_fits import fit_log_odds
from truerank.calibration.names import make_calibrator
from truerank.compat.fit_arguments import check_predict_arguments
from truerank.core.checks import check_number, check_positive_int
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.types import ArrayLike, Matrix, MatrixLike, Scorer
from truerank.data.grouping import group_rows, ranks_by_query
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import RowSource
from truerank.data.splits import query_folds
from truerank.rankers.base import Ranker
from truerank.rankers.constructor_names import estimator
from truerank.rankers.pipeline import RankerPipeline, as_ranking_data, fit_ranker, ranker_scores

# Ridge on the standardised query statistics, in rows.
_RIDGE = 1.0


@estimator
class CalibratedRanker(Ranker):
    """P(relevant | score) for any ranker.

    The scores that the calibrators are fitted to come from rankers trained on the other queries (folds of whole
    queries), brought to the level of the ranker that is refitted on all (`on_one_level`). For each grade g above the
    lowest one calibrator gives P(grade ≥ g); where these cross, the higher grade's is lowered. `predict` gives the
    ranker's own scores, so that the ranking is the ranker's.

    A score often means different things in different queries. With `query_statistics` a ridge logistic regression first
    turns the score and its place in the query (z-score, distance to the query's best score, logarithm of the rank, the
    query's best, mean and spread of scores, logarithm of the number of documents) into log-odds, which are calibrated
    in the score's stead; its log-odds can order documents otherwise than the ranker.

    Parameters
    ----------
    ranker : Ranker, scikit-learn Pipeline, LGBMRanker, XGBRanker, CatBoostRanker, …
        Unfitted (cross-fitted and refitted as clones), or fitted with `cv="prefit"`. What `rankers.pipeline.fit_ranker`
        takes; truerank's own have a form in a model file.
    method : str or Calibrator, default "pool"
        The average of calibrators by their cross-validated log losses (folds of whole queries) unless one is named.
    cv : int or "prefit", default 5
        Folds of queries (at most one a query; a single query is split by rows). "prefit" takes the
        ranker as it is: the data must then be queries it has not seen.
    rel : float, default 1
        Lowest grade that counts as relevant in `predict_proba` and what follows from it.
    query_statistics : bool, default False
    random_state : int or generator, optional
        Draws the folds.

    Attributes
    ----------
    ranker_ : Ranker
        Fitted on all queries.
    grades_ : float64 array (G,)
        Grades above the lowest one, ascending.
    calibrators_ : list of Calibrator
        One for each of `grades_`.
    statistics_coef_ : float64 array (8,) or (0,)
        Coefficients of the query statistics and, last, the intercept.
    """

    model_attributes: ClassVar[tuple[str, ...]] = (
        *Ranker.model_attributes,
        "ranker_",
        "grades_",
        "calibrators_",
        "statistics_coef_",
        "statistics_centre_",
        "statistics_scale_",
    )

    learns_elsewhere = True

    ranker: Any
    method: Any = "pool"
    cv: Any = 5
    _: KW_ONLY
    rel: float = 1
    query_statistics: bool = False
    random_state: Any = None

    @property
    def allow_nan(self) -> bool:  # type: ignore[override]
        """What the ranker allows."""
        return bool(getattr(self.ranker, "allow_nan", False) or _tags(self.ranker).allow_nan)

    @property
    def allow_sparse(self) -> bool:  # type: ignore[override]
        """What the ranker allows."""
        return bool(getattr(self.ranker, "allow_sparse", False) or _tags(self.ranker).sparse)

    @property
    def uses_eval_set(self) -> bool:  # type: ignore[override]
        """Whether the ranker has a use for validation queries."""
        return bool(getattr(self.ranker, "uses_eval_set", False))

    def _take_category_names(self, data: RankingData | RowSource) -> None:
        """Nothing: the ranker inside takes columns of categories, or refuses them."""

    def _own_category_names(self) -> dict[str, list[str]]:
        return getattr(getattr(self, "ranker_", None), "category_names", {})

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        make_calibrator(self.method)
        check_number(self.rel, "rel")
        if isinstance(data, RowSource) and not isinstance(self.ranker, Ranker):
            raise InvalidInputError(
                f"on a cluster CalibratedRanker takes one of truerank's rankers, got {type(self.ranker).__name__}"
            )
        if isinstance(self.cv, str):
            if self.cv != "prefit":
                raise InvalidInputError(f'cv must be a number of folds or "prefit", got {self.cv!r}')
            if isinstance(self.ranker, Ranker):
                check_is_fitted(self.ranker)
            self.ranker_ = self.ranker
            scores = ranker_scores(self.ranker_, data)
        else:
            self.ranker_ = fit_ranker(self.ranker, data.inside(data, "all"), valid)
            scores = cross_fitted_scores(
                self.ranker, data, self.cv, fitted=self.ranker_, valid=valid, random_state=self.random_state
            )
        self._calibrate(scores, data.without_features())

    def _calibrate(self, scores: np.ndarray, data: RankingData) -> None:
        """Fit the calibrators to held-out scores (n,) in grouped order; of `data` X is not read."""
        rel, y = check_number(self.rel, "rel"), _grades(data)
        grades = np.unique(y)
        # The lowest grade needs a calibrator of its own only where it counts as relevant.
        self.grades_ = grades if grades[0] >= rel else grades[1:] if len(grades) > 1 else np.array([rel])
        self._fit_statistics(scores, data, rel)
        values = self._calibrated_from(scores, data.offsets)
        weight = None
        if data.query_weight is not None:
            weight = np.repeat(data.query_weight, np.diff(data.offsets))
        self.calibrators_: list[Calibrator] = [
            self._calibrated(values, y >= grade, weight, data) for grade in self.grades_
        ]
        self.status_ = getattr(self.ranker_, "status_", "fitted")

    def _calibrated(
        self, values: np.ndarray, relevant: np.ndarray, weight: np.ndarray | None, data: RankingData
    ) -> Calibrator:
        calibrator: Any = make_calibrator(self.method)
        if has_fit_parameter(calibrator, "groups") and data.n_queries > 1:
            # A calibrator that cross-validates keeps the documents of a query together.
            return calibrator.fit(values, relevant, weight, groups=data.query_ids[data.query_index])
        return calibrator.fit(values, relevant, weight)

    def _fit_statistics(self, scores: np.ndarray, data: RankingData, rel: float) -> None:
        self.statistics_coef_ = self.statistics_centre_ = self.statistics_scale_ = np.empty(0)
        relevant = _grades(data) >= rel
        if not self.query_statistics or relevant.all() or not relevant.any():
            return
        columns = query_statistics(scores, data.offsets)
        self.statistics_centre_ = columns.mean(axis=0)
        spread = columns.std(axis=0)
        self.statistics_scale_ = np.where(spread > 0, spread, 1.0)
        design = np.ones((len(scores), columns.shape[1] + 1))
        design[:, :-1] = (columns - self.statistics_centre_) / self.statistics_scale_
        ridge = np.full(design.shape[1], _RIDGE)
        ridge[-1] = 0.0
        weight = None if data.query_weight is None else np.repeat(data.query_weight, np.diff(data.offsets))
        self.statistics_coef_ = fit_log_odds(design, relevant.astype(np.float64), weight, ridge=ridge).coef

    def _calibrated_from(self, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """What the calibrators see: the scores, or the log-odds from the query statistics."""
        if not len(self.statistics_coef_):
            return scores
        columns = (query_statistics(scores, offsets) - self.statistics_centre_) / self.statistics_scale_
        return (columns * self.statistics_coef_[:-1]).sum(axis=1) + self.statistics_coef_[-1]

    def _feature_shares(self) -> np.ndarray:
        return np.asarray(self.ranker_.feature_importances_, dtype=np.float64)

    def predict(self, X: Any, *, qid: Any = None, **other: Any) -> np.ndarray:
        """The ranker's own scores (n,), float64, in the caller's row order; `qid` where it looks at the query."""
        check_is_fitted(self)
        check_predict_arguments(self, other)
        if isinstance(X, RowSource):
            return X.each(_answered, self, "predict")  # type: ignore[return-value]
        if isinstance(self.ranker_, RankerPipeline) and not isinstance(X, RankingData):
            return self.ranker_.predict(X, qid=qid)
        data = as_ranking_data(self, X, qid)
        return data.restore(ranker_scores(self.ranker_, data))

    def log_odds(self, X: Any, *, qid: Any = None) -> np.ndarray:
        """Log-odds of relevance (grade ≥ `rel`), float64 (n,), in the caller's row order."""
        return self._relevant(self._at_least(X, qid))

    def _relevant(self, at_least: np.ndarray) -> np.ndarray:
        place = int(np.searchsorted(self.grades_, check_number(self.rel, "rel")))
        if place == len(self.grades_):
            raise InvalidInputError(f"rel={self.rel} is above every grade seen in fit: {self.grades_.tolist()}")
        return at_least[:, place]

    def predict_proba(self, X: Any, *, qid: Any = None) -> np.ndarray:
        """P(not relevant) and P(relevant) of each document, float64 (n, 2), in the caller's row order.

        Parameters
        ----------
        X : array (n, p) or RankingData; or ClusterRankingData, which gives a list of arrays, one a partition
        qid : array (n,), optional
            Needed with `query_statistics` when the rows are of several queries.
        """
        if isinstance(X, RowSource):
            return X.each(_answered, self, "predict_proba")  # type: ignore[return-value]
        return probability_pairs(self.log_odds(X, qid=qid))

    def predict_log_proba(self, X: MatrixLike, *, qid: ArrayLike | None = None) -> np.ndarray:
        """Logarithms of `predict_proba` (n, 2), which do not saturate."""
        return log_probability_pairs(self.log_odds(X, qid=qid))

    def grade_probabilities(self, X: Any, *, qid: Any = None) -> np.ndarray:
        """P(grade) for the lowest grade and each of `grades_`, float64 (n, G + 1); rows add up to 1."""
        at_least = joint_probability_pairs(self._at_least(X, qid))
        n = len(at_least)
        return -np.diff(np.concatenate([np.ones((n, 1)), at_least, np.zeros((n, 1))], axis=1), axis=1)

    def decide(self, X: MatrixLike, *, qid: ArrayLike | None = None, **costs: float) -> np.ndarray:
        """Decisions of least expected cost for each document; see `decisions.decide`."""
        return decide(self.predict_proba(X, qid=qid), **costs)

    def expected_relevant(self, X: MatrixLike, k: int, *, qid: ArrayLike | None = None) -> np.ndarray:
        """Expected number of relevant documents among the ranker's first k of each query, float64 (m,)."""
        scores, p = self.predict(X, qid=qid), self.predict_proba(X, qid=qid)
        query = X.restore(X.query_index) if isinstance(X, RankingData) else qid
        return expected_relevant(p, k, qid=query, scores=scores)

    def _at_least(self, X: Matrix, qid: ArrayLike) -> np.ndarray:
        """Log-odds of grade ≥ g for each of `grades_`, non-increasing along the row."""
        scores = self.predict(X, qid=qid)
        if not len(self.statistics_coef_):
            values = scores
        else:
            if not isinstance(X, RankingData) and qid is None and self.n_queries_in_ > 1:
                raise InvalidInputError("query_statistics need qid: pass the query of each row")
            grouping = X if isinstance(X, RankingData) else group_rows(qid, len(scores))
            values = grouping.restore(self._calibrated_from(grouping.grouped(scores), grouping.offsets))
        return self._at_least_of(values)

    def _at_least_of(self, values: np.ndarray) -> np.ndarray:
        columns = [calibrator.log_odds(values) for calibrator in self.calibrators_]
        return np.minimum.accumulate(np.stack(columns, axis=1), axis=1)

    def check_model(self) -> None:
        """Called after loading from a model file."""
        super().check_model()
        if len(self.calibrators_) != len(self.grades_):
            raise ModelFileError(
                f"CalibratedRanker: {len(self.calibrators_)} calibrators for {len(self.grades_)} grades"
            )


def cross_fitted_probabilities(
    calibrated: CalibratedRanker, scores: np.ndarray, data: RankingData, cv: int = 5
) -> np.ndarray:
    """P(relevant) of each row (n,), grouped order, by calibrators that were fitted to the scores of other queries.

    `scores` (n,), grouped order, are those that the fitted `calibrated` was calibrated on; of `data` X is not read.
    """
    part, log_odds = copy(calibrated), np.empty(data.n_rows)
    folds = min(cv, data.n_queries)
    for fold in query_folds(data.n_queries, folds, random_state=calibrated.random_state, query_ids=data.query_ids):
        held = np.isin(data.query_index, fold)
        part._calibrate(scores[~held], data.take_queries(np.setdiff1d(np.arange(data.n_queries), fold)))
        values = part._calibrated_from(scores[held], data.take_queries(fold).offsets)
        log_odds[held] = part._relevant(part._at_least_of(values))
    return probability_pairs(log_odds)[:, 1]


def _answered(rows: RankingData, ranker: CalibratedRanker, method: str) -> np.ndarray:
    answer: np.ndarray = getattr(ranker, method)(rows)
    return answer


def cross_fitted_scores(
    ranker: Any,
    data: Any,  # RankingData or RowSource
    cv: int = 5,
    *,
    fitted: Any = None,
    valid: RankingData | None = None,
    random_state: Any = None,
) -> np.ndarray:
    """Scores of each row (n,), grouped order, by clones of the ranker that were trained on the other queries.

    At most one fold a query. A single query leaves nothing else to hold out: its rows are split. `fitted` is the ranker
    fitted to all of `data` (None: it is fitted here), on whose level the scores are brought by `on_one_level`.
    """
    cv = check_positive_int(cv, "cv", 2)
    if data.n_queries < 2 and isinstance(data, RowSource):
        raise InvalidInputError('one query leaves none to hold out; on a cluster give two queries, or cv="prefit"')
    fitted = fit_ranker(ranker, data.inside(data, "all"), valid) if fitted is None else fitted
    own = ranker_scores(fitted, data)
    scores = np.empty(data.n_rows)
    if data.n_queries > 1:
        n_folds, query = min(cv, data.n_queries), data.query_index
        folds = query_folds(data.n_queries, n_folds, random_state=random_state, query_ids=data.query_ids)
        for number, fold in enumerate(folds, 1):
            held = np.isin(query, fold)
            rest = data.take_queries(np.setdiff1d(np.arange(data.n_queries), fold))
            part = fit_ranker(ranker, rest.inside(data, f"fold {number}"), valid)
            theirs = ranker_scores(part, data)
            scores[held] = on_one_level(theirs[held], theirs[~held], own[~held])
        return scores
    if data.n_rows < 2:
        return own
    for rows in query_folds(data.n_rows, min(cv, data.n_rows), random_state=random_state):
        others = np.setdiff1d(np.arange(data.n_rows), rows)
        rest = _one_query(data, others, _grades(data)[others])
        part = fit_ranker(ranker, rest, valid)
        scores[rows] = on_one_level(
            ranker_scores(part, _one_query(data, rows, None)), ranker_scores(part, rest), own[others]
        )
    return scores


def _one_query(data: RankingData, rows: np.ndarray, y: np.ndarray | None) -> RankingData:
    return RankingData.from_grouped(data.X[rows], y, np.array([0, len(rows)]), feature_names=data.feature_names)


def on_one_level(scores: np.ndarray, trained: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Scores of a ranker of one fold, brought to the level of the ranker of all folds.

    A ranking does not change when all scores are moved or stretched, and many rankers leave both open: each fold's
    ranker has another level. A calibrator that is fitted to the scores of all folds as they come then sees several
    curves at once, on none of which the ranker of all queries need lie. On the rows that trained the fold's ranker both
    rankers have scores of rows they know; the mean and the deviation of the one become those of the other. No grade is
    looked at. Where one of the two has equal scores alone, only the level is moved.

    Parameters
    ----------
    scores : float64 array (n,)
        Of the fold's ranker, of the rows held out.
    trained, whole : float64 arrays (m,)
        Of the fold's ranker and of the ranker of all rows, of the rows that trained the first.

    Returns
    -------
    float64 array (n,)

    Examples
    --------
    >>> on_one_level(np.array([2.0]), np.array([1.0, 3.0]), np.array([10.0, 14.0])).tolist()
    [12.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        spread, wanted = np.std(trained), np.std(whole)
        # The deviation of equal numbers is rounding, seldom 0: to divide by it would be to stretch without end.
        least = 8.0 * np.finfo(np.float64).eps * np.abs(trained).max(initial=0.0)
        stretch = wanted / spread if least < spread < np.inf and 0 < wanted < np.inf else 1.0
        result = np.mean(whole) + stretch * (scores - np.mean(trained))
    # Scores so large that their squares overflow stay as they are.
    return np.asarray(result if np.isfinite(result).all() else scores)


def query_statistics(scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The score and what its query says about it, float64 (n, 8), grouped order.

    Columns: score, z-score within the query, distance to the query's best, log rank, the query's best, mean, standard
    deviation, log number of documents.
    """
    sizes = np.diff(offsets)
    starts = offsets[:-1][sizes > 0]
    sizes = sizes[sizes > 0]
    best = np.maximum.reduceat(scores, starts)
    mean = np.add.reduceat(scores, starts) / sizes
    centred = scores - np.repeat(mean, sizes)
    spread = np.sqrt(np.add.reduceat(centred * centred, starts) / sizes)
    z = centred / np.repeat(np.where(spread > 0, spread, 1.0), sizes)
    by_query = [np.repeat(values, sizes) for values in (best, mean, spread, np.log(sizes))]
    rank = ranks_by_query(scores, offsets)
    return np.stack([scores, z, scores - by_query[0], np.log(rank), *by_query], axis=1)


def _grades(data: RankingData) -> np.ndarray:
    if data.y is None:
        raise InvalidInputError("these data have no grades (y); calibration needs them")
    return data.y


def _tags(ranker: Scorer) -> Any:
    from sklearn.utils import get_tags

    return get_tags(ranker).input_tags
