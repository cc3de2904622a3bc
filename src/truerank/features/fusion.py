"""Fusion without learning, by the name of the rule.

If no list has equal scores, the values equal the values of ranx (`ranx.fuse(..., norm="min-max")`). Equal scores are
ordered by the file in ranx, and by document id here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike
from truerank.features import rules
from truerank.features.run_features import KINDS, RunFeature, parse_features
from truerank.features.run_pool import RunPool

METHODS: dict[str, Callable[[RunPool], np.ndarray]] = {
    "rrf": rules.reciprocal_rank_fusion,
    "comb-sum": rules.comb_sum,
    "comb-mnz": rules.comb_mnz,
    "comb-anz": rules.comb_anz,
    "comb-max": rules.comb_max,
    "comb-min": rules.comb_min,
    "comb-med": rules.comb_med,
    "borda": rules.borda,
}
WEIGHTED_METHODS: dict[str, Callable[[RunPool, Any], np.ndarray]] = {
    "weighted-sum": rules.comb_sum,
    "weighted-mnz": rules.comb_mnz,
    "weighted-borda": rules.borda,
}


def weighted_sum(pool: RunPool, feature: RunFeature, weights: ArrayLike | None = None) -> np.ndarray:
    """Return the sum (n,) of a feature over the runs, each multiplied by its weight (1 by default)."""
    own = pool.checked_weights(None if weights is None else np.asarray(weights, dtype=np.float64))
    absent = feature.absent(pool)  # (m r,)
    if not np.isfinite(absent).all():
        raise InvalidInputError(f"{feature} cannot be added over runs. Choose a feature with one number for each run")
    each = (feature.values(pool) - pool.spread(absent)) * own[pool.run_of_entry]
    everywhere = (absent.reshape(pool.n_queries, pool.n_runs) * own).sum(axis=1)
    return pool.add_up(each) + everywhere[pool.query_of_row]


def fuse(runs: object, method: str = "rrf", *, depth: int | None = 1000, weights: ArrayLike | None = None) -> Any:
    """Fuse several runs into one, without learning.

    Parameters
    ----------
    runs : mapping of name to run, sequence of runs, or RunPool
        A run is a `Run`, a path, or `{topic: {document: score}}`. Topics that a run lacks are fused from the other
        runs.
    method : str, default "rrf"
        A name of `METHODS` or, with weights, of `WEIGHTED_METHODS`; the formulas are in `rules`. A feature of
        runs, such as "engine-scores(engine=elasticsearch, technique=l2)", is added up over the runs.
    depth : int or None, default 1000
        Documents kept for each topic; None keeps all.
    weights : array-like (r,), optional
        A weight for each run; only for the weighted methods and for features, where 1 is the default.

    Returns
    -------
    Run
        Topics in order of first appearance, with the method as its tag.

    Raises
    ------
    InvalidInputError
        For an unknown method, a depth below 1, no runs, or invalid weights.

    Examples
    --------
    >>> fused = fuse([{"q": {"d1": 2.0, "d2": 1.0}}, {"q": {"d2": 9.0, "d3": 5.0}}], "comb-mnz")
    >>> fused.doc_ids.tolist(), fused.scores.tolist()
    (['d2', 'd1', 'd3'], [2.0, 1.0, 0.0])
    """
    if method.partition("(")[0].strip() in KINDS:
        pool = runs if isinstance(runs, RunPool) else RunPool(runs)
        (feature,) = parse_features(method).parts
        return pool.to_run(weighted_sum(pool, feature, weights), depth=depth, tag="sum")
    check_choice(method, "method", (*METHODS, *WEIGHTED_METHODS))
    if (weights is None) == (method in WEIGHTED_METHODS):
        raise InvalidInputError(
            f"got method {method!r} with{'out' * (weights is None)} weights. {', '.join(WEIGHTED_METHODS)} require a "
            "weight for each run, and all other methods accept no weights",
            argument="weights",
        )
    pool = runs if isinstance(runs, RunPool) else RunPool(runs)
    scores = METHODS[method](pool) if weights is None else WEIGHTED_METHODS[method](pool, weights)
    return pool.to_run(scores, depth=depth, tag=method)
