"""QueryFusion: fuse runs with weights that depend on features of the query."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.parameters import parameters
from truerank.core.schema import check_fields
from truerank.features.query_features import query_features
from truerank.features.run_features import FeatureSet, RunAgreement, ScoreBins, parse_features
from truerank.features.run_pool import RunPool
from truerank.rankers.linear import LinearRanker
from truerank.rankers.list_net import ListNet
from truerank.rankers.run_fusion import DEPTH, RunFusion

_FAR = 3.0  # standard deviations at which features of queries are cut
_ALPHA = 10.0


@parameters
class QueryFusion(RunFusion):
    """Fuse runs with weights that depend on score gaps, lengths and overlaps of the lists of a query.

    The score of a document is `Σ_j (a_j + Σ_f b_jf z_f) x_j`: x_j is a feature of run j (by default its min-max score),
    z_f a standardised feature of the query (`truerank.features.query_features`), and a ranker learns from the products.
    Compare it with one weight for each run before you use it: `cross_validate_fusion(pool, QueryFusion(),
    others={"one weight": RunFusion(nonnegative=True)})`, or the option by-query of `truerank fuse`.

    Parameters
    ----------
    ranker : Ranker, optional
        By default `ListNet(alpha=10)`.
    features : str, default "min-max"
        Features of the runs; one column for each run.
    depth : int or None, default 200
        As in `RunFusion`.

    Attributes
    ----------
    query_names_ : list of str
        Names of the features of queries.
    query_center_, query_scale_ : float64 arrays (f,)
        Their means and standard deviations over the training topics.

    Notes
    -----
    Features of queries of your own, such as the number of words or the mean idf, are those of
    `RunPool(runs, query_features=…)`, in `fit` and in `predict`. Values beyond three standard deviations are cut.

    Examples
    --------
    >>> runs = {"a": {"1": {"d1": 4.0, "d2": 2.0}}, "b": {"1": {"d2": 7.0, "d3": 6.0}}}
    >>> fusion = QueryFusion().fit(runs, {"1": {"d2": 1}})
    >>> sorted(fusion.weights_by_query(RunPool(runs)))
    ['a', 'b']
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "query_names_": "list[f] of str",
        "query_center_ query_scale_": "float[f]",
    }

    ranker: Any = None
    _: KW_ONLY
    features: str | None = None
    depth: int | None = DEPTH

    def weights_by_query(self, runs: Any) -> dict[str, np.ndarray]:
        """Return the weight of each run in each topic (m,), for a linear ranker and one feature."""
        pool = self.known_runs(runs if isinstance(runs, RunPool) else RunPool(runs))
        coef = getattr(self.ranker_, "coef_", None)
        if not isinstance(self.ranker_, LinearRanker) or coef is None or len(self._features().parts) > 1:
            raise InvalidInputError(
                f"a fusion of {self._features()} by {type(self.ranker_).__name__} does not have one weight for each "
                "run. Use a linear ranker and one feature",
                code="no-run-weights",
            )
        r = pool.n_runs
        z = np.column_stack([np.ones(pool.n_queries), self._standardised(pool)])
        weights = z @ np.concatenate([coef[:r][None, :], coef[r:].reshape(r, -1).T])
        return dict(zip(pool.names, weights.T))

    def check_model(self) -> None:
        columns = len(self._features().names(self.run_names_)) * (1 + len(self.query_names_))
        check_fields(self, {"ranker_.n_features_in_": f"int in [{columns}, {columns}]"})

    def _prepare(self, pool: RunPool) -> None:
        values, self.query_names_ = query_features(pool)
        self.query_center_, scale = values.mean(axis=0), values.std(axis=0)
        self.query_scale_ = np.where(scale > 1e-12, scale, 1.0)

    def _standardised(self, pool: RunPool) -> np.ndarray:
        values, names = query_features(pool)
        if names != self.query_names_:
            raise InvalidInputError(
                f"the pool has the query features {list(names)}, but training had {list(self.query_names_)}",
                argument="runs",
                remedies=["make the pool with the same query_features"],
            )
        return np.clip((values - self.query_center_) / self.query_scale_, -_FAR, _FAR)

    def _matrix(
        self, features: FeatureSet, pool: RunPool, rows: np.ndarray, edges: list[np.ndarray], binned: bool
    ) -> Any:
        own = super()._matrix(features, pool, rows, edges, binned)
        z = self._standardised(pool)[pool.query_of_row[rows]].astype(np.float32)
        products = (own[:, :, None] * z[:, None, :]).reshape(len(own), -1)
        return np.concatenate([own, products], axis=1)

    def _names(self, features: FeatureSet, pool: RunPool, edges: list[np.ndarray], binned: bool) -> list[str]:
        own = super()._names(features, pool, edges, binned)
        return own + [f"{name} x {query}" for name in own for query in self.query_names_]

    def _features(self) -> FeatureSet:
        features = parse_features(self.features or "min-max")
        if any(isinstance(part, ScoreBins | RunAgreement) for part in features.parts):
            raise InvalidInputError(
                f"weights by query require features with one column for each run, such as min-max, got {features}",
                argument="features",
            )
        return features

    def _new_ranker(self) -> Any:
        return ListNet(alpha=_ALPHA) if self.ranker is None else super()._new_ranker()
