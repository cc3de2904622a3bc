"""Fusion without learning, by the name of its rule.

Where no list has two equal scores the values equal ranx's (`ranx.fuse(..., norm="min-max")`). Among equal scores ranx
ranks in the order in which its sort leaves them, which the file decides; here the document ids decide. Condorcet-fuse
differs where votes are equal or go in circles, too: there ranx's order changes from process to process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike
from truerank.features import condorcet, rank_rules, score_rules
from truerank.features.run_pool import RunPool

METHODS: dict[str, Callable[[RunPool], np.ndarray]] = {
    "rrf": rank_rules.reciprocal_rank_fusion,
    "comb-sum": score_rules.comb_sum,
    "comb-mnz": score_rules.comb_mnz,
    "comb-anz": score_rules.comb_anz,
    "comb-gmnz": score_rules.comb_gmnz,
    "comb-max": score_rules.comb_max,
    "comb-min": score_rules.comb_min,
    "comb-med": score_rules.comb_med,
    "isr": rank_rules.inverse_square_rank,
    "log-isr": rank_rules.log_inverse_square_rank,
    "logn-isr": rank_rules.lognorm_inverse_square_rank,
    "rbc": rank_rules.rank_biased_centroid,
    "borda": rank_rules.borda,
    "condorcet": condorcet.condorcet,
}
WEIGHTED_METHODS: dict[str, Callable[[RunPool, Any], np.ndarray]] = {
    "weighted-sum": score_rules.weighted_sum,
    "mixed": score_rules.mixed,
    "weighted-mnz": score_rules.weighted_mnz,
    "weighted-borda": rank_rules.weighted_borda,
    "weighted-condorcet": condorcet.weighted_condorcet,
}


def fuse(runs: object, method: str = "rrf", *, depth: int | None = 1000, weights: ArrayLike | None = None) -> Any:
    """One run of several, without learning.

    Parameters
    ----------
    runs : mapping of name to run, sequence of runs, or RunPool
        A run is a `Run`, a path, or `{topic: {document: score}}`.
    method : str, default "rrf"
        A name of `METHODS` or, with weights, of `WEIGHTED_METHODS`; the formulas are in `score_rules`, `rank_rules` and
        `condorcet`.
    depth : int or None, default 1000
        Documents kept for each topic; None keeps all.
    weights : array-like (r,), optional
        Of the weighted methods, one for each run.

    Returns
    -------
    Run
        Topics in order of first appearance; its tag is the method.

    Raises
    ------
    InvalidInputError
        On an unknown method, a depth below 1, no runs, or weights that do not fit.

    Notes
    -----
    A topic that a run lacks is fused of the others. One dictionary look-up for each retrieved document.

    Examples
    --------
    >>> fused = fuse([{"q": {"d1": 2.0, "d2": 1.0}}, {"q": {"d2": 9.0, "d3": 5.0}}], "comb-mnz")
    >>> fused.doc_ids.tolist(), fused.scores.tolist()
    (['d2', 'd1', 'd3'], [2.0, 1.0, 0.0])
    """
    check_choice(method, "method", (*METHODS, *WEIGHTED_METHODS))
    if (weights is None) == (method in WEIGHTED_METHODS):
        raise InvalidInputError(
            f"the methods {', '.join(WEIGHTED_METHODS)} need weights, one for each run, and the others take none; got "
            f"method {method!r} with{'out' * (weights is None)} weights"
        )
    pool = runs if isinstance(runs, RunPool) else RunPool(runs)
    scores = METHODS[method](pool) if weights is None else WEIGHTED_METHODS[method](pool, weights)
    return pool.to_run(scores, depth=depth, tag=method)
