"""Measure how a ranker's quality depends on the number of training queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.printing import counted, table
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import MeasureLike, RandomState, Scorer
from truerank.data.ranking_data import RankingData, check_ranking_data
from truerank.inspection.importance import measure_of
from truerank.rankers.pipeline import fit_ranker, ranker_scores
from truerank.significance.intervals import mean_interval


@dataclass(frozen=True)
class LearningCurve:
    """A measure on held-out queries by the number of training queries (s sizes)."""

    train_sizes: np.ndarray  # int64 (s,)
    train_scores: np.ndarray = field(repr=False)  # (s, draws): mean of the measure on the training queries
    test_scores: np.ndarray = field(repr=False)  # and on the test queries
    low: np.ndarray = field(repr=False)  # of Student's 95 % interval over test queries of the mean over the draws
    high: np.ndarray = field(repr=False)
    measure: str  # with its convention
    n_test: int = 0  # number of test queries

    def __str__(self) -> str:
        columns = (self.train_sizes, self.train_scores.mean(axis=1), self.test_scores.mean(axis=1), self.low, self.high)
        rows = [list(row) for row in zip(*(column.tolist() for column in columns))]
        return (
            table(rows, ["training queries", f"{self.measure} train", "test", "95 % from", "to"])
            + f"\n{self.measure}; means over {counted(self.train_scores.shape[1], 'draw')} "
            f"of training queries, measured on {counted(self.n_test, 'held-out query')}. Each interval (Student's "
            "t, over held-out queries) is for one size; no test is made"
        )


def learning_curve(
    ranker: Scorer,
    train: RankingData,
    test: RankingData,
    *,
    train_sizes: Sequence[int] | None = None,
    draws: int = 5,
    measure: MeasureLike | None = None,
    convention: str = "ranklib",
    random_state: RandomState = None,
) -> LearningCurve:
    """Measure how held-out quality grows with the number of training queries.

    Parameters
    ----------
    ranker : ranker
        Cloned, not changed.
    train, test : RankingData
        Queries to draw training queries from, and held-out queries.
    train_sizes : sequence of int, optional
        Numbers of training queries. The default is five sizes on a logarithmic scale, from 1/10 (at least 2) to all.
    draws : int, default 5
        Random draws of the training queries at each size, one fit each. Larger draws contain smaller draws.
    measure, convention
        Default: the ranker's `measure`, else nDCG@10.
    """
    check_ranking_data(train, "train")
    check_ranking_data(test, "test")
    m = train.n_queries
    if train_sizes is None:
        train_sizes = np.unique(np.geomspace(min(max(2, m // 10), m), m, 5).round().astype(int)).tolist()
    sizes = np.asarray(train_sizes)
    if sizes.ndim != 1 or not len(sizes) or sizes.dtype.kind not in "iu" or sizes.min() < 1 or sizes.max() > m:
        raise InvalidInputError(f"train_sizes must be numbers of queries from 1 to {m}, got {list(train_sizes)}")
    draws = check_positive_int(draws, "draws")
    pinned, seed = measure_of(ranker, measure, convention), seed_of(random_state)
    shape = (len(sizes), draws)
    train_scores, test_scores = np.empty(shape), np.empty(shape)
    by_query = np.zeros((len(sizes), test.n_queries))
    for draw in range(draws):
        order = stream(seed, "learning curve", draw).permutation(m)
        for k, size in enumerate(sizes):
            if size == m and draw:  # every draw of all queries is the same
                train_scores[k, draw], test_scores[k, draw] = train_scores[k, 0], test_scores[k, 0]
                by_query[k] *= (draw + 1) / draw
                continue
            part = train.take_queries(np.sort(order[:size]))
            fitted = fit_ranker(ranker, part)
            train_scores[k, draw] = pinned.mean(part.judgements(), ranker_scores(fitted, part))
            values = pinned.per_query(test.judgements(), ranker_scores(fitted, test))
            test_scores[k, draw] = np.nanmean(values)
            by_query[k] += values / draws
    intervals = [mean_interval(values) for values in by_query]
    low, high = np.array([i.low for i in intervals]), np.array([i.high for i in intervals])
    return LearningCurve(sizes, train_scores, test_scores, low, high, pinned.label, test.n_queries)
