"""Objectives of boosted trees: gradients and hessians of scores, query by query.

An objective is a function `objective(y, scores, offsets) -> (gradients, hessians)` of grades (n,), scores (n,) and
starts of queries (m + 1,). The function returns two float64 arrays (n,): the gradients of a loss to minimise, and its
second derivatives or their upper bounds, never negative. Users may pass their own function.

With s the scores of a query, y its grades and ρ_ij = 1 / (1 + exp(σ (s_i - s_j))):

    mse                ½ Σ (y_i - s_i)²
    query-mse          ½ Σ (y_i - s_i - c)², c the query's mean of y_i - s_i: differences between queries do not count
    pairwise-logistic  Σ_{y_i > y_j} log(1 + exp(-σ (s_i - s_j)))
    lambdarank         Σ_{y_i > y_j} |Δ_ij| log(1 + exp(-σ (s_i - s_j))), Δ_ij the change of the measure if i and j
                       swap their places, held constant
    yetirank           Σ_{y_i > y_j} w_ij log(1 + exp(-(s_i - s_j))), w_ij the mean over random rankings of
                       decay^place · (y_i - y_j) if i and j are neighbours in it
    softmax            -Σ_i t_i log(exp(s_i) / Σ_j exp(s_j)), t = softmax(y)
    xe-ndcg            the same with t in proportion to 2^y - γ, γ uniform in [0, 1), drawn for each tree
    ips-lambdarank     Σ_i y_i Σ_j of the same terms, for relevances estimated from clicks; see `lambda_rank`
    unbiased-lambdarank  lambdarank, each pair divided by the propensities of its positions; see `position_bias`

A pair's gradient is -σ w ρ for i and σ w ρ for j, its hessian σ² w ρ (1 - ρ) for both.

References: C. Burges, From RankNet to LambdaRank to LambdaMART, MSR-TR-2010-82 (pairs and swap costs). Z. Cao et al.,
Learning to rank: from pairwise to listwise approach, ICML 2007 (softmax). A. Gulin et al., Winning the transfer
learning track of Yahoo!'s learning to rank challenge with YetiRank, 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from truerank.core.checks import check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.types import MeasureLike
from truerank.data.grouping import sums_by_query
from truerank.losses.boosting_kernels import discounted_pairs, neighbour_pairs
from truerank.losses.lambda_rank import IPSLambdaRank, LambdaRank
from truerank.losses.listwise import LISTWISE
from truerank.losses.position_bias import UnbiasedLambdaRank
from truerank.losses.protocols import Block, BoostingObjective, ByQuery, Derivatives, FunctionObjective, PlainObjective
from truerank.matrices.exact_sums import exact_sum


class SquaredError(PlainObjective):
    """Squared error ½ Σ (y - s)², with gradient s - y and hessian 1. Boosting starts at the mean grade."""

    quadratic = True
    by_row = True

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Derivatives:
        return scores - y, np.broadcast_to(1.0, scores.shape)  # a view of one number: no memory

    def start(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        """Return the best constant score, from sums without rounding errors."""
        if weights is None:
            return exact_sum(y) / len(y)
        return exact_sum(weights * y) / exact_sum(weights)


class QuerySquaredError(ByQuery):
    """½ Σ (y - s - c)², c the mean of y - s in the query; its hessians are 1, a bound of the second derivatives."""

    def add(self, block: Block) -> None:
        offsets = block.offsets[block.first : block.last + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        errors = block.scores[rows] - block.y[rows]
        sizes = np.diff(offsets)
        means = sums_by_query(errors, offsets - offsets[0]) / np.maximum(sizes, 1)
        block.gradients[rows] = errors - np.repeat(means, sizes)
        block.hessians[rows] = 1.0


class PairwiseLogistic(ByQuery):
    """The logistic loss of all pairs with different grades; a call costs O(Σ n²) for queries of n documents."""

    def __init__(self, sigma: float = 1.0) -> None:
        self.sigma = check_number(sigma, "sigma", "(0, inf)")

    def add(self, block: Block) -> None:
        none = np.empty(0)
        discounted_pairs(*block, block.y, none, none, self.sigma, 0)


class YetiRank(ByQuery):
    """Loss of neighbouring pairs in `permutations` random rankings, weighted by `decay` ** rank, `decay` in (0, 1]."""

    by_place = True

    def __init__(self, permutations: int = 10, decay: float = 0.85) -> None:
        self.permutations = check_positive_int(permutations, "permutations")
        self.decay = check_number(decay, "decay", "(0, 1]")
        self._rng = np.random.default_rng(0)
        self._noise = np.empty((0, 0))

    def begin(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Derivatives:
        # Score plus logistic noise: the order of exp(s) u / (1 - u).
        self._noise = self._rng.logistic(size=(self.permutations, len(y)))
        return super().__call__(y, scores, offsets)

    def add(self, block: Block) -> None:
        neighbour_pairs(*block, self._noise, self.decay)


OBJECTIVES: dict[str, Callable[..., Any]] = {
    "mse": SquaredError,
    "query-mse": QuerySquaredError,
    "lambdarank": LambdaRank,
    **LISTWISE,
    "pairwise-logistic": PairwiseLogistic,
    "yetirank": YetiRank,
    "unbiased-lambdarank": UnbiasedLambdaRank,
    "ips-lambdarank": IPSLambdaRank,
}


def make_objective(
    objective: object, params: dict[str, Any] | None, measure: MeasureLike, n_jobs: int | None
) -> BoostingObjective:
    """Return an objective from its name and parameters, an object of the protocol, or a user's function."""
    if callable(objective):
        if params:
            raise InvalidInputError(
                "objective_params apply only to objectives given by name. Wrap the parameters in your function",
                argument="objective_params",
            )
        return objective if isinstance(objective, BoostingObjective) else FunctionObjective(objective)
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        raise InvalidInputError(
            argument="objective", expected=f"one of {', '.join(OBJECTIVES)} or a function", value=objective
        )
    given = dict(params or {})
    if objective in ("lambdarank", "unbiased-lambdarank"):
        given["measure"] = measure
    try:
        made = OBJECTIVES[objective](**given)
    except TypeError as error:
        raise InvalidInputError(
            f"{objective!r} does not accept objective_params={params!r}: {error}", argument="objective_params"
        ) from error
    if isinstance(made, ByQuery):
        made.n_jobs = n_jobs
    return made
