"""Estimate P(relevant) from scores that are cross-fitted by query."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Unpack

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from truerank.calibration.base import Calibrator, log_probability_pairs, make_calibrator, probability_pairs, unit_of
from truerank.calibration.decisions import decide, expected_relevant
from truerank.calibration.log_odds_fits import fit_standardised
from truerank.calibration.pool import folds_of
from truerank.compat.fit_arguments import check_predict_arguments
from truerank.core.checks import check_number, check_positive_int, is_frame, is_text_type
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of, stream
from truerank.core.schema import check_fields
from truerank.core.types import ArrayLike, Matrix, MatrixLike, NoOthers
from truerank.data.columns import as_trained, columns_for, is_foreign
from truerank.data.grouping import group_rows, ranks_by_query
from truerank.data.provenance import training_queries, warn_of_training_queries
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import RowSource, as_parts
from truerank.data.splits import query_folds
from truerank.rankers.base import Ranker, answered
from truerank.rankers.column_settings import CategoryColumns, frame_of, numbered_categories
from truerank.rankers.constructor_names import estimator
from truerank.rankers.pipeline import RankerPipeline, as_ranking_data, fit_ranker, model_scores, ranker_scores

_RIDGE = 1.0  # on the standardised query statistics, in rows


@estimator
class CalibratedRanker(Ranker):
    """Estimate P(relevant | score) for any ranker.

    Rankers that were trained on the other queries give the scores for the calibrators. `on_one_level` brings these
    scores to the level of the ranker that is refitted on all queries. Each grade g above the lowest has a calibrator of
    P(grade ≥ g). If two probabilities cross, that of the higher grade is lowered. `predict` returns the scores of the
    ranker, so calibration does not change the ranking.

    The same score often means different things in different queries. With `query_statistics`, a ridge logistic
    regression on the score and its `query_statistics` gives log-odds, which are calibrated instead of the score. They
    may order documents differently from the ranker.

    Parameters
    ----------
    ranker : Ranker, scikit-learn Pipeline, LGBMRanker, XGBRanker, CatBoostRanker, …
        Unfitted (clones are fitted), or fitted with `cv="prefit"`. Only truerank's rankers can be saved in a model
        file.
    method : str or Calibrator, default "pool"
        "pool" is an average of calibrators with weights from their cross-validated log losses.
    cv : int or "prefit", default 5
        Folds of queries (at most the number of queries; a single one is split by rows). "prefit" uses a fitted ranker.
        Its training data must then contain none of these queries.
    rel : float, default 1
        Lowest relevant grade.
    query_statistics : bool, default False
    random_state : int or generator, optional
        Seed of the folds.

    Attributes
    ----------
    ranker_ : Ranker
        Fitted on all queries.
    grades_, calibrators_ : float64 array (G,), list of Calibrator
        Grades above the lowest one, ascending, and their calibrators.
    statistics_coef_ : float64 array (8,) or (0,)
        Coefficients of the query statistics and, last, the intercept.
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "ranker_": "Ranker | Pipeline",
        "grades_": "float[]",
        "calibrators_": "list[] of Calibrator",
        "statistics_coef_ statistics_centre_ statistics_scale_": "float[]??",
    }

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
        """Whether the ranker allows missing values."""
        by_itself = not hasattr(self.ranker, "fit") or (is_foreign(self.ranker) and hasattr(self.ranker, "steps"))
        return by_itself or bool(get_tags(self.ranker).input_tags.allow_nan)

    @property
    def allow_sparse(self) -> bool:  # type: ignore[override]
        """Whether the ranker allows sparse rows."""
        return hasattr(self.ranker, "fit") and bool(get_tags(self.ranker).input_tags.sparse)

    @property
    def uses_eval_set(self) -> bool:  # type: ignore[override]
        """Whether the ranker uses validation queries."""
        return bool(getattr(self.ranker, "uses_eval_set", False))

    @property
    def chooses_by_eval_set(self) -> bool:
        """Whether validation queries can change a fit of the ranker with its settings."""
        return bool(getattr(self.ranker, "chooses_by_eval_set", False))

    def _checked(self, X: Any, *, reset: bool) -> Any:
        learns = reset and self.cv != "prefit"
        if reset:
            self._numbering = clone(self.ranker) if learns and isinstance(self.ranker, CategoryColumns) else self.ranker
        ranker = getattr(self, "_numbering", None) if reset or not hasattr(self, "ranker_") else self.ranker_
        if isinstance(ranker, CategoryColumns):
            X = ranker._numbered(ranker._named_columns(frame_of(X)), learns)
        elif reset and (rows := self._frame_for_ranker(X, learns)) is not None:
            texts = [k for k, dtype in enumerate(rows.dtypes) if is_text_type(dtype)]
            X, self.category_names_ = numbered_categories(rows, texts, {}, True)
        return super()._checked(X, reset=reset)

    def _frame_for_ranker(self, X: Any, learns: bool = False) -> Any:
        """Return the columns of a data frame that a ranker of another library reads by name, else None."""
        ranker, X = self.ranker if learns else getattr(self, "ranker_", self.ranker), frame_of(X)
        if not (is_frame(X) and is_foreign(ranker) and hasattr(ranker, "predict")):
            return None
        return X if learns else columns_for(ranker, X)

    def _training_data(self, X: Any, y: Any, qid: Any, query_weight: Any) -> RankingData:
        """Add the texts of categories to the rows of a data frame, for the ranker."""
        if isinstance(X, RankingData) and is_foreign(self.ranker):
            X = as_trained(self.ranker, X)
        data = super()._training_data(X, y, qid, query_weight)
        texts = getattr(getattr(self, "_numbering", None), "category_names_", self.__dict__.get("category_names_"))
        if isinstance(X, RankingData) or not texts or data.feature_names is None:
            return data
        return data.replaced(category_names={str(data.feature_names[int(k)]): own for k, own in texts.items()})

    def _take_category_names(self, data: RankingData | RowSource) -> None:
        """Keep the categories for a ranker of another library; one of truerank accepts or refuses them itself."""
        names, own = list(data.feature_names or ()), data.category_names or {}
        if is_foreign(self.ranker):
            self.category_names_ = {str(names.index(name)): list(texts) for name, texts in own.items()}

    def _own_category_names(self) -> dict[str, list[str]]:
        names, own = getattr(self, "feature_names_in_", ()), self.__dict__.get("category_names_", {})
        return getattr(getattr(self, "ranker_", None), "category_names", {str(names[int(k)]): own[k] for k in own})

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        self.__dict__.pop("_numbering", None)  # which `_checked` used
        make_calibrator(self.method)
        check_number(self.rel, "rel")
        if not isinstance(self.ranker, Ranker):
            data = data.in_memory(f"{type(self.ranker).__name__}, a ranker of another library,")
        if isinstance(self.cv, str):
            if self.cv != "prefit":
                raise InvalidInputError(argument="cv", expected='a number of folds or "prefit"', value=self.cv)
            if isinstance(self.ranker, Ranker):
                check_is_fitted(self.ranker)
                warn_of_training_queries(self.ranker, training_queries(self.ranker, data))
            self.ranker_ = self.ranker
            scores = ranker_scores(self.ranker_, data)
        else:
            self.ranker_ = fit_ranker(self.ranker, data.inside(data, "all"), valid)
            scores = cross_fitted_scores(
                self.ranker, data, self.cv, fitted=self.ranker_, valid=valid, random_state=self.random_state
            )
        self._calibrate(scores, data.without_features())

    def _calibrate(self, scores: np.ndarray, data: RankingData) -> None:
        """Fit the calibrators to held-out scores (n,) in grouped order; X of `data` is not read."""
        rel, y = check_number(self.rel, "rel"), _grades(data)
        grades = np.unique(y)
        # The lowest grade needs a calibrator only if it is relevant.
        self.grades_ = grades if grades[0] >= rel else grades[1:] if len(grades) > 1 else np.array([rel])
        self._fit_statistics(scores, data, rel)
        values = self._calibrated_from(scores, data.offsets)
        weight = _row_weights(data)
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
        self.statistics_coef_, self.statistics_centre_, self.statistics_scale_ = fit_standardised(
            query_statistics(scores, data.offsets), relevant.astype(np.float64), _row_weights(data), _RIDGE
        )

    def _calibrated_from(self, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return the input of the calibrators: the scores, or the log-odds from the query statistics."""
        if not len(self.statistics_coef_):
            return scores
        columns = (query_statistics(scores, offsets) - self.statistics_centre_) / self.statistics_scale_
        return (columns * self.statistics_coef_[:-1]).sum(axis=1) + self.statistics_coef_[-1]

    def _feature_shares(self) -> np.ndarray:
        return np.asarray(self.ranker_.feature_importances_, dtype=np.float64)

    def predict(self, X: Any, *, qid: Any = None, **other: Unpack[NoOthers]) -> np.ndarray:
        """Return the ranker's scores (n,), float64, in the caller's row order; some rankers need `qid`."""
        check_is_fitted(self)
        check_predict_arguments(self, other)
        there = as_parts(X)
        if there is not None:
            return there.each(answered, self, "predict")  # type: ignore[return-value]
        if isinstance(self.ranker_, RankerPipeline) and not isinstance(X, RankingData):
            return self.ranker_.predict(X, qid=qid)
        if (rows := self._frame_for_ranker(X)) is not None:
            return model_scores(self.ranker_, rows)
        if isinstance(X, RankingData) and is_foreign(self.ranker_):
            X = as_trained(self, X)
        data = as_ranking_data(self, X, qid)
        return data.restore(ranker_scores(self.ranker_, data))

    def log_odds(self, X: Any, *, qid: Any = None) -> np.ndarray:
        """Return the log-odds of relevance (grade ≥ `rel`), float64 (n,), in the caller's row order."""
        return self._relevant(self._at_least(X, qid))

    def _relevant(self, at_least: np.ndarray) -> np.ndarray:
        return at_least[:, self.place_of_rel()]

    def place_of_rel(self) -> int:
        """Return the index of the lowest grade in `grades_` that is relevant."""
        place = int(np.searchsorted(self.grades_, check_number(self.rel, "rel")))
        if place == len(self.grades_):
            raise InvalidInputError(
                f"rel={self.rel:g} is above every grade in fit: {self.grades_.tolist()}. Lower rel", argument="rel"
            )
        return place

    def predict_proba(self, X: Any, *, qid: Any = None) -> np.ndarray:
        """Return P(not relevant) and P(relevant) of each row, float64 (n, 2), in the caller's row order.

        Parameters
        ----------
        X : array (n, p), RankingData, or ClusterRankingData (the result is then a list of arrays by partition)
        qid : array (n,), optional
            Required with `query_statistics` if the rows are of several queries.
        """
        there = as_parts(X)
        if there is not None:
            return there.each(answered, self, "predict_proba")  # type: ignore[return-value]
        return probability_pairs(self.log_odds(X, qid=qid))

    def predict_log_proba(self, X: MatrixLike, *, qid: ArrayLike | None = None) -> np.ndarray:
        """Return the logarithms of `predict_proba` (n, 2), which do not saturate."""
        return log_probability_pairs(self.log_odds(X, qid=qid))

    def grade_probabilities(self, X: Any, *, qid: Any = None) -> np.ndarray:
        """Return P(grade) for the lowest grade and each of `grades_`, float64 (n, G + 1); rows add up to 1."""
        at_least = probability_pairs(self._at_least(X, qid))[..., 1]
        n = len(at_least)
        return -np.diff(np.concatenate([np.ones((n, 1)), at_least, np.zeros((n, 1))], axis=1), axis=1)

    def decide(self, X: MatrixLike, *, qid: ArrayLike | None = None, **costs: float) -> np.ndarray:
        """Return the decision of least expected cost for each document, as `decisions.decide`."""
        return decide(self.predict_proba(X, qid=qid), **costs)

    def expected_relevant(self, X: MatrixLike, k: int, *, qid: ArrayLike | None = None) -> np.ndarray:
        """Return the expected number of relevant documents among the first k of each query, float64 (m,)."""
        scores, p = self.predict(X, qid=qid), self.predict_proba(X, qid=qid)
        query = X.restore(X.query_index) if isinstance(X, RankingData) else qid
        return expected_relevant(p, k, qid=query, scores=scores)

    def _at_least(self, X: Matrix, qid: ArrayLike) -> np.ndarray:
        """Return log-odds of grade ≥ g for each of `grades_`, non-increasing along the row."""
        scores = self.predict(X, qid=qid)
        if not len(self.statistics_coef_):
            values = scores
        else:
            if not isinstance(X, RankingData) and qid is None and self.n_queries_in_ > 1:
                raise InvalidInputError(
                    "query_statistics require the query of each row. Pass qid=qid", argument="query_statistics"
                )
            grouping = X if isinstance(X, RankingData) else group_rows(qid, len(scores))
            values = grouping.restore(self._calibrated_from(grouping.grouped(scores), grouping.offsets))
        return self._at_least_of(values)

    def _at_least_of(self, values: np.ndarray) -> np.ndarray:
        columns = [calibrator.log_odds(values) for calibrator in self.calibrators_]
        return np.minimum.accumulate(np.stack(columns, axis=1), axis=1)

    def check_model(self) -> None:
        """Check a loaded model."""
        super().check_model()
        check_fields(self, {"calibrators_": f"list[{len(self.grades_)}] of Calibrator"})


def cross_fitted_probabilities(
    calibrated: CalibratedRanker, scores: np.ndarray, data: RankingData, cv: int = 5
) -> np.ndarray:
    """Return P(relevant) of each row (n,), grouped order, by calibrators fitted to the `scores` of other queries."""
    part, log_odds = copy(calibrated), np.empty(data.n_rows)
    folds = min(cv, data.n_queries)
    for fold in query_folds(data.n_queries, folds, random_state=calibrated.random_state, query_ids=data.query_ids):
        held = np.isin(data.query_index, fold)
        part._calibrate(scores[~held], data.take_queries(np.setdiff1d(np.arange(data.n_queries), fold)))
        values = part._calibrated_from(scores[held], data.take_queries(fold).offsets)
        log_odds[held] = part._relevant(part._at_least_of(values))
    return probability_pairs(log_odds)[:, 1]


def cross_fitted_scores(
    ranker: Any,
    data: Any,  # RankingData or RowSource
    cv: int | Sequence[np.ndarray] = 5,
    *,
    fitted: Any = None,
    valid: RankingData | None = None,
    random_state: Any = None,
) -> np.ndarray:
    """Return scores of each row (n,), grouped order, by clones of the ranker that were trained on other queries.

    `on_one_level` brings them to the level of `fitted`, the ranker fitted to all of `data` (None: it is fitted here).
    `cv` is a number of folds, or the numbers of the queries in each fold. A single query is split by rows, with the
    lowest grade spread evenly. A fold whose training rows have one grade, while the data have several, raises
    `InvalidInputError`.
    """
    given = cv if isinstance(cv, Sequence) else None
    cv = check_positive_int(cv if given is None else len(given), "cv", 2)
    if data.n_queries < 2:
        data = data.in_memory("a split of one query by rows")
    fitted = fit_ranker(ranker, data.inside(data, "all"), valid) if fitted is None else fitted
    own = ranker_scores(fitted, data)
    scores, y = np.empty(data.n_rows), data.judgements().grades

    def check(number: int, train: np.ndarray) -> None:
        """Raise an error if a fold trains on one grade only."""
        lacking = np.setdiff1d(y, y[train]).tolist()
        if lacking and y[train].min() == y[train].max():
            raise InvalidInputError(
                f"fold {number} trains only on grade {y[train][0]:g}, without grade {lacking[0]:g}, so that its ranker "
                "learns nothing. Use other folds (cv, random_state), or judge more queries",
                value=(number, lacking[0]),
                code="grade-missing-in-fold",
            )

    if data.n_queries > 1:
        n_folds, query = min(cv, data.n_queries), data.query_index
        drawn = query_folds(data.n_queries, n_folds, random_state=random_state, query_ids=data.query_ids)
        for number, fold in enumerate(drawn if given is None else given, 1):
            held = np.isin(query, fold)
            check(number, ~held)
            rest = data.take_queries(np.setdiff1d(np.arange(data.n_queries), fold))
            part = fit_ranker(ranker, rest.inside(data, f"fold {number}"), valid)
            theirs = ranker_scores(part, data)
            scores[held] = on_one_level(theirs[held], theirs[~held], own[~held])
        return scores
    if data.n_rows < 2:
        return own
    numbers = folds_of(y > y.min(), None, min(cv, data.n_rows), stream(seed_of(random_state), "rows of a query"))
    for number in np.unique(numbers).tolist():
        rows, others = np.flatnonzero(numbers == number), np.flatnonzero(numbers != number)
        check(number + 1, others)
        rest = _one_query(data, others, _grades(data)[others])
        part = fit_ranker(ranker, rest, valid)
        scores[rows] = on_one_level(
            ranker_scores(part, _one_query(data, rows, None)), ranker_scores(part, rest), own[others]
        )
    return scores


def _one_query(data: RankingData, rows: np.ndarray, y: np.ndarray | None) -> RankingData:
    own = RankingData.from_grouped(data.X[rows], y, np.array([0, len(rows)]), feature_names=data.feature_names)
    return own.replaced(category_names=data.category_names)


def on_one_level(scores: np.ndarray, trained: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return the held-out scores (n,) of one fold's ranker shifted to the level of the ranker of all rows.

    A ranking does not change if all scores are shifted or scaled, so the rankers of folds may have different levels,
    which one calibrator cannot fit. So on the fold's training rows, whose scores by the two rankers are `trained` and
    `whole` (m,), the scores get the mean and the standard deviation of `whole`. If all scores of either ranker are
    equal, the scores are only shifted. Grades are not used.

    Examples
    --------
    >>> on_one_level(np.array([2.0]), np.array([1.0, 3.0]), np.array([10.0, 14.0])).tolist()
    [12.0]
    """
    theirs, ours = unit_of(trained), unit_of(whole)
    scores, trained, whole = scores / theirs, trained / theirs, whole / ours
    spread, wanted = np.std(trained), np.std(whole)
    # The deviation of equal numbers is a rounding error, rarely 0. Do not divide by it.
    least = 8.0 * np.finfo(np.float64).eps * np.abs(trained).max(initial=0.0)
    stretch = wanted / spread if spread > least and wanted > 0 else theirs / ours
    return np.asarray((np.mean(whole) + stretch * (scores - np.mean(trained))) * ours)


def query_statistics(scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return score, z-score, distance to the query's best, log rank, and statistics of the query, float64 (n, 8).

    The statistics of the query are the best, the mean and the standard deviation of its scores, and the logarithm of
    its number of documents.
    """
    sizes = np.diff(offsets)
    starts = offsets[:-1][sizes > 0]
    sizes = sizes[sizes > 0]
    best = np.maximum.reduceat(scores, starts)
    mean = np.add.reduceat(scores, starts) / sizes
    centred = scores - np.repeat(mean, sizes)
    unit = unit_of(centred)
    spread = np.sqrt(np.add.reduceat((centred / unit) ** 2, starts) / sizes) * unit
    z = centred / np.repeat(np.where(spread > 0, spread, 1.0), sizes)
    by_query = [np.repeat(values, sizes) for values in (best, mean, spread, np.log(sizes))]
    rank = ranks_by_query(scores, offsets)
    return np.stack([scores, z, scores - by_query[0], np.log(rank), *by_query], axis=1)


def _grades(data: RankingData) -> np.ndarray:
    if data.y is None:
        raise InvalidInputError("the data have no grades, which calibration requires. Pass y=grades")
    return data.y


def _row_weights(data: RankingData) -> np.ndarray | None:
    return None if data.query_weight is None else np.repeat(data.query_weight, np.diff(data.offsets))
