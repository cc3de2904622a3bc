"""Choose the leaves of boosted trees by cross-validation over the training queries, for `leaves="auto"`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from truerank.core.checks import is_sparse
from truerank.core.errors import InvalidInputError
from truerank.core.rounds import unheard
from truerank.data.ranking_data import RankingData
from truerank.matrices.content import order_by_content
from truerank.trees.leaves.kinds import KINDS

_FOLDS = 3
_FEWEST = 10  # queries that weigh something; of fewer the first kind is taken untried
_ENOUGH = 300  # queries left out
_CLEAR, _HOPE = 2.0, 1.0  # standard errors, at the end and in prospect
_MOST_ROWS = 100_000  # that are copied for trials
_TREES, _SHARE = 20, 5  # of a trial: a fifth of the trees, twenty at least
TRIED = ("fuzzy", "constant", "polynomial")


def choose_leaves(ranker: Any, read: Callable[[], RankingData]) -> tuple[str, dict[str, float]]:
    """Return the kind of leaves for some queries, and the mean validation measure of each kind.

    Each trial fits a fifth of the trees, at least twenty, to two thirds of the queries of positive weight (in 100,000
    rows at most), and measures the other third; trials end after 300 left-out queries. The result is the best kind
    whose weighted mean is above that of "fuzzy" by more than two standard errors of the difference by query, else
    "fuzzy". A kind that cannot be fitted is dropped, as is a kind whose difference, if it stays the same, will be at
    most one standard error after all trials. With fewer than ten queries, or a function as objective, the result is
    "fuzzy" without trials. `read` returns the queries.
    """
    first, *others = TRIED
    if not isinstance(ranker.objective, str):
        return first, {}
    data = read()
    if np.count_nonzero(data.weight_by_query) < _FEWEST:
        return first, {}
    if is_sparse(data.X):
        others = [kind for kind in others if not KINDS[kind].needs_scaling]
    if ranker.monotone is not None:
        others = [kind for kind in others if KINDS[kind].keeps_monotone]
    measure = ranker._measure("validation_measure").tie_averaged()
    sign = 1.0 if getattr(measure, "higher_is_better", True) else -1.0
    settings = _trial_settings(ranker)
    tried, weights = [first, *others], []
    totals = dict.fromkeys(tried, 0.0)
    by_query: dict[str, list[np.ndarray]] = {kind: [] for kind in tried}
    means: dict[str, float] = {}
    for train, valid in _divisions(data):
        judgements = valid.judgements()
        weights.append(valid.weight_by_query)
        for kind in list(tried):
            try:
                with unheard(f"choosing leaves, trial of {kind}"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of a small part; the whole fit warns itself
                    trial = type(ranker)()
                    trial.__dict__.update(settings, leaves=kind)
                    scores = _scores_beside(trial, train, valid)
            except InvalidInputError:  # diverges from the first trees on
                tried.remove(kind)
                means.pop(kind, None)
                continue
            measured = measure.per_query(judgements, scores)
            totals[kind] += sign * measure.aggregate(measured, valid.query_weight) * float(weights[-1].sum())
            by_query[kind].append(sign * measured)
            means[kind] = sign * totals[kind] / sum(float(own.sum()) for own in weights)
        weight = np.concatenate(weights)
        values = {kind: np.concatenate(by_query[kind]) for kind in tried}
        ahead = {kind: _standard_errors(values[kind] - values[first], weight) for kind in tried if first in tried}
        # With k times as many queries, the same difference is √k times as many standard errors.
        prospect = min(_FOLDS / len(weights), max(1.0, _ENOUGH / len(weight))) ** 0.5
        tried = [kind for kind in tried if kind == first or ahead.get(kind, np.inf) * prospect > _HOPE]
        if len(tried) < 2 or len(weight) >= _ENOUGH:
            break
    better = [kind for kind in tried if ahead.get(kind, np.inf) > _CLEAR]
    return max(better, key=totals.__getitem__, default=first), means


def _scores_beside(trial: Any, train: RankingData, valid: RankingData) -> np.ndarray:
    """Fit to `train` and return the scores of `valid` from the fit, so that no kernel of prediction is compiled."""
    beside = valid.in_parts(trial.n_jobs)
    trial._whole_fit(train, None, None, None, None, None, {}, {"beside": beside})
    if beside.alone is None or trial.n_iter_ < trial.n_estimators:  # trees were dropped
        return np.asarray(trial.predict(valid))
    return np.asarray(beside.alone.memory["trees"].scores)


def _trial_settings(ranker: Any) -> dict[str, Any]:
    """Return the ranker's parameters, with the number of trees of a trial."""
    n_estimators = int(ranker.n_estimators)
    trees = min(n_estimators, max(_TREES, n_estimators // _SHARE))
    return ranker.get_params(deep=False) | {
        "warm_start": False, "patience": None, "verbose": 0, "random_state": ranker.seed_, "callbacks": None,
        "n_estimators": trees, "learning_rate": ranker._rates(n_estimators)[:trees],
    }  # fmt: skip


def queries_for_trials(queries: np.ndarray, sizes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the first queries of positive weight up to 100,000 rows; `sizes` and `weight` are those of all queries."""
    queries = queries[weight[queries] > 0]
    rows = np.cumsum(sizes[queries])
    return queries[: max(_FEWEST, int(np.searchsorted(rows, _MOST_ROWS, side="right")))]


def _divisions(data: RankingData) -> Iterator[tuple[RankingData, RankingData]]:
    """Yield the training and the validation queries of three folds of the queries for trials."""
    assert data.y is not None
    _, queries = order_by_content(data.X, data.y, data.offsets, data.query_weight)
    queries = queries_for_trials(queries, data.group_sizes, data.weight_by_query)
    fold = np.full(data.n_queries, -1)
    fold[queries] = np.arange(len(queries)) % _FOLDS
    for k in range(_FOLDS):
        yield data.take_queries((fold >= 0) & (fold != k)), data.take_queries(fold == k)


def _standard_errors(differences: np.ndarray, weight: np.ndarray) -> float:
    """Return how many standard errors the weighted mean of the differences by query is above 0."""
    known = ~np.isnan(differences) & (weight > 0)
    differences, weight = differences[known], weight[known] / max(float(weight.max()), 1e-300)
    effective = float(weight.sum()) ** 2 / max(float((weight**2).sum()), 1e-300)  # number of queries of equal weight
    if effective <= 1.0:
        return 0.0
    mean = float(np.average(differences, weights=weight))
    error = float(np.sqrt(np.average((differences - mean) ** 2, weights=weight) / (effective - 1.0)))
    return mean / error if error > 0.0 else float(np.sign(mean)) * np.inf if mean else 0.0
