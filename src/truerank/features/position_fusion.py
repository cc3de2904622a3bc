"""Fusion by position: the probability of a relevant document at each rank of a run, learned from judged topics.

Each class learns a table for each run (`fit`) and scores documents of other topics with it (`predict`). A document
with a grade above 0 is relevant; an unjudged one is not. `rank_j` is the rank of document d in run j (1 is best,
ties by descending document id). Training uses the m topics that have a judged document.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from truerank.core.checks import check_positive_int, require_array, require_value
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.types import ArrayLike
from truerank.features.rules import min_max_scores
from truerank.features.run_pool import RunPool, judged_pool
from truerank.io.trec import Run
from truerank.measures import AP


class PositionFusion(BaseEstimator, ABC):
    """Base of the fusions by position: `Σ_j value(run j, rank_j)` over the runs that retrieved the document.

    `run_names_` are the names of the r runs, `table_` float64 (r, ·) the learned values of each class.
    """

    model_attributes: ClassVar[tuple[str, ...]] = ("run_names_", "table_")
    unretrieved: ClassVar[float] = 0.0  # value for a document that a run did not retrieve

    def fit(self, runs: object, qrels: object = None) -> Self:
        """Learn from the topics that the runs and the qrels share.

        Parameters
        ----------
        runs : mapping of name to run, sequence of runs, or RunPool with judgements
            A run is a `Run`, a path, or `{topic: {document: score}}`.
        qrels : Qrels, path, or `{topic: {document: grade}}`
            Only without a RunPool, which has its own.

        Raises
        ------
        InvalidInputError
            On no qrels, or no topic with a judged document.
        """
        self._columns()  # checks the parameters
        pool = judged_pool(runs, qrels)
        assert pool.grades is not None  # judged_pool has checked
        assert pool.unretrieved_offsets is not None
        judged = np.diff(pool.unretrieved_offsets) > 0
        judged[pool.query_of_row[~np.isnan(pool.grades)]] = True
        if not judged.any():
            raise InvalidInputError(f"none of the {pool.n_queries} topics has a judged document; expected at least one")
        self.table_ = self._learn(pool.take(np.flatnonzero(judged)))
        self.run_names_ = list(pool.names)
        return self

    def check_model(self) -> None:
        """Check a loaded model: a table of finite numbers with a row for each run."""
        require_value(self, "run_names_", str, -1)
        names = self.run_names_
        if not names or len(set(names)) < len(names):
            raise ModelFileError(f"{type(self).__name__}: run_names_ must be different names, got {', '.join(names)}")
        require_array(self, "table_", "float64", len(names), self._columns())

    def _columns(self) -> int | None:
        """Check the parameters; return the columns of `table_`, or None if they depend on the training lists."""
        return None

    def predict(self, runs: object, *, depth: int | None = 1000, tag: str = "fusion") -> Run:
        """Fuse runs over new topics; return the best `depth` documents of each topic (None: all).

        `runs` have the names of `fit`, in any order; other runs are left out.
        """
        check_is_fitted(self, "table_")
        pool = (runs if isinstance(runs, RunPool) else RunPool(runs)).select_names(self.run_names_)
        return pool.to_run(self.pool_scores(pool), depth=depth, tag=tag)

    def pool_scores(self, pool: RunPool) -> np.ndarray:
        """Scores (n,) of the documents of a pool with the runs of `fit` in their order."""
        check_is_fitted(self, "table_")
        return pool.add_up(self._values(pool) - self.unretrieved) + pool.n_runs * self.unretrieved

    @abstractmethod
    def _learn(self, pool: RunPool) -> np.ndarray:
        """Return `table_` for a pool of judged topics."""

    @abstractmethod
    def _values(self, pool: RunPool) -> np.ndarray:
        """Return the value of each entry (e,) of the pool's lists."""


class BayesFuse(PositionFusion):
    """Bayes-fuse: `Σ_j log(p_j / (1 - p_j))` over all runs (Aslam and Montague 2001, Models for metasearch, SIGIR).

    p_j is the run's mean precision in the group of rank_j. The groups of ranks end at 5, 10, 15, 20, 30, 100, 200,
    500 and 1000. The precision of a group counts its whole width, also for shorter lists. 0.001 replaces a p or 1 -
    p of 0, and is the p of a document that a run did not retrieve or has below rank 1000. `table_` holds the
    logarithms by group, and that of 0.001 last.
    """

    unretrieved = float(np.log(0.001 / 0.999))
    ENDS: ClassVar[np.ndarray] = np.array([5, 10, 15, 20, 30, 100, 200, 500, 1000])

    def _columns(self) -> int:
        return len(self.ENDS) + 1

    def _learn(self, pool: RunPool) -> np.ndarray:
        p = _precision_by_group(pool, self.ENDS)
        p[p == 0] = 0.001
        odds = np.log(p / np.where(p == 1, 0.001, 1 - p))
        return np.column_stack([odds, np.full(pool.n_runs, self.unretrieved)])

    def _values(self, pool: RunPool) -> np.ndarray:
        return self.table_[pool.run_of_entry, np.searchsorted(self.ENDS, pool.ranks)]


class MAPFuse(PositionFusion):
    """MAPFuse: `Σ_j MAP_j / rank_j`, MAP_j the run's mean average precision on the training topics, in `table_` (r, 1).

    A topic that the run lacks counts 0 (Lillis, Zhang, Toolan, Collier, Leonard, Dunnion 2010, Estimating
    probabilities for effective data fusion, SIGIR).
    """

    def _columns(self) -> int:
        return 1

    def _learn(self, pool: RunPool) -> np.ndarray:
        ap = AP(convention="trec")
        run = pool.run_of_entry
        lists = [(pool.rows[run == j], pool.scores[run == j]) for j in range(pool.n_runs)]
        return np.array([[np.nan_to_num(ap.per_query(pool.judgements(rows), scores)).mean()] for rows, scores in lists])

    def _values(self, pool: RunPool) -> np.ndarray:
        return self.table_[pool.run_of_entry, 0] / pool.ranks


class PosFuse(PositionFusion):
    """PosFuse: `Σ_j P_j(rank_j)`, P_j(k) the share of relevant documents at rank k of the training lists.

    Only lists with k documents count. Ranks below the longest training list have the value 0. `table_` (r, longest)
    holds P (Lillis et al. 2010, see `MAPFuse`).

    Examples
    --------
    >>> runs = {
    ...     "a": {"1": {"d1": 4.0, "d2": 2.0}, "2": {"d3": 1.0}},
    ...     "b": {"1": {"d2": 7.0}, "2": {"d3": 6.0, "d4": 5.0}},
    ... }
    >>> fusion = PosFuse().fit(runs, {"1": {"d2": 1}, "2": {"d3": 1}})
    >>> fusion.table_.tolist()
    [[0.5, 1.0], [1.0, 0.0]]
    >>> fused = fusion.predict({"a": {"3": {"x": 2.0, "y": 1.0}}, "b": {"3": {"y": 1.0, "z": 0.5}}})
    >>> fused.doc_ids.tolist(), fused.scores.tolist()
    (['y', 'x', 'z'], [2.0, 0.5, 0.0])
    """

    def _learn(self, pool: RunPool) -> np.ndarray:
        hits = _sum_by_run(pool, pool.ranks - 1, pool.longest)
        place = pool.run_of_entry * pool.longest + pool.ranks - 1
        lists = np.bincount(place, minlength=hits.size).reshape(hits.shape)
        return hits / np.maximum(lists, 1)

    def _values(self, pool: RunPool) -> np.ndarray:
        chances = np.pad(self.table_, ((0, 0), (0, 1)))
        return chances[pool.run_of_entry, np.minimum(pool.ranks - 1, self.table_.shape[1])]


class SlideFuse(PosFuse):
    """SlideFuse: `Σ_j` the mean of PosFuse's P_j over the ranks `rank_j - width` to `rank_j + width`.

    The window ends with the fused list. Ranks below the longest training list count as 0 in the mean. `table_` is that
    of PosFuse.

    Parameters
    ----------
    width : int, default 5
        Ranks on either side; 0 gives PosFuse.

    References
    ----------
    Lillis, Toolan, Collier, Dunnion: Extending probabilistic data fusion using sliding windows. ECIR 2008.
    """

    def __init__(self, width: int = 5) -> None:
        self.width = width

    def _columns(self) -> None:
        check_positive_int(self.width, "width", minimum=0)

    def _values(self, pool: RunPool) -> np.ndarray:
        sums = np.cumsum(np.pad(self.table_, ((0, 0), (1, 0))), axis=1)
        longest, run, ranks = self.table_.shape[1], pool.run_of_entry, pool.ranks
        before = np.maximum(ranks - 1 - self.width, 0)
        last = np.minimum(ranks + self.width, pool.spread(pool.list_sizes))
        total = sums[run, np.minimum(last, longest)] - sums[run, np.minimum(before, longest)]
        return total / (last - before)


class ProbFuse(PositionFusion):
    """ProbFuse: `Σ_j P_j(k) / k`, k the segment of rank_j in the run's list, which has segments of equal length.

    A list of n documents has segments of `⌈n / n_segments⌉` documents; the last ones are shorter or empty. `P_j(k)`, in
    `table_` (r, n_segments), is the share of relevant documents in segment k, as a mean over the training topics.

    Parameters
    ----------
    n_segments : int, default 25

    References
    ----------
    Lillis, Toolan, Collier, Dunnion: ProbFuse: a probabilistic approach to data fusion. SIGIR 2006.
    """

    def __init__(self, n_segments: int = 25) -> None:
        self.n_segments = n_segments

    def _columns(self) -> int:
        return check_positive_int(self.n_segments, "n_segments")

    def _learn(self, pool: RunPool) -> np.ndarray:
        segment, size = _segments(pool, self.n_segments)
        length = np.minimum(size, pool.spread(pool.list_sizes) - segment * size)
        return _sum_by_run(pool, segment, self.n_segments, 1.0 / length) / pool.n_queries

    def _values(self, pool: RunPool) -> np.ndarray:
        segment, _ = _segments(pool, self.table_.shape[1])
        return self.table_[pool.run_of_entry, segment] / (segment + 1)


class SegFuse(PositionFusion):
    """SegFuse: `Σ_j P_j(k) (1 + s_j)`, k the segment of rank_j, s_j the score after min-max scaling within the list.

    Segment k ends at rank `10 · 2^(k - 1) - 5`, as in ranx: 5, 15, 35, … 5115. Lower ranks count 0. `P_j(k)`, in
    `table_` (r, 10), is the number of relevant documents in segment k over its width, as a mean over the training
    topics (Shokouhi 2007, Segmentation of search engine results for effective data-fusion, ECIR).
    """

    ENDS: ClassVar[np.ndarray] = 10 * 2 ** np.arange(10) - 5

    def _columns(self) -> int:
        return len(self.ENDS)

    def _learn(self, pool: RunPool) -> np.ndarray:
        return _precision_by_group(pool, self.ENDS)

    def _values(self, pool: RunPool) -> np.ndarray:
        chances = np.pad(self.table_, ((0, 0), (0, 1)))
        chance = chances[pool.run_of_entry, np.searchsorted(self.ENDS, pool.ranks)]
        return chance * (1.0 + min_max_scores(pool))


def _sum_by_run(pool: RunPool, group: np.ndarray, n_groups: int, values: ArrayLike = 1.0) -> np.ndarray:
    """Return the sum of the relevant entries' values by run and group of ranks, (r, n_groups)."""
    assert pool.grades is not None  # fit has checked
    relevant = (pool.grades[pool.rows] > 0) * values
    place = pool.run_of_entry * n_groups + group
    return np.bincount(place, weights=relevant, minlength=pool.n_runs * n_groups).reshape(pool.n_runs, n_groups)


def _precision_by_group(pool: RunPool, ends: np.ndarray) -> np.ndarray:
    """Return the mean over the topics of the relevant share of each group of ranks, (r, groups)."""
    n = len(ends)
    hits = _sum_by_run(pool, np.searchsorted(ends, pool.ranks), n + 1)[:, :n]
    return hits / (pool.n_queries * np.diff(ends, prepend=0))


def _segments(pool: RunPool, n_segments: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the segment of each entry (from 0), and the length of the segments of its list."""
    size = pool.spread(-(-pool.list_sizes // n_segments))
    return (pool.ranks - 1) // size, size
