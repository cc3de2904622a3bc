"""Linear learners over partitions: each sum of a loss is a sum over partitions, in the order of a fixed tree.

A partition keeps its own `Problem` in units that all partitions share. The solvers are those of one machine.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError
from truerank.data.grouping import at_places, offsets_of
from truerank.data.row_source import Part, RowSource
from truerank.data.rows import beside, largest
from truerank.losses.graded_pairs import GradedPairs, weight_shares
from truerank.matrices.content import (
    content_hashes,
    inverse_scales,
    largest_magnitudes,
    powers_of_two,
    scales_of_spread,
    squares_and_counts,
)
from truerank.rankers.linear import OracleOf, Problem
from truerank.solvers.cutting_planes import CuttingPlanes, block_bounds
from truerank.solvers.newton import PairSums


def make_problem(data: Any, scale: Any, n_jobs: int | None = None, *, intercept: float = 0.0) -> Any:
    """Return a `Problem`, or for a `RowSource` an object with the same methods that sums over parts."""
    if isinstance(data, RowSource):
        return PartitionedProblem(data, check_choice(scale, "scale", ("auto", "never")), intercept)
    return Problem(data, scale, n_jobs, intercept=intercept)


_SAMPLE_ROWS = 20_000  # of all partitions, from which the first Hessian is made


class PartitionedProblem:
    """`Problem` over partitions, with the methods, `scale`, `middle` and `n_weights` that `Problem` documents."""

    def __init__(self, data: RowSource, scale: str, intercept: float = 0.0) -> None:
        self.data, self._intercept = data, intercept
        self.is_dense = data.description.dense and not intercept
        self._heaviest = None if data.query_weight is None else float(data.query_weight.max())
        self._mass = float(data.n_rows if self._heaviest is None else self.data.statistics(_mass, self._heaviest))
        self.n_weights = data.n_features + int(intercept != 0)
        self.scale: np.ndarray | None = None
        self.middle: np.ndarray | float = 0.0
        self._unit = None
        if scale == "auto":
            unit = powers_of_two(self.data.statistics(_largest_magnitudes, merge=largest))
            squares, counts = self.data.statistics(_squares, unit, self._heaviest)
            self.scale = scales_of_spread(np.sqrt(squares / np.where(counts > 0, counts, 1.0)) * unit)
        if self.scale is not None:
            self._unit = inverse_scales(self.scale)
            if intercept and data.description.dense:
                self.middle = self.data.statistics(_column_sums, self._heaviest, 1.0 / self._mass)
        self.data.statistics(_open, "never" if self.scale is None else self.scale, intercept, keep=True)

    def coef(self, weights: np.ndarray) -> np.ndarray:
        weights = weights[:-1] if self._intercept else weights
        return weights.copy() if self._unit is None else weights * self._unit

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        gram, moment = self.data.statistics(_moments)
        return np.array(gram), np.array(moment)

    def cross_entropy(self, alpha: float, normalize: bool, objective: object) -> PartitionedCrossEntropy:
        return PartitionedCrossEntropy(self, alpha, normalize, objective)

    def distinct_grades(self) -> np.ndarray:
        return np.array(self.data.statistics(_grades, merge=np.union1d))

    def score_spread(self, weights: np.ndarray) -> float:
        mean = float(self.data.statistics(_score_powers, weights, self._heaviest, 0.0, 1)) / self._mass
        return math.sqrt(float(self.data.statistics(_score_powers, weights, self._heaviest, mean, 2)) / self._mass)

    def planes(self, oracle_of: OracleOf, n_blocks: int | None) -> PartitionedPlanes:
        return PartitionedPlanes(self, oracle_of, n_blocks)

    def ramp(self, oracle_of: OracleOf, n_blocks: int | None) -> PartitionedRamp:
        return PartitionedRamp(self, oracle_of, n_blocks)

    def pair_sums(self, weighting: str) -> PartitionedPairs:
        return PartitionedPairs(self, weighting)

    def pair_planes(self, sums: PartitionedPairs, n_blocks: int | None) -> PartitionedPlanes:
        return PartitionedPlanes(self, GradedPairs, n_blocks, of_pairs=True)

    def label_weights(self, rel: float) -> tuple[float, float]:
        relevant, others = self.data.statistics(_label_weights, rel)
        return float(relevant), float(others)

    def document_planes(self, rel: float, weights: tuple[float, float]) -> PartitionedDocuments:
        shift = np.zeros(self.n_weights - 1)
        if self._unit is not None:
            shift += self.middle * self._unit / self._intercept
        return PartitionedDocuments(self, rel, weights, shift)


class PartitionedCrossEntropy:
    """The sum of the partitions' cross entropies, plus the penalty; `CrossEntropy` documents the methods."""

    def __init__(self, problem: PartitionedProblem, alpha: float, normalize: bool, objective: object) -> None:
        self._rows, self.alpha, self.n_weights = problem.data, alpha, problem.n_weights
        self.has_hessian = problem.is_dense
        self._share = min(1.0, _SAMPLE_ROWS / max(1, problem.data.n_rows))
        queries, weight = self._rows.statistics(_open_cross_entropy, objective, keep=True)
        self.n_queries = int(queries)
        self._factor = 1.0 / float(weight) if normalize and self.n_queries else 1.0

    def value_and_gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient = self._rows.statistics(_ask, "loss", "value_and_gradient", weights)
        value = self._factor * float(loss) + 0.5 * self.alpha * float(np.sum(weights * weights))
        return value, self._factor * gradient + self.alpha * weights

    def hessian(self, weights: np.ndarray, max_rows: float = np.inf) -> np.ndarray:
        share = 1.0 if np.isinf(max_rows) else self._share
        return self._factor * self._rows.statistics(_hessian, weights, share) + self.alpha * np.eye(self.n_weights)

    def curvature(self) -> np.ndarray:
        return self._factor * self._rows.statistics(_ask, "loss", "curvature") + self.alpha

    def pass_over_queries(self, weights: np.ndarray, learning_rate: float) -> None:
        raise InvalidInputError(
            'solver="gradient-descent" changes the weights after each query and requires all rows in memory. '
            'For rows in parts set solver="lbfgs"',
            argument="solver",
        )


class PartitionedPairs:
    """`PairSums` over partitions, with its methods."""

    def __init__(self, problem: PartitionedProblem, weighting: str) -> None:
        self._rows, self.n_weights = problem.data, problem.n_weights
        opened = self._rows.statistics(_open_pairs, weighting, keep=True)
        self.total_weight, self.n_pairs, shares, weighed = map(float, opened)
        if weighting != "pairs":
            scale = weighed / shares if shares > 0 else 0.0
            self.total_weight = float(self._rows.statistics(_weigh_pairs, weighting, scale, keep=True))
        self._mark = self._rows.mark()

    def spread(self) -> np.ndarray:
        return np.array(self._rows.statistics(_ask, "pairs", "spread"))

    def begin(self, w: np.ndarray) -> tuple[float, np.ndarray, float]:
        self._rows.rewind(self._mark)
        loss, gradient, degrees = self._rows.statistics(_ask, "pairs", "begin", w, keep=True)
        return float(loss), np.array(gradient), float(degrees)

    def product(self, direction: np.ndarray) -> np.ndarray:
        return np.array(self._rows.statistics(_ask, "pairs", "product", direction))

    def along(self, direction: np.ndarray) -> float:
        return float(self._rows.statistics(_ask, "pairs", "along", direction, keep=True))

    def trial(self, t: float) -> tuple[float, float]:
        loss, slope = self._rows.statistics(_trial, t, keep=True)
        return float(loss), float(slope)

    def accept(self, t: float) -> tuple[np.ndarray, float]:
        gradient, degrees = self._rows.statistics(_ask, "pairs", "accept", t, keep=True)
        return np.array(gradient), float(degrees)


class PartitionedPlanes(CuttingPlanes):
    """`CuttingPlanes` over partitions: the plane of a block is the sum of the partitions' planes."""

    def __init__(
        self, problem: PartitionedProblem, oracle_of: OracleOf | None, n_blocks: int | None, of_pairs: bool = False
    ) -> None:
        self._rows = problem.data
        if oracle_of is not None:
            self._rows.statistics(_open_oracle, oracle_of, keep=True)
        total, kept, queries = self._rows.statistics(_kept_weight, of_pairs)
        whole = 1.0 if of_pairs else float(total) or 1.0
        blocks, n = (None, 1) if n_blocks == 1 else _blocks_by_content(self._rows, of_pairs, n_blocks)
        self._rows.statistics(_open_planes, of_pairs, whole, blocks, n, keep=True)
        self._begin(problem.n_weights, n, float(total) > 0, int(queries) - int(kept))

    def planes_at(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradients, offsets = self._rows.statistics(_planes, w)
        return np.array(gradients), np.array(offsets)

    def _block_weight(self) -> np.ndarray:
        raise InvalidInputError("slack_tol is for data on one machine; use tol, the relative gap, on a cluster")


class PartitionedDocuments(PartitionedPlanes):
    """The hinge on single documents, with all rows as one query, in shifted columns.

    A column minus its mean is the column and a share of the intercept: `shift` (p,) has these shares.
    """

    def __init__(
        self, problem: PartitionedProblem, rel: float, weights: tuple[float, float], shift: np.ndarray
    ) -> None:
        self._rows, self._shift = problem.data, shift
        self._rows.statistics(_open_documents, rel, weights, keep=True)
        self._rows.statistics(_open_planes, False, 1.0, None, 1, keep=True)
        self._begin(problem.n_weights, 1, True, 0)

    def planes_at(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moved = w.copy()
        moved[-1] -= float(np.sum(self._shift * w[:-1]))
        gradients, offsets = super().planes_at(moved)
        gradients[:, :-1] -= gradients[:, -1:] * self._shift
        return gradients, offsets


class PartitionedRamp:
    """`RampProblem` over partitions, with its methods."""

    def __init__(self, problem: PartitionedProblem, oracle_of: OracleOf, n_blocks: int | None) -> None:
        self._problem, self._n_blocks, self._rows = problem, n_blocks, problem.data
        first = PartitionedPlanes(problem, oracle_of, n_blocks)
        self.n_weights, self.anything, self.n_left_out = first.n_weights, first.anything, first.n_left_out
        self._mark = self._rows.mark()

    def risk(self, w: np.ndarray) -> float:
        return float(self._rows.statistics(_ramp_risk, w))

    def planes_around(self, w: np.ndarray) -> PartitionedPlanes:
        self._rows.rewind(self._mark)
        self._rows.statistics(_set_anchor, w, keep=True)
        return PartitionedPlanes(self._problem, None, self._n_blocks)


def _blocks_by_content(data: RowSource, of_pairs: bool, n_blocks: int | None) -> tuple[list[np.ndarray], int]:
    """Return the block of every query of each partition, at the places of its problem, and the number of blocks."""
    own, with_grades, weight, sizes, counts = zip(*data.statistics(_query_hashes, of_pairs, merge=beside))
    order = np.lexsort((np.concatenate(weight), np.concatenate(with_grades), np.concatenate(own)))
    bounds = block_bounds(offsets_of(np.concatenate(sizes)[order]), np.concatenate(counts)[order], n_blocks)
    block = at_places(np.searchsorted(bounds, np.arange(len(order)), side="right") - 1, order)
    return np.split(block, np.cumsum([len(one) for one in own])[:-1]), len(bounds) - 1


# Statistics of a partition.


def _largest_magnitudes(partition: Part) -> np.ndarray:
    return largest_magnitudes(partition.data.X)


def _weight_shares(partition: Part, heaviest: float | None) -> np.ndarray:
    """Return the weight of each query as a share of the heaviest (m,); 1 without weights."""
    weight = partition.data.weight_by_query
    return weight if heaviest is None else weight / heaviest


def _mass(partition: Part, heaviest: float) -> float:
    return float(np.sum(_weight_shares(partition, heaviest) * partition.data.group_sizes))


def _squares(partition: Part, unit: np.ndarray, heaviest: float | None) -> tuple[np.ndarray, np.ndarray]:
    data, share = partition.data, _weight_shares(partition, heaviest)
    return squares_and_counts(data.X, np.arange(data.n_rows), data.offsets, share, np.asarray(unit))


def _column_sums(partition: Part, heaviest: float | None, share: float) -> np.ndarray:
    X = partition.data.X
    if heaviest is None:
        return np.asarray(np.sum(X, axis=0, dtype=np.float64)) * share
    by_row = np.repeat(_weight_shares(partition, heaviest), partition.data.group_sizes)
    return np.asarray(np.sum(X * by_row[:, None], axis=0)) * share


def _open(partition: Part, scale: object, intercept: float) -> None:
    scale = np.array(scale) if isinstance(scale, np.ndarray) else scale
    problem = partition.memory["problem"] = Problem(partition.data, scale, 1, intercept=intercept)
    _let_go(partition, problem)


def _let_go(partition: Part, derived: Any) -> None:
    if not partition.hold:
        del derived.rows


@contextmanager
def _rows_for(partition: Part, name: str) -> Iterator[Any]:
    """Return a stored object with its rows, which are read again if they are not held."""
    derived = partition.memory[name]
    if not partition.hold:
        derived.rows = partition.memory["problem"].rows_of(partition.data.X)
    try:
        yield derived
    finally:
        _let_go(partition, derived)


def _problem(partition: Part) -> Problem:
    with _rows_for(partition, "problem") as problem:
        return copy.copy(problem)


def _moments(partition: Part) -> tuple[np.ndarray, np.ndarray]:
    return _problem(partition).moments()


def _open_cross_entropy(partition: Part, objective: object) -> tuple[int, float]:
    loss = partition.memory["loss"] = _problem(partition).cross_entropy(0.0, False, objective)
    _let_go(partition, loss)
    return loss.n_queries, float(loss.weight.sum())


def _hessian(partition: Part, weights: np.ndarray, share: float) -> np.ndarray:
    p = len(weights)
    if not partition.memory["loss"].n_queries:
        return np.zeros((p, p))
    with _rows_for(partition, "loss") as loss:
        rows = np.inf if share >= 1.0 else max(1, round(share * loss.rows.n_rows))
        return loss.hessian(np.array(weights), rows)


def _open_pairs(partition: Part, weighting: str) -> tuple[float, float, float, float]:
    problem = _problem(partition)
    sums = PairSums(problem.rows, GradedPairs(problem.y, problem.offsets, problem.query_weight, 1))
    partition.memory["pairs"] = sums  # scores and sorted pairs: 60 bytes a row, with the values
    _let_go(partition, sums)
    shares, weighed = weight_shares(weighting, *_pair_counts(partition))
    return sums.total_weight, sums.n_pairs, float(shares.sum()), weighed


def _pair_counts(partition: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    pairs = partition.memory["pairs"].pairs
    return pairs.n_pairs, pairs.offsets, partition.memory["problem"].query_weight


def _weigh_pairs(partition: Part, weighting: str, scale: float) -> float:
    sums = partition.memory["pairs"]
    shares, _ = weight_shares(weighting, *_pair_counts(partition))
    sums.pairs.set_weight(scale * shares / np.maximum(sums.pairs.n_pairs, 1.0))
    sums.total_weight = sums.pairs.total_weight
    return sums.total_weight


def _grades(partition: Part) -> np.ndarray:
    return np.unique(np.asarray(partition.data.y))


def _score_powers(partition: Part, weights: np.ndarray, heaviest: float | None, middle: float, power: int) -> float:
    problem = _problem(partition)
    own = problem.document_weights() / (1.0 if heaviest is None else heaviest)
    return float(np.sum(own * (problem.rows.scores(np.array(weights)) - middle) ** power))


def _open_oracle(partition: Part, oracle_of: OracleOf) -> None:
    problem = partition.memory["problem"]
    partition.memory["oracle"] = oracle_of(problem.y, problem.offsets)
    partition.memory["query weight"], partition.memory["places"] = problem.query_weight, problem.queries


def _label_weights(partition: Part, rel: float) -> tuple[float, float]:
    return partition.memory["problem"].label_weights(rel)


def _open_documents(partition: Part, rel: float, weights: tuple[float, float]) -> None:
    partition.memory["oracle"] = partition.memory["problem"].document_hinge(rel, weights)
    partition.memory["query weight"] = None


def _weight(partition: Part, of_pairs: bool) -> np.ndarray:
    """Return the weight of each query at its place, 0 if the oracle does not keep it."""
    oracle, own = partition.memory["oracle"], partition.memory["query weight"]
    if of_pairs:
        own = partition.memory["pairs"].pairs.weight
    return np.where(oracle.kept, np.ones(len(oracle.kept)) if own is None else own, 0.0)


def _kept_weight(partition: Part, of_pairs: bool) -> tuple[float, int, int]:
    kept = partition.memory["oracle"].kept
    return float(_weight(partition, of_pairs).sum()), int(kept.sum()), len(kept)


def _query_hashes(partition: Part, of_pairs: bool) -> list[tuple[np.ndarray, ...]]:
    data = partition.data
    _, _, own, with_grades = content_hashes(data.X, np.asarray(data.y), data.offsets)
    places = partition.memory["places"]
    by_query = (values[places] for values in (own, with_grades, data.weight_by_query, np.diff(data.offsets)))
    return [(*by_query, _weight(partition, of_pairs) > 0)]


def _open_planes(partition: Part, of_pairs: bool, whole: float, blocks: list[np.ndarray] | None, n_blocks: int) -> None:
    weight = _weight(partition, of_pairs) / whole
    own = np.zeros(len(weight), np.int64) if blocks is None else np.array(blocks[partition.number])
    partition.memory["planes"] = (weight, own, n_blocks)


def _planes(partition: Part, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    weight, own, n_blocks = partition.memory["planes"]
    oracle, rows = partition.memory["oracle"], _problem(partition).rows
    loss, coefficients = oracle(rows.scores(np.array(w)), 1)
    coefficients *= np.repeat(weight, np.diff(oracle.offsets))
    starts = np.searchsorted(own, np.arange(n_blocks + 1))
    there = np.diff(starts) > 0
    offsets = np.zeros(n_blocks)
    offsets[there] = np.add.reduceat(loss * weight, starts[:-1][there]) if there.any() else 0.0
    return rows.block_sums(coefficients, oracle.offsets[starts]), offsets


def _ramp_risk(partition: Part, w: np.ndarray) -> float:
    weight = partition.memory["planes"][0]
    scores = _problem(partition).rows.scores(np.array(w))
    return float(np.sum(weight * partition.memory["oracle"].bounds(scores, 1)))


def _set_anchor(partition: Part, w: np.ndarray) -> None:
    partition.memory["oracle"].set_anchor(_problem(partition).rows.scores(np.array(w)), 1)


def _ask(partition: Part, name: str, method: str, *arguments: Any) -> Any:
    """Call a method of a stored object that has its rows."""
    given = [np.array(one) if isinstance(one, np.ndarray) else one for one in arguments]
    with _rows_for(partition, name) as derived:
        return getattr(derived, method)(*given)


def _trial(partition: Part, t: float) -> tuple[float, float]:
    return partition.memory["pairs"].trial(t)  # needs no rows
