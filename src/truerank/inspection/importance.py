"""Which features a ranker relies on: what a measure loses when a feature is shuffled within queries, or gone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.printing import Tabular, styled_table
from truerank.core.random_streams import seed_of, stream
from truerank.data.columns import shown_names, take_columns
from truerank.data.ranking_data import RankingData
from truerank.measures import Measure, parse_measure
from truerank.rankers.pipeline import fit_ranker, ranker_scores
from truerank.significance.intervals import bootstrap_interval


@dataclass(frozen=True)
class Importance(Tabular):
    """What a measure loses without each feature.

    Attributes
    ----------
    importances : float64 array (p, repeats)
        Measure of the data as they are, less the same after one shuffle; positive where the feature helps.
    low, high : float64 arrays (p,)
        95 % bootstrap interval, over queries, of the mean over the repeats.
    measure : str
    feature_names : list of str
    """

    importances: np.ndarray = field(repr=False)
    low: np.ndarray = field(repr=False)
    high: np.ndarray = field(repr=False)
    measure: str
    feature_names: list[str] = field(repr=False)

    @property
    def importances_mean(self) -> np.ndarray:
        """Mean over the repeats (p,), as scikit-learn calls it."""
        return self.importances.mean(axis=1)

    @property
    def importances_std(self) -> np.ndarray:
        """Standard deviation over the repeats (p,)."""
        return self.importances.std(axis=1)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.importances_mean.astype(dtype or np.float64)

    def to_rows(self) -> list[list[Any]]:
        """Name, mean, low, high of each feature, the most important first."""
        mean = self.importances_mean
        order = np.argsort(-mean, kind="stable")
        return [[self.feature_names[k], float(mean[k]), float(self.low[k]), float(self.high[k])] for k in order]

    def _table(self, style: str) -> str:
        header = ["feature", f"loss of {self.measure}", "95% from", "to"]
        return styled_table(self.to_rows(), header, style)


def permutation_importance(
    ranker: Any,
    data: RankingData,
    *,
    measure: Any = None,
    convention: str = "ranklib",
    repeats: int = 5,
    random_state: Any = None,
) -> Importance:
    """Loss of a measure when one feature's values are shuffled among the documents of each query.

    Shuffling within queries keeps what a feature says about the query and destroys only what it says about its
    documents, which is all that can change a ranking.

    Parameters
    ----------
    ranker : fitted ranker, pipeline, or anything with `predict(X)`
    data : RankingData
        Judged rows, best of queries that the ranker was not trained on.
    measure, convention
        What is measured; default the ranker's `measure`, else nDCG@10. For a measure where lower is better the sign is
        turned, so that a helpful feature is positive all the same.
    repeats : int, default 5
        Shuffles of each feature.
    random_state : None, int or NumPy generator

    Returns
    -------
    Importance

    Notes
    -----
    `p * repeats + 1` predictions.

    Examples
    --------
    >>> from truerank.rankers.baselines import RidgeRanker
    >>> data = RankingData([[3.0, 1.0], [2.0, 5.0], [1.0, 4.0], [0.0, 2.0]], [3, 2, 1, 0])
    >>> found = permutation_importance(RidgeRanker().fit(data), data, measure="AP(rel=2)", random_state=0)
    >>> bool(found.importances_mean[0] > found.importances_mean[1] == 0)
    True
    """
    repeats = check_positive_int(repeats, "repeats")
    if not isinstance(data.X, np.ndarray):
        raise InvalidInputError("permutation_importance needs dense rows; call X.toarray()")
    seed = seed_of(random_state)
    pinned = measure_of(ranker, measure, convention)
    judgements, query = data.judgements(), data.query_index
    sign = 1.0 if getattr(pinned, "higher_is_better", True) else -1.0

    def values(X: np.ndarray) -> np.ndarray:
        return sign * pinned.per_query(judgements, scores_of(ranker, X, data))

    whole = values(data.X)
    changed = data.X.copy()
    p = data.n_features
    losses, low, high = np.zeros((p, repeats)), np.zeros(p), np.zeros(p)
    for k in range(p):
        by_query = np.zeros(data.n_queries)
        for repeat in range(repeats):
            keys = stream(seed, "importance", k, repeat).random(data.n_rows)
            changed[:, k] = data.X[np.lexsort((keys, query)), k]
            loss = whole - values(changed)
            by_query += loss / repeats
            losses[k, repeat] = np.nanmean(loss) if np.isfinite(loss).any() else 0.0
        changed[:, k] = data.X[:, k]
        if np.isfinite(by_query).any():
            _, low[k], high[k] = bootstrap_interval(by_query, n_resamples=1_000, random_state=seed)
    return Importance(losses, low, high, pinned.label, shown_names(data.feature_names, data.n_features))


def removal_importance(
    ranker: Any, train: RankingData, test: RankingData, *, measure: Any = None, convention: str = "ranklib"
) -> Importance:
    """What each feature costs the measure when it is gone: the ranker is trained anew without it.

    Unlike a shuffle this lets other features take its place: near 0 says that a feature can be spared, not that the
    ranker does not look at it.

    Parameters
    ----------
    ranker : ranker
        Its settings; it is cloned and not changed.
    train, test : RankingData
        Rows to learn from, and rows of other queries to measure.
    measure, convention
        As in `permutation_importance`.

    Returns
    -------
    Importance
        With one column of `importances`, and intervals over the test queries.

    Notes
    -----
    p + 1 fits.

    Examples
    --------
    >>> from truerank.rankers.baselines import RidgeRanker
    >>> data = RankingData([[3.0, 1.0], [2.0, 5.0], [1.0, 4.0], [0.0, 2.0]], [3, 2, 1, 0])
    >>> removal_importance(RidgeRanker(), data, data, measure="AP(rel=2)").importances_mean.tolist()
    [0.25, 0.0]
    """
    if not isinstance(train.X, np.ndarray) or not isinstance(test.X, np.ndarray):
        raise InvalidInputError("removal_importance needs dense rows; call X.toarray()")
    if train.n_features != test.n_features:
        raise InvalidInputError(f"train has {train.n_features} features and test {test.n_features}")
    if train.n_features < 2:
        raise InvalidInputError("removal_importance needs two features or more: nothing is left without the only one")
    pinned, judgements = measure_of(ranker, measure, convention), test.judgements()
    sign = 1.0 if getattr(pinned, "higher_is_better", True) else -1.0

    def values(kept: np.ndarray) -> np.ndarray:
        fitted = fit_ranker(ranker, take_columns(train, kept))
        return sign * pinned.per_query(judgements, ranker_scores(fitted, take_columns(test, kept)))

    every = np.arange(train.n_features)
    whole = values(every)
    losses, low, high = np.zeros((len(every), 1)), np.zeros(len(every)), np.zeros(len(every))
    for k in every:
        loss = whole - values(np.delete(every, k))
        if np.isfinite(loss).any():
            losses[k, 0], low[k], high[k] = bootstrap_interval(loss, n_resamples=1_000)
    return Importance(losses, low, high, pinned.label, shown_names(test.feature_names, test.n_features))


def partial_dependence(ranker: Any, data: RankingData, feature: Any, *, points: int = 20) -> tuple[np.ndarray, ...]:
    """Mean score of all rows when one feature has the same value in every row.

    Parameters
    ----------
    ranker : fitted ranker, pipeline, or anything with `predict(X)`
    data : RankingData
    feature : int or str
        Column from 0, or its name.
    points : int, default 20
        Values tried: quantiles of the observed ones.

    Returns
    -------
    values, scores : float64 arrays (at most `points`,)

    Raises
    ------
    InvalidInputError
        On a feature that there is not, one without values, and sparse rows.

    Notes
    -----
    One prediction of all rows a value.

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
    if not isinstance(data.X, np.ndarray):
        raise InvalidInputError("partial_dependence needs dense rows; call X.toarray()")
    names = shown_names(data.feature_names, data.n_features)
    if isinstance(feature, str):
        if feature not in names:
            raise InvalidInputError(f"no feature is called {feature!r}; the first are: {', '.join(names[:5])}")
        feature = names.index(feature)
    if isinstance(feature, bool) or not isinstance(feature, int | np.integer) or not 0 <= feature < data.n_features:
        raise InvalidInputError(f"feature must be a name, or a number in 0 … {data.n_features - 1}, got {feature!r}")
    column = data.X[:, feature].astype(np.float64)
    column = column[np.isfinite(column)]
    if not len(column):
        raise InvalidInputError(f"feature {names[feature]} has no values")
    values = np.unique(np.quantile(column, np.linspace(0, 1, points)))
    changed = data.X.copy()
    scores = np.empty(len(values))
    for k, value in enumerate(values):
        changed[:, feature] = value
        scores[k] = float(np.mean(scores_of(ranker, changed, data)))
    return values, scores


def scores_of(ranker: Any, X: np.ndarray, data: RankingData) -> np.ndarray:
    """Scores of rows in the grouped order of `data`, from a ranker of ours, a pipeline or another library's model."""
    return ranker_scores(ranker, data.replaced(X=X, order=None))


def measure_of(ranker: Any, measure: Any, convention: str) -> Measure:
    """The measure asked for, else the ranker's own, else nDCG@10."""
    chosen = measure if measure is not None else getattr(ranker, "measure", None) or "nDCG@10"
    return parse_measure(chosen, convention=convention).check_mean()
