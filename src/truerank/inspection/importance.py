"""Measure the importance of features: the loss when a feature is shuffled within queries, or removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.printing import counted, styled_table
from truerank.core.random_streams import seed_of, stream
from truerank.core.results import Result, data_frame
from truerank.core.types import DTypeLike, MeasureLike, RandomState, Scorer
from truerank.data.columns import shown_names, take_columns
from truerank.data.provenance import Overlap, training_queries, warn_of_training_queries
from truerank.data.ranking_data import RankingData
from truerank.io.rows import RowsLike, rows_of
from truerank.measures import Measure, parse_measure
from truerank.rankers.pipeline import fit_ranker, ranker_scores
from truerank.significance.corrections import step_down_max_t, step_down_of_copies
from truerank.significance.intervals import mean_interval
from truerank.significance.paired import LEVEL, differences_of, paired_t

_COLUMNS = ("feature", "loss", "low", "high", "p_adjusted", "noise_floor")


@dataclass(frozen=True)
class Importance(Result):
    """The loss of a measure without each feature, arrays (p,), with Student's 95 % interval over queries.

    `p_adjusted` is two-sided, corrected over the features (step-down max-T), and at least Student's p. `noise_floor` is
    the loss that any feature exceeds by chance in 5 % of resamples; NaN for importances by removal.
    """

    importances: np.ndarray = field(repr=False)  # (p, repeats): the measure less that after a shuffle
    low: np.ndarray = field(repr=False)  # of the mean over the repeats; NaN if all queries have the same loss
    high: np.ndarray = field(repr=False)
    p_adjusted: np.ndarray = field(repr=False)
    noise_floor: np.ndarray = field(repr=False)
    n_queries: int  # for which the measure is defined
    measure: str
    feature_names: list[str] = field(repr=False)
    training_queries: Overlap | None = field(default=None, repr=False)  # those that the ranker was trained on

    KIND: ClassVar[str] = "importance"

    @property
    def summary(self) -> str:
        """A sentence with the features that have a significant loss."""
        return (
            f"{self.measure} is worse without {', '.join(self.shown) or 'no feature'} (corrected p below {LEVEL:.2f})."
        )

    def _figures(self) -> dict[str, Any]:
        seen = None if self.training_queries is None else self.training_queries.to_dict()
        features = [dict(zip(_COLUMNS, row)) for row in self.to_rows()]
        return {"measure": self.measure, "queries": self.n_queries, "training_queries": seen, "features": features}

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each feature, the most important first."""
        return data_frame([dict(zip(_COLUMNS[1:], row[1:])) for row in self.to_rows()], [r[0] for r in self.to_rows()])

    @property
    def shown(self) -> list[str]:
        """The features with a loss above 0 and an adjusted p below 0.05, the most important first."""
        return [name for name, mean, _, _, p, _ in self.to_rows() if mean > 0 and p < LEVEL]

    @property
    def about(self) -> str:
        """A text with the test, the correction, and the features with a significant loss."""
        test = "random signs of the queries" if np.isnan(self.noise_floor).all() else "exchange with shuffled copies"
        return (
            f"{self.measure} on {counted(self.n_queries, 'query')}; p by {test}, corrected over "
            f"{counted(len(self.p_adjusted), 'feature')} (step-down max-T), never below Student's. Significant loss at "
            f"{LEVEL:.2f}:"
            f" {', '.join(self.shown) or 'none'}"
        )

    @property
    def importances_mean(self) -> np.ndarray:
        """The mean over the repeats (p,)."""
        return self.importances.mean(axis=1)

    def __array__(self, dtype: DTypeLike | None = None, copy: Any = None) -> np.ndarray:
        return self.importances_mean.astype(dtype or np.float64)

    def to_rows(self) -> list[list[Any]]:
        """Return name, mean, low, high, adjusted p and noise floor of each feature, the most important first."""
        columns = (self.importances_mean, self.low, self.high, self.p_adjusted, self.noise_floor)
        order = np.argsort(-columns[0], kind="stable")
        return [[self.feature_names[k], *(float(column[k]) for column in columns)] for k in order]

    def _table(self, style: str) -> str:
        header = ["feature", f"loss of {self.measure}", "95% from", "to", "p, max-T", "noise floor"]
        known = len(header) - bool(np.isnan(self.noise_floor).all())
        return styled_table([row[:known] for row in self.to_rows()], header[:known], style)

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.about}"


def permutation_importance(
    ranker: Scorer,
    data: RowsLike,
    *,
    measure: MeasureLike | None = None,
    convention: str = "ranklib",
    repeats: int = 5,
    random_state: RandomState = None,
) -> Importance:
    """Return the loss of a measure when the values of a feature are shuffled among the documents of each query.

    A shuffle within queries removes only the information about the documents, on which a ranking depends.

    Parameters
    ----------
    ranker : fitted ranker, pipeline, or anything with `predict(X)`
    data : RankingData, data frame, or path of a file of rows
        Judged rows of queries on which the ranker was not trained.
    measure, convention
        Default: the ranker's `measure`, else nDCG@10. The loss is positive for a helpful feature, also if a lower value
        of the measure is better.
    repeats : int, default 5
        Number of shuffles of each feature.
    random_state : None, int or NumPy generator

    Notes
    -----
    Cost: `p * repeats + 1` predictions. Under the null hypothesis, a query's values with the original column and with
    its shuffled copies are exchangeable (`step_down_of_copies`). The result describes only this fitted ranker. A
    shuffle also removes the information that the feature shares with other features.

    Examples
    --------
    >>> from truerank.rankers.baselines import RidgeRanker
    >>> data = RankingData([[3.0, 1.0], [2.0, 5.0], [1.0, 4.0], [0.0, 2.0]], [3, 2, 1, 0])
    >>> found = permutation_importance(RidgeRanker().fit(data), data, measure="AP(rel=2)", random_state=0)
    >>> bool(found.importances_mean[0] > found.importances_mean[1] == 0)
    True
    """
    repeats = check_positive_int(repeats, "repeats")
    data = rows_of(data, model=ranker)
    if not isinstance(data.X, np.ndarray):
        raise InvalidInputError("permutation_importance requires dense rows. Call X.toarray()")
    overlap = training_queries(ranker, data)
    warn_of_training_queries(ranker, overlap)
    seed, query = seed_of(random_state), data.query_index
    pinned = measure_of(ranker, measure, convention)
    values = _signed_values(pinned, data)
    changed, p = data.X.copy(), data.n_features
    found = np.empty((p, data.n_queries, 1 + repeats))
    found[:, :, 0] = values(scores_of(ranker, data.X, data))
    for k in range(p):
        for repeat in range(repeats):
            keys = stream(seed, "importance", k, repeat).random(data.n_rows)
            changed[:, k] = data.X[np.lexsort((keys, query)), k]
            found[k, :, 1 + repeat] = values(scores_of(ranker, changed, data))
        changed[:, k] = data.X[:, k]
    found = found[:, np.isfinite(found).all(axis=(0, 2))]
    losses = differences_of(found[:, :, :1], found[:, :, 1:])
    p_adjusted, floor = step_down_of_copies(found, level=LEVEL, random_state=seed)
    return _importance(losses, p_adjusted, floor, pinned.label, data, overlap)


def removal_importance(
    ranker: Scorer,
    train: RowsLike,
    test: RowsLike,
    *,
    measure: MeasureLike | None = None,
    convention: str = "ranklib",
) -> Importance:
    """Return the loss of a measure when the ranker is trained again without each feature.

    Unlike after a shuffle, other features can replace the removed feature. A loss near 0 means that the feature is
    dispensable, not that the ranker ignores it.

    Parameters
    ----------
    ranker, measure, convention
        See `permutation_importance`; p + 1 clones of the ranker are fitted.
    train, test : RankingData, data frames, or paths of files of rows
        Training rows, and rows of other queries for the measure. A warning names queries that are in both sets.

    Examples
    --------
    >>> from truerank.rankers.baselines import RidgeRanker
    >>> data = RankingData([[3.0, 1.0], [2.0, 5.0], [1.0, 4.0], [0.0, 2.0]], [3, 2, 1, 0])
    >>> removal_importance(RidgeRanker(), data, data, measure="AP(rel=2)").importances_mean.tolist()
    [0.25, 0.0]
    """
    train, test = rows_of(train, "train"), rows_of(test, "test")
    if not isinstance(train.X, np.ndarray) or not isinstance(test.X, np.ndarray):
        raise InvalidInputError("removal_importance requires dense rows. Call X.toarray()")
    if train.n_features != test.n_features:
        raise InvalidInputError(
            f"train has {train.n_features} features, but test has {test.n_features}. Select the same columns",
            argument="train",
        )
    if train.n_features < 2:
        raise InvalidInputError(
            "removal_importance requires at least two features, got one. Add a feature", code="one-feature"
        )
    pinned = measure_of(ranker, measure, convention)
    values, every = _signed_values(pinned, test), np.arange(train.n_features)
    fitted = fit_ranker(ranker, take_columns(train, every))
    overlap = training_queries(fitted, test)
    warn_of_training_queries(fitted, overlap)
    whole, losses = values(ranker_scores(fitted, take_columns(test, every))), np.empty((len(every), test.n_queries))
    for k in every:
        kept = np.delete(every, k)
        without = fit_ranker(ranker, take_columns(train, kept))
        losses[k] = differences_of(whole, values(ranker_scores(without, take_columns(test, kept))))
    losses = losses[:, np.isfinite(losses).all(axis=0)]
    p_adjusted = step_down_max_t(losses.T).p_adjusted if losses.size else np.ones(len(every))
    return _importance(losses[:, :, None], p_adjusted, np.full(len(every), np.nan), pinned.label, test, overlap)


def _signed_values(measure: Measure, data: RankingData) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from scores to values of the queries (m,), where higher is better."""
    judgements, sign = data.judgements(), 1.0 if measure.higher_is_better else -1.0
    return lambda scores: sign * measure.per_query(judgements, scores)


def _importance(
    losses: np.ndarray,
    p_adjusted: np.ndarray,
    floor: np.ndarray,
    label: str,
    data: RankingData,
    overlap: Overlap | None = None,
) -> Importance:
    """Return the result for losses (p, queries, repeats)."""
    p, n, repeats = losses.shape
    ends = np.full((p, 2), np.nan)
    for k, by_query in enumerate(losses.mean(axis=2)):
        if n:
            ends[k] = mean_interval(by_query)[1:]
        own = paired_t(by_query, np.zeros(n)).p if n > 1 and np.isfinite(ends[k]).all() else 1.0
        p_adjusted[k] = max(p_adjusted[k], own)
    means = losses.mean(axis=1) if n else np.zeros((p, repeats))
    names = shown_names(data.feature_names, data.n_features)
    return Importance(means, ends[:, 0], ends[:, 1], p_adjusted, floor, n, label, names, overlap)


def partial_dependence(
    ranker: Scorer, data: RowsLike, feature: int | str, *, points: int = 20
) -> tuple[np.ndarray, ...]:
    """Return the mean score of all rows if one feature has the same value in every row.

    Parameters
    ----------
    ranker : fitted ranker, pipeline, or anything with `predict(X)`
    data : RankingData, data frame, or path of a file of rows
    feature : int or str
        Column number from 0, or name of the column.
    points : int, default 20
        Number of values, which are quantiles of the observed values. Each value requires a prediction of all rows.

    Returns
    -------
    values, scores : float64 arrays (at most `points`,)

    Raises
    ------
    InvalidInputError
        For an unknown feature, a feature without values, and sparse rows.

    Examples
    --------
    >>> from truerank.rankers.baselines import SingleFeature
    >>> data = RankingData([[3.0, 1.0], [2.0, 5.0], [1.0, 4.0]], [2, 1, 0])
    >>> values, scores = partial_dependence(SingleFeature().fit(data), data, 0, points=3)
    >>> values.tolist(), scores.tolist()
    ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])

    References
    ----------
    J. H. Friedman, Greedy function approximation: a gradient boosting machine, Annals of Statistics 29, 2001,
    section 8.
    """
    points = check_positive_int(points, "points")
    data = rows_of(data, model=ranker)
    if not isinstance(data.X, np.ndarray):
        raise InvalidInputError("partial_dependence requires dense rows. Call X.toarray()")
    names = shown_names(data.feature_names, data.n_features)
    if isinstance(feature, str):
        if feature not in names:
            raise InvalidInputError(
                f"no feature is called {feature!r}. The first features are: {', '.join(names[:5])}", argument="feature"
            )
        feature = names.index(feature)
    if isinstance(feature, bool) or not isinstance(feature, int | np.integer) or not 0 <= feature < data.n_features:
        raise InvalidInputError(
            argument="feature", expected=f"a name, or a number in 0 … {data.n_features - 1}", value=feature
        )
    column = data.X[:, feature].astype(np.float64)
    column = column[np.isfinite(column)]
    if not len(column):
        raise InvalidInputError(
            f"feature {names[feature]!r} has no finite values. Choose another feature", argument="feature"
        )
    values = np.unique(np.quantile(column, np.linspace(0, 1, points)))
    changed = data.X.copy()
    scores = np.empty(len(values))
    for k, value in enumerate(values):
        changed[:, feature] = value
        scores[k] = float(np.mean(scores_of(ranker, changed, data)))
    return values, scores


def scores_of(ranker: Scorer, X: np.ndarray, data: RankingData) -> np.ndarray:
    """Return scores of rows in the grouped order of `data`, by a ranker of truerank, a pipeline or another model."""
    return ranker_scores(ranker, data.replaced(X=X, order=None))


def measure_of(ranker: Scorer, measure: MeasureLike | None, convention: str) -> Measure:
    """Return the given measure, else the ranker's own, else nDCG@10."""
    chosen = measure if measure is not None else getattr(ranker, "measure", None) or "nDCG@10"
    return parse_measure(chosen, convention=convention).check_mean()
