"""Objectives: gradients and hessians of scores, query by query. A tree knows these and no loss.

An objective is a function `objective(y, scores, offsets) -> (gradients, hessians)`: grades (n,), scores (n,) and starts
of queries (m + 1,) in, two float64 arrays (n,) out. The gradients are those of a loss to be made small, the hessians
their (non-negative) second derivatives or an upper bound of these. Any such function of the user's is taken.

With s the scores of a query, y its grades and ρ_ij = 1 / (1 + exp(σ (s_i - s_j))):

    mse                ½ Σ (y_i - s_i)²
    pairwise-logistic  Σ_{y_i > y_j} log(1 + exp(-σ (s_i - s_j)))
    lambdarank         Σ_{y_i > y_j} |Δ_ij| log(1 + exp(-σ (s_i - s_j))), Δ_ij the change of the measure when i and j
                       swap their places, held constant
    yetirank           Σ_{y_i > y_j} w_ij log(1 + exp(-(s_i - s_j))), with w_ij the mean over random rankings of
                       decay^place · (y_i - y_j) where i and j are neighbours in it
    softmax            -Σ_i t_i log(exp(s_i) / Σ_j exp(s_j)), t = softmax(y)

The pairs' gradient is -σ w ρ for i and the opposite for j, their hessian σ² w ρ (1 - ρ) for both.

References
----------
C. Burges, From RankNet to LambdaRank to LambdaMART, MSR-TR-2010-82 (pairs and swap costs). Z. Cao et al., Learning to
rank: from pairwise to listwise approach, ICML 2007 (softmax). A. Gulin et al., Winning the transfer learning track of
Yahoo!'s learning to rank challenge with YetiRank, 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from truerank.core.checks import check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.threads import query_blocks, run_blocks
from truerank.losses.boosting_kernels import (
    average_precision_deltas,
    discounted_pairs,
    given_pairs,
    neighbour_pairs,
    softmax_rows,
)
from truerank.losses.protocols import BoostingObjective, FunctionObjective
from truerank.measures.average_precision import AveragePrecision
from truerank.measures.ndcg import NormalisedDCG, gain_of_grade

Arrays = tuple[np.ndarray, np.ndarray]


class SquaredError:
    """½ Σ (y - s)²: gradient s - y, hessian 1. Boosting starts at the mean grade."""

    quadratic = True

    def begin(self, rng: np.random.Generator) -> None:
        """Nothing is drawn."""

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Arrays:
        return scores - y, np.broadcast_to(1.0, scores.shape)  # a view of one number: no memory

    def start(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        """The best constant score."""
        return float(np.average(y, weights=weights))


class ByQuery:
    """Base of objectives over queries: blocks of whole queries, one task of a thread each.

    `by_place` says that ties are broken, or numbers drawn, by the places of the rows: boosting then hands the rows over
    in an order by content, so that the model does not depend on the file's.
    """

    quadratic = False
    by_place = False
    n_jobs: int | None = None

    def begin(self, rng: np.random.Generator) -> None:
        """Draw from `rng` for the next tree; most draw nothing."""

    def start(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        """0: only differences within a query count."""
        return 0.0

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Arrays:
        gradients, hessians = np.zeros(len(y)), np.zeros(len(y))

        def work(first: int, last: int) -> None:
            self.add(y, scores, offsets, first, last, gradients, hessians)

        run_blocks(work, query_blocks(offsets, 16_384), self.n_jobs)
        return gradients, hessians

    def add(
        self,
        y: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        first: int,
        last: int,
        gradients: np.ndarray,
        hessians: np.ndarray,
    ) -> None:
        """Write the gradients and hessians of the queries first … last - 1."""
        raise NotImplementedError


class PairwiseLogistic(ByQuery):
    """Logistic loss of all pairs with different grades. O(Σ n²)."""

    def __init__(self, sigma: float = 1.0) -> None:
        self.sigma = check_number(sigma, "sigma", minimum=0.0, open_minimum=True)

    def add(
        self,
        y: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        first: int,
        last: int,
        gradients: np.ndarray,
        hessians: np.ndarray,
    ) -> None:
        """See the base class."""
        none = np.empty(0)
        discounted_pairs(y, scores, offsets, first, last, y, none, none, self.sigma, 0, gradients, hessians)


class LambdaRank(ByQuery):
    """Pairs weighed by what their swap would change in a measure.

    nDCG and AP (without a cutoff) have closed forms, O(min(n, cutoff) n) and O(n²) a query; any other measure is asked
    for its `swap_deltas`, which is slow.

    Parameters
    ----------
    measure : Measure
    sigma : float
        Steepness of the logistic function.
    """

    by_place = True

    def __init__(self, measure: Any, sigma: float = 1.0) -> None:
        self.measure = measure
        self.sigma = check_number(sigma, "sigma", minimum=0.0, open_minimum=True)
        self._of: np.ndarray | None = None

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Arrays:
        if isinstance(self.measure, NormalisedDCG) and self._of is not y:
            self._gains, self._discounts, self._inverse = ndcg_parts(self.measure, y, offsets)
            self._of = y
        return super().__call__(y, scores, offsets)

    def add(
        self,
        y: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        first: int,
        last: int,
        gradients: np.ndarray,
        hessians: np.ndarray,
    ) -> None:
        """See the base class."""
        if isinstance(self.measure, NormalisedDCG):
            cutoff = self.measure.cutoff or 0
            discounted_pairs(
                y, scores, offsets, first, last, self._gains, self._discounts, self._inverse, self.sigma,
                cutoff or len(self._discounts), gradients, hessians,
            )  # fmt: skip
            return
        for q in range(first, last):
            rows = slice(int(offsets[q]), int(offsets[q + 1]))
            if rows.start == rows.stop or np.ptp(y[rows]) == 0:
                continue
            weights = np.abs(self.deltas(y[rows], scores[rows]))
            given_pairs(y[rows], scores[rows], weights, self.sigma, gradients[rows], hessians[rows])

    def deltas(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Changes of the measure by swaps in one query (n, n)."""
        if isinstance(self.measure, AveragePrecision) and self.measure.cutoff is None:
            relevant = (y >= self.measure.rel).astype(np.float64)
            order = np.argsort(-scores, kind="stable")
            place = np.empty(len(y), dtype=np.int64)
            place[order] = np.arange(len(y))
            ranked = average_precision_deltas(relevant[order])
            return np.ascontiguousarray(ranked[place][:, place])
        return np.ascontiguousarray(self.measure.swap_deltas(y, scores))


def ndcg_parts(measure: Any, y: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gain of each row, discount of each rank (0 beyond the cutoff), and 1 / ideal DCG of each query (0 where none)."""
    gains = gain_of_grade(y, measure.setting("gain"))
    sizes = np.diff(offsets)
    longest = int(sizes.max(initial=1))
    ranks = np.arange(1, longest + 1)
    if measure.setting("discount") == "log2":
        discounts = 1.0 / np.log2(ranks + 1)
    else:
        discounts = np.concatenate([np.ones(min(2, longest)), 1.0 / np.log2(ranks[2:])])
    if measure.cutoff is not None:
        discounts[measure.cutoff :] = 0.0
    query = np.repeat(np.arange(len(sizes)), sizes)
    best_first = gains[np.lexsort((-gains, query))]
    discounted = best_first * discounts[np.arange(len(y)) - offsets[query]]
    ideal = np.bincount(query, discounted, minlength=len(sizes))
    if measure.setting("short") == "zero" and measure.cutoff is not None:
        ideal = np.where(sizes < measure.cutoff, 0.0, ideal)
    return gains, discounts, np.where(ideal > 0, 1.0 / np.where(ideal > 0, ideal, 1.0), 0.0)


class Softmax(ByQuery):
    """Cross entropy between the top-one probabilities of grades and of scores (ListNet's loss)."""

    def add(
        self,
        y: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        first: int,
        last: int,
        gradients: np.ndarray,
        hessians: np.ndarray,
    ) -> None:
        """See the base class."""
        softmax_rows(y, scores, offsets, first, last, gradients, hessians)


class YetiRank(ByQuery):
    """Pairs of neighbours in randomly perturbed rankings, the first ranks weighing most.

    Parameters
    ----------
    permutations : int
        Random rankings for each tree.
    decay : float in (0, 1]
        Weight of a pair is multiplied by this for each rank down.
    """

    by_place = True

    def __init__(self, permutations: int = 10, decay: float = 0.85) -> None:
        self.permutations = check_positive_int(permutations, "permutations")
        self.decay = check_number(decay, "decay", minimum=0.0, maximum=1.0, open_minimum=True)
        self._rng = np.random.default_rng(0)
        self._noise = np.empty((0, 0))

    def begin(self, rng: np.random.Generator) -> None:
        """Draw from `rng` for the next tree."""
        self._rng = rng

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Arrays:
        # Score plus logistic noise: the order of exp(s) u / (1 - u).
        self._noise = self._rng.logistic(size=(self.permutations, len(y)))
        return super().__call__(y, scores, offsets)

    def add(
        self,
        y: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        first: int,
        last: int,
        gradients: np.ndarray,
        hessians: np.ndarray,
    ) -> None:
        """See the base class."""
        neighbour_pairs(y, scores, offsets, first, last, self._noise, self.decay, gradients, hessians)


OBJECTIVES: dict[str, Callable[..., Any]] = {
    "mse": SquaredError,
    "lambdarank": LambdaRank,
    "softmax": Softmax,
    "pairwise-logistic": PairwiseLogistic,
    "yetirank": YetiRank,
}


def make_objective(
    objective: Any, params: dict[str, Any] | None, measure: Any, n_jobs: int | None
) -> BoostingObjective:
    """An objective by name with its parameters, one that keeps the protocol as it is, or a user's function."""
    if callable(objective):
        if params:
            raise InvalidInputError("objective_params are for objectives given by name; wrap your function instead")
        return objective if isinstance(objective, BoostingObjective) else FunctionObjective(objective)
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        raise InvalidInputError(f"objective must be one of {', '.join(OBJECTIVES)} or a function, got {objective!r}")
    given = dict(params or {})
    if objective == "lambdarank":
        given["measure"] = measure
    try:
        made = OBJECTIVES[objective](**given)
    except TypeError as error:
        raise InvalidInputError(f"{objective!r} does not take objective_params={params!r}: {error}") from error
    if isinstance(made, ByQuery):
        made.n_jobs = n_jobs
    return made


def checked(objective: Any, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Arrays:
    """An objective's answer as float64 arrays (n,), or an error that says what is wrong with a user's function."""
    answer = objective(y, scores, offsets)
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise InvalidInputError(f"the objective must return (gradients, hessians), got {type(answer).__name__}")
    gradients = np.ascontiguousarray(answer[0], dtype=np.float64)
    hessians = np.asarray(answer[1], dtype=np.float64)
    for name, values in (("gradients", gradients), ("hessians", hessians)):
        if values.shape != y.shape:
            raise InvalidInputError(f"the objective's {name} must have shape {y.shape}, got {values.shape}")
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise InvalidInputError(f"the objective's {name} must be finite, got {values[row]} at row {row}")
    if hessians.min(initial=0.0) < 0:
        raise InvalidInputError("the objective's hessians must not be negative; take an upper bound or 1")
    return gradients, hessians
