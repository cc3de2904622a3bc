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

from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.schema import check_fields
from truerank.features.run_pool import RunPool, judged_pool
from truerank.io.trec import Run
from truerank.measures import AP


class PositionFusion(BaseEstimator, ABC):
    """Base of the fusions by position: `Σ_j value(run j, rank_j)` over the runs that retrieved the document.

    `run_names_` are the names of the r runs, `table_` float64 (r, ·) the learned values of each class.
    """

    model_attributes: ClassVar[dict[str, str]] = {"run_names_": "list[runs] of str", "table_": "float64[runs, ]"}
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
        pool = judged_pool(runs, qrels)
        assert pool.grades is not None  # judged_pool has checked
        assert pool.unretrieved_offsets is not None
        judged = np.diff(pool.unretrieved_offsets) > 0
        judged[pool.query_of_row[~np.isnan(pool.grades)]] = True
        if not judged.any():
            raise InvalidInputError(
                f"none of the {pool.n_queries} topics has a judged document; expected at least one",
                code="nothing-judged",
            )
        self.table_ = self._learn(pool.take(np.flatnonzero(judged)))
        self.run_names_ = list(pool.names)
        return self

    def check_model(self) -> None:
        """Check a loaded model: different names, and the columns of the table."""
        names = self.run_names_
        if not names or len(set(names)) < len(names):
            raise ModelFileError(f"{type(self).__name__}: run_names_ must be different names, got {', '.join(names)}")
        check_fields(self, {"table_": f"float64[{len(names)}, {self._columns()}]"})

    @abstractmethod
    def _columns(self) -> int:
        """Return the columns of `table_`."""

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


def _precision_by_group(pool: RunPool, ends: np.ndarray) -> np.ndarray:
    """Return the mean over the topics of the relevant share of each group of ranks, (r, groups)."""
    assert pool.grades is not None  # fit has checked
    n = len(ends)
    place = pool.run_of_entry * (n + 1) + np.searchsorted(ends, pool.ranks)
    hits = np.bincount(place, weights=pool.grades[pool.rows] > 0, minlength=pool.n_runs * (n + 1))
    return hits.reshape(pool.n_runs, n + 1)[:, :n] / (pool.n_queries * np.diff(ends, prepend=0))
