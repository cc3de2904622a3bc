"""RunFusion: learn to fuse the runs of several systems from judged topics."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError, warn
from truerank.core.fitting import fits_whole
from truerank.core.parameters import parameters
from truerank.core.schema import check_fields
from truerank.core.threads import query_blocks
from truerank.data.grouping import offsets_of
from truerank.data.ranking_data import RankingData
from truerank.features.run_features import (
    EngineScores,
    MinMax,
    Percentile,
    ReciprocalRank,
    Score,
    ScoreBins,
    ZScore,
    parse_features,
)
from truerank.features.run_pool import RunPool, judged_pool
from truerank.io.trec import Run
from truerank.rankers.linear import LinearRanker

FEATURES = "min-max + reciprocal-rank"
DEPTH = 200
_BLOCK_VALUES = 1 << 24  # numbers of a block of feature rows: 64 MB as float32


@parameters
class RunFusion(BaseEstimator):
    """Fuse runs with a ranker that learns from judged topics how much to trust each run.

    A row is a document that some run retrieved for a topic, and its columns are features of the runs
    (`truerank.features.run_features`). Use it instead of reciprocal rank fusion if some topics are judged;
    `cross_validate_fusion` tests whether they are enough.

    Parameters
    ----------
    ranker : Ranker, optional
        Ranker to clone. The default is `ListNet()`, or `NonnegativeListNet()` with `nonnegative`.
    features : str, default "min-max + reciprocal-rank"
        The default with `nonnegative` is "min-max", which search engines compute.
    depth : int or None, default 200
        Documents among the first `depth` of some run are training rows; None means all. Features and fused documents do
        not depend on it.
    nonnegative : bool, default False
        Learn one weight of at least 0 for each run, as search engines need. The weights sum to 1. Features must be one
        of min-max, score, z-score, percentile, reciprocal-rank and engine-scores.

    Attributes
    ----------
    run_names_ : list of str
        Names of the runs, in the order of the columns.
    ranker_ : Ranker
        The fitted ranker; `feature_names_in_` names its columns.
    edges_ : list of float64 arrays
        Thresholds of score bins.
    n_queries_in_ : int
        Number of judged topics in `fit`.

    Raises
    ------
    InvalidInputError
        If runs and qrels share no topic, no training row is relevant, features do not suit `nonnegative`, or a run of
        `fit` is missing in `predict`.

    Notes
    -----
    Unjudged documents count as not relevant and negative grades as 0. If a run lacks a topic, its columns are 0. The
    order of lines or topics in files has no effect. The cost is that of the ranker, plus rows × columns × 4 bytes of
    memory.

    References
    ----------
    Yue, Finley, Radlinski, Joachims (2007), section 4.2: submitted runs as base functions.

    Examples
    --------
    >>> runs = {
    ...     "good": {"1": {"a": 3.0, "b": 2.0, "c": 1.0}, "2": {"d": 9.0, "e": 1.0}},
    ...     "bad": {"1": {"c": 3.0, "b": 2.0, "a": 1.0}, "2": {"e": 9.0, "d": 1.0}},
    ... }
    >>> import io
    >>> from truerank import read_qrels
    >>> fusion = RunFusion().fit(runs, read_qrels(io.StringIO("1 0 a 1\\n2 0 d 1\\n")))
    >>> fused = fusion.predict({"good": {"7": {"x": 2.0, "y": 1.0}}, "bad": {"7": {"y": 5.0, "x": 4.0}}})
    >>> fused.doc_ids.tolist()
    ['x', 'y']
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "run_names_": "list[] of str",
        "ranker_": "Ranker",
        "edges_": "list[] of float[]??",
        "n_queries_in_": "int in [0, inf]??",
    }

    ranker: Any = None
    _: KW_ONLY
    features: str | None = None
    depth: int | None = DEPTH
    nonnegative: bool = False

    @fits_whole
    def fit(self, runs: Any, qrels: Any = None) -> RunFusion:
        """Learn from the topics that both the runs and the qrels have.

        Parameters
        ----------
        runs : mapping of name to run, sequence of runs, or RunPool with judgements
            A run is a `Run`, a path, or `{topic: {document: score}}`.
        qrels : Qrels, path, or `{topic: {document: grade}}`
            Omit it with a RunPool, which has judgements.
        """
        pool = judged_pool(runs, qrels)
        features = self._features()
        if self.depth is not None:
            check_positive_int(self.depth, "depth")
        assert pool.grades is not None  # judged_pool has checked
        grades = np.maximum(np.nan_to_num(pool.grades), 0.0)
        rows = np.flatnonzero(pool.within_depth(self.depth))
        if not (grades[rows] > 0).any():
            raise InvalidInputError(
                f"none of the {len(rows)} documents that the runs have in their first {self.depth} ranks is relevant. "
                "Check that runs and qrels use the same document ids, or raise depth",
                code="nothing-relevant",
            )
        self._prepare(pool)
        edges = features.fit(pool, rows)
        ranker = self._new_ranker()
        binned = _as_binned(features, ranker)
        X = self._matrix(features, pool, rows, edges, binned)
        sizes = np.bincount(pool.query_of_row[rows], minlength=pool.n_queries)
        filled = np.flatnonzero(sizes)
        data = RankingData.from_grouped(
            X, grades[rows], offsets_of(sizes[filled]), pool.query_ids[filled],
            doc_ids=pool.doc_ids[rows], feature_names=self._names(features, pool, edges, binned),
        )  # fmt: skip
        ranker.fit(data)
        if self.nonnegative:
            total = float(ranker.coef_.sum())
            if total > 0:
                ranker.coef_ = ranker.coef_ / total
            else:
                warn("no run received a weight above 0. All runs keep equal weights")
                ranker.coef_ = np.full(pool.n_runs, 1.0 / pool.n_runs)
        self.ranker_, self.edges_, self.run_names_ = ranker, edges, list(pool.names)
        self.n_queries_in_ = pool.n_queries
        return self

    def predict(self, runs: Any, *, depth: int | None = 1000, tag: str = "fusion") -> Run:
        """Fuse runs of new topics into one run with the best `depth` documents of each topic (None: all).

        `runs` have the names of `fit`, in any order; other runs are ignored.
        """
        pool = self.known_runs(runs if isinstance(runs, RunPool) else RunPool(runs))
        return pool.to_run(self.pool_scores(pool), depth=depth, tag=tag)

    def known_runs(self, pool: RunPool) -> RunPool:
        """Return the pool with only the runs of `fit`, in the order of `fit`."""
        check_is_fitted(self, "ranker_")
        return pool.select_names(self.run_names_)

    def pool_scores(self, pool: RunPool) -> np.ndarray:
        """Return scores (n,) of a pool's documents; its runs must be the runs of `fit`, in the order of `fit`."""
        check_is_fitted(self, "ranker_")
        features = self._features()
        binned = _as_binned(features, self.ranker_)
        scores = np.empty(pool.n_rows)
        limit = max(1, _BLOCK_VALUES // max(1, self.ranker_.n_features_in_))
        for first, last in query_blocks(pool.offsets, limit):
            part = pool if (first, last) == (0, pool.n_queries) else pool.take(np.arange(first, last))
            X = self._matrix(features, part, np.arange(part.n_rows), self.edges_, binned)
            data = RankingData.from_grouped(X, None, part.offsets, part.query_ids)
            scores[pool.offsets[first] : pool.offsets[last]] = self.ranker_.predict(data)
        return scores

    def run_weights(self) -> dict[str, float]:
        """Return the weight of each run, for linear fusions with one column for each run (`nonnegative`)."""
        check_is_fitted(self, "ranker_")
        features = self._features()
        if not isinstance(self.ranker_, LinearRanker) or len(self.ranker_.coef_) != len(self.run_names_):
            raise InvalidInputError(
                f"a fusion of {features} by {type(self.ranker_).__name__} has no single weight for each run. Fit "
                "RunFusion(nonnegative=True)",
                code="no-run-weights",
            )
        return dict(zip(self.run_names_, self.ranker_.coef_.tolist()))

    def check_model(self) -> None:
        """Check after loading that names, thresholds and ranker fit together."""
        names, ranker, features = self.run_names_, self.ranker_, self._features()
        n_bins = sum(isinstance(part, ScoreBins) for part in features.parts)
        check_fields(self, {"edges_": f"list[{n_bins * len(names)}] of array[]"})
        columns = len(names) if _as_binned(features, ranker) else len(features.names(names, self.edges_))
        check_fields(self, {"ranker_.n_features_in_": f"int in [{columns}, {columns}]"})

    def _prepare(self, pool: RunPool) -> None:
        """Learn what `_matrix` needs from the training topics."""

    def _matrix(self, features: Any, pool: RunPool, rows: np.ndarray, edges: list[np.ndarray], binned: bool) -> Any:
        """Return the columns of the chosen rows."""
        return features.matrix(pool, rows, edges, binned=binned)

    def _names(self, features: Any, pool: RunPool, edges: list[np.ndarray], binned: bool) -> list[str]:
        """Return the names of the columns."""
        return list(pool.names if binned else features.names(pool.names, edges))

    def _features(self) -> Any:
        features = parse_features(self.features or ("min-max" if self.nonnegative else FEATURES))
        if self.nonnegative and (
            len(features.parts) != 1
            or not isinstance(features.parts[0], MinMax | Score | ZScore | Percentile | ReciprocalRank | EngineScores)
        ):
            raise InvalidInputError(
                "features must be min-max, score, z-score, percentile, reciprocal-rank or engine-scores with "
                f"nonnegative=True, which learns one weight for each run, got {features}",
                argument="nonnegative",
            )
        return features

    def _new_ranker(self) -> Any:
        from truerank.rankers.list_net import ListNet
        from truerank.rankers.nonnegative_list_net import NonnegativeListNet

        if self.ranker is None:
            return NonnegativeListNet() if self.nonnegative else ListNet()
        if self.nonnegative and not isinstance(self.ranker, NonnegativeListNet):
            raise InvalidInputError(
                f"nonnegative=True requires NonnegativeListNet, got {type(self.ranker).__name__}. Omit ranker",
                argument="nonnegative",
            )
        return clone(self.ranker)


def _as_binned(features: Any, ranker: Any) -> bool:
    return len(features.parts) == 1 and isinstance(features.parts[0], ScoreBins) and ranker.allow_binned
