"""Which leaves boosted trees have where the caller leaves it open: cross-validation over the training queries."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.matrices.content import order_by_content

_FOLDS = 3
_FEWEST = 10  # queries; of fewer the first kind is taken untried
KINDS = ("fuzzy", "constant", "polynomial")


def choose_leaves(ranker: Any, data: RankingData, measure: Any) -> tuple[str, dict[str, float]]:
    """The kind of leaves for these queries, and the mean of `measure` that each kind has on queries left out.

    Every query is left out once, of three folds in an order by content, so that the order of the file has no say;
    means are by `query_weight`. Another kind takes the place of "fuzzy" where its mean is better by more than twice the
    standard error of the difference by query, of several such kinds the best: smaller gains of a choice are mostly
    luck. Fewer than ten queries have fuzzy leaves untried. Kinds that cannot be fitted are left out: polynomial ones to
    sparse rows or under monotone constraints, and one whose training diverges. Nine fits of two thirds of the queries.
    """
    if data.n_queries < _FEWEST:
        return KINDS[0], {}
    assert data.y is not None
    _, queries = order_by_content(data.X, data.y, data.offsets, data.query_weight)
    fold = np.empty(data.n_queries, dtype=np.int64)
    fold[queries] = np.arange(data.n_queries) % _FOLDS
    parts = [(data.take_queries(fold != k), data.take_queries(fold == k)) for k in range(_FOLDS)]
    plain = hasattr(data.X, "tocsr") or ranker.monotone is not None
    means: dict[str, float] = {}
    by_query: dict[str, np.ndarray] = {}
    settings = ranker.get_params(deep=False) | {
        "warm_start": False, "patience": None, "verbose": 0, "random_state": ranker.seed_, "callbacks": None
    }  # fmt: skip
    for kind in KINDS[:2] if plain else KINDS:
        total, values = 0.0, []
        try:
            for train, valid in parts:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of a small part; the whole fit warns itself
                    fitted = type(ranker)(**settings | {"leaves": kind}).fit(train)
                judgements, scores = valid.judgements(), fitted.predict(valid)
                total += measure.mean(judgements, scores, valid.query_weight) * float(valid.weight_by_query.sum())
                values.append(measure.per_query(judgements, scores))
        except InvalidInputError:  # diverges from the first trees on
            continue
        means[kind], by_query[kind] = total / float(data.weight_by_query.sum()), np.concatenate(values)
    sign = 1.0 if getattr(measure, "higher_is_better", True) else -1.0
    first = KINDS[0]
    weight = np.concatenate([valid.weight_by_query for _, valid in parts])
    better = [
        kind for kind in means
        if first not in means or _clearly_above(sign * (by_query[kind] - by_query[first]), weight)
    ]  # fmt: skip
    return max(better, key=lambda kind: sign * means[kind], default=first), means


def _clearly_above(differences: np.ndarray, weight: np.ndarray) -> bool:
    """Whether the weighted mean of the differences by query is more than two standard errors above 0."""
    known = ~np.isnan(differences) & (weight > 0)
    differences, weight = differences[known], weight[known] / max(float(weight.max()), 1e-300)
    effective = float(weight.sum()) ** 2 / max(float((weight**2).sum()), 1e-300)  # number of queries of equal weight
    if effective <= 1.0:
        return False
    mean = float(np.average(differences, weights=weight))
    variance = float(np.average((differences - mean) ** 2, weights=weight)) / (effective - 1.0)
    return mean > 2.0 * float(np.sqrt(variance))
