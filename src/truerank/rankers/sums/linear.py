"""Express the problems of linear learners as sums over parts of the rows, added in a fixed order.

A part keeps its own `PartProblem`, in units that all parts share.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import check_choice, is_sparse
from truerank.core.errors import InvalidInputError
from truerank.data.grouping import at_places, offsets_of
from truerank.data.row_source import Part, RowSource, ask
from truerank.data.rows import beside, joined, largest
from truerank.losses.cross_entropy import CrossEntropy
from truerank.losses.graded_pairs import GradedPairs, weight_shares
from truerank.losses.protocols import Oracle
from truerank.matrices.binned import BinnedMatrix
from truerank.matrices.content import (
    inverse_scales,
    largest_magnitudes,
    powers_of_two,
    scales_of_spread,
    squares_and_counts,
)
from truerank.rankers.linear import PartProblem
from truerank.solvers.cutting_planes import CuttingPlanes, block_bounds
from truerank.solvers.hinge_planes import HingePlanes
from truerank.solvers.newton import PairSums

OracleOf = Callable[[np.ndarray, np.ndarray], Oracle]
_SAMPLE_ROWS = 20_000  # of all parts, from which the first Hessian is made


class LinearProblem:
    """Training data of a linear ranker, in scaled units.

    `scale` is "auto", "never" or an array of divisors; the attribute has the divisors (p,) or is None. With an
    `intercept`, `middle` (p,) or 0 is subtracted before the division. `alone` is the `PartProblem` of rows that are one
    part in memory, else None.
    """

    def __init__(self, data: RowSource, scale: object, *, intercept: float = 0.0) -> None:
        self.data, self._intercept = data, intercept
        self._heaviest = None if data.query_weight is None else float(data.query_weight.max())
        self.middle: np.ndarray | float = 0.0
        magnitudes, not_dense, binned = data.statistics(_order, data.part_jobs, merge=largest, keep=True)
        self.scale: np.ndarray | None = scale if isinstance(scale, np.ndarray) else None
        if self.scale is None and check_choice(scale, "scale", ("auto", "never")) == "auto" and not binned:
            unit = powers_of_two(magnitudes)
            squares, counts = data.statistics(_squares, unit, self._heaviest)
            self.scale = scales_of_spread(np.sqrt(squares / np.where(counts > 0, counts, 1.0)) * unit)
        self._unit = None if self.scale is None else inverse_scales(self.scale)
        if intercept and self._unit is not None and not not_dense:
            self.middle = data.statistics(_column_sums, self._heaviest, 1.0 / self._mass())
        self.n_weights = int(data.statistics(_set_units, self.scale, intercept, merge=largest, keep=True))
        self.alone: PartProblem | None = None if data.alone is None else data.alone.memory["problem"]

    @property
    def only(self) -> PartProblem:
        """The `PartProblem` of rows that are known to be one part in memory."""
        assert self.alone is not None
        return self.alone

    def _mass(self) -> float:
        """Return the number of rows, or the sum of their weights as shares of the largest weight."""
        if self._heaviest is None:
            return float(self.data.n_rows)
        return float(self.data.statistics(_mass, self._heaviest))

    def coef(self, weights: np.ndarray) -> np.ndarray:
        """Return weights (p,) for the original columns, from those of the learner."""
        weights = weights[:-1] if self._intercept else weights
        return weights.copy() if self._unit is None else weights * self._unit

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the sum over parts of `PartProblem.moments`."""
        gram, moment = self.data.statistics(_ask, "problem", "moments")
        return np.array(gram), np.array(moment)

    def distinct_grades(self) -> np.ndarray:
        """Return the distinct grades, ascending."""
        return np.array(self.data.statistics(_grades, merge=np.union1d))

    def score_spread(self, weights: np.ndarray) -> float:
        """Return the standard deviation of all scores, weighted by document."""
        mass = self._mass()
        mean = float(self.data.statistics(_score_powers, weights, self._heaviest, 0.0, 1)) / mass
        return math.sqrt(float(self.data.statistics(_score_powers, weights, self._heaviest, mean, 2)) / mass)

    def label_weights(self, rel: float) -> tuple[float, float]:
        """Return the total weight of relevant and of other documents, whose weight is that of their query."""
        relevant, others = self.data.statistics(_label_weights, rel)
        return float(relevant), float(others)

    def document_planes(self, rel: float, weights: tuple[float, float]) -> CuttingPlanes:
        """Return the problem of `PartProblem.document_hinge`."""
        if self.alone is not None:  # an exact line search, which reads all rows together, takes a third of the rounds
            return HingePlanes(self.alone.rows, self.alone.document_hinge(rel, weights))
        shift = np.zeros(self.n_weights - 1)
        if self._unit is not None:
            shift += self.middle * self._unit / self._intercept
        return SummedDocuments(self, rel, weights, shift)


class SummedCrossEntropy:
    """The sum of the parts' cross entropies, each with its share of the penalty; `CrossEntropy` has the methods."""

    def __init__(self, problem: LinearProblem, alpha: float, normalize: bool, objective: object) -> None:
        self._rows, self.n_weights = problem.data, problem.n_weights
        self._share = min(1.0, _SAMPLE_ROWS / max(1, problem.data.n_rows))
        opened = self._rows.statistics(_open_cross_entropy, objective, alpha / problem.data.n_parts, keep=True)
        self.n_queries, self.has_hessian = int(opened[0]), not opened[2]
        if normalize and self.n_queries:
            self._rows.statistics(_normalize, float(opened[1]), keep=True)

    def value_and_gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient = self._rows.statistics(_ask, "loss", "value_and_gradient", weights)
        return float(loss), np.array(gradient)

    def hessian(self, weights: np.ndarray, max_rows: float = np.inf) -> np.ndarray:
        return np.array(self._rows.statistics(_hessian, weights, 1.0 if np.isinf(max_rows) else self._share))

    def curvature(self) -> np.ndarray:
        return np.array(self._rows.statistics(_ask, "loss", "curvature"))

    def pass_over_queries(self, weights: np.ndarray, learning_rate: float) -> None:
        if self._rows.alone is None:
            raise InvalidInputError(
                'solver="gradient-descent" changes the weights after each query and requires all rows in memory. '
                'For rows in parts set solver="lbfgs"',
                argument="solver",
            )
        self._rows.alone.memory["loss"].pass_over_queries(weights, learning_rate)


class SummedPairs:
    """The sums of `PairSums` over parts, with its methods and the weights of `weight_shares`."""

    def __init__(self, problem: LinearProblem, weighting: str) -> None:
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
        loss, slope = self._rows.statistics(ask, "pairs", "trial", t, keep=True)  # needs no rows
        return float(loss), float(slope)

    def accept(self, t: float) -> tuple[np.ndarray, float]:
        gradient, degrees = self._rows.statistics(_ask, "pairs", "accept", t, keep=True)
        return np.array(gradient), float(degrees)


class SummedPlanes(CuttingPlanes):
    """`CuttingPlanes` in which the plane of a block is the sum of the planes of the parts.

    `oracle_of(y, offsets)` makes the oracle of a part. The weights of kept queries sum to 1; with `of_pairs` they are
    those of `SummedPairs`.
    """

    def __init__(
        self, problem: LinearProblem, oracle_of: OracleOf | None, n_blocks: int | None, of_pairs: bool = False
    ) -> None:
        self._rows = problem.data
        if oracle_of is not None:
            self._rows.statistics(_open_oracle, oracle_of, keep=True)
        total, kept, queries = self._rows.statistics(_kept_weight, of_pairs)
        whole = 1.0 if of_pairs else float(total) or 1.0
        blocks, n = (None, 1) if n_blocks == 1 else _blocks_by_content(self._rows, of_pairs, n_blocks)
        self._rows.statistics(_open_planes, of_pairs, whole, blocks, n, keep=True)
        super().__init__(problem.n_weights, n, float(total) > 0, int(queries) - int(kept))

    def planes_at(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradients, offsets = self._rows.statistics(_planes, w)
        return np.array(gradients), np.array(offsets)

    def _block_weight(self) -> np.ndarray:
        return np.array(self._rows.statistics(ask, "planes", "block_weights"))


class SummedDocuments(SummedPlanes):
    """The hinge on single documents, with all rows as one query, in shifted columns.

    A column minus its mean is the column and a share of the intercept: `shift` (p,) has these shares.
    """

    def __init__(self, problem: LinearProblem, rel: float, weights: tuple[float, float], shift: np.ndarray) -> None:
        self._rows, self._shift = problem.data, shift
        self._rows.statistics(_open_documents, rel, weights, keep=True)
        self._rows.statistics(_open_planes, False, 1.0, None, 1, keep=True)
        CuttingPlanes.__init__(self, problem.n_weights, 1, True, 0)

    def planes_at(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moved = w.copy()
        moved[-1] -= float(np.sum(self._shift * w[:-1]))
        gradients, offsets = super().planes_at(moved)
        gradients[:, :-1] -= gradients[:, -1:] * self._shift
        return gradients, offsets


class RampProblem:
    """The ramp bound over rows, and the convex problem around an anchor, which the oracles of the parts hold."""

    def __init__(self, problem: LinearProblem, oracle_of: OracleOf, n_blocks: int | None) -> None:
        self._problem, self._n_blocks, self._rows = problem, n_blocks, problem.data
        first = SummedPlanes(problem, oracle_of, n_blocks)
        self.n_weights, self.anything, self.n_left_out = first.n_weights, first.anything, first.n_left_out
        self._mark = self._rows.mark()

    def risk(self, w: np.ndarray) -> float:
        """Return the ramp bound at w, without the regularisation term."""
        return float(self._rows.statistics(_ramp_risk, w))

    def planes_around(self, w: np.ndarray) -> SummedPlanes:
        """Return the convex problem whose anchor is the ranking by w."""
        self._rows.rewind(self._mark)
        self._rows.statistics(_set_anchor, w, keep=True)
        return SummedPlanes(self._problem, None, self._n_blocks)


def _blocks_by_content(data: RowSource, of_pairs: bool, n_blocks: int | None) -> tuple[list[np.ndarray], int]:
    """Return the block of every query of each part, at the positions of its problem, and the number of blocks."""
    parts = data.statistics(_query_keys, of_pairs, merge=beside)
    *keys, sizes, counts = (joined(one) for one in zip(*parts))
    order = np.lexsort(keys)
    bounds = block_bounds(offsets_of(sizes[order]), counts[order], n_blocks)
    block = at_places(np.searchsorted(bounds, np.arange(len(order)), side="right") - 1, order)
    return np.split(block, np.cumsum([len(one[0]) for one in parts])[:-1]), len(bounds) - 1


# Statistics of a part.


def _order(part: Part, n_jobs: int | None) -> tuple[np.ndarray, bool, bool]:
    """Order the rows; return the columns' largest magnitudes (p,), if X is sparse or binned, and if it is binned."""
    X = part.data.X
    part.memory["problem"] = PartProblem(part.data, n_jobs)
    if isinstance(X, BinnedMatrix):
        return np.zeros(0), True, True
    return largest_magnitudes(X), is_sparse(X), False


def _shares(problem: PartProblem, heaviest: float | None) -> np.ndarray:
    """Return the weight of each query as a share of the largest weight (m,); 1 without weights."""
    weight = np.ones(len(problem.offsets) - 1) if problem.query_weight is None else problem.query_weight
    return weight if heaviest is None else weight / heaviest


def _mass(part: Part, heaviest: float) -> float:
    problem = part.memory["problem"]
    return float(np.sum(_shares(problem, heaviest) * np.diff(problem.offsets)))


def _squares(part: Part, unit: np.ndarray, heaviest: float | None) -> tuple[np.ndarray, np.ndarray]:
    problem = part.memory["problem"]
    shares = _shares(problem, heaviest)
    return squares_and_counts(part.data.X, problem.order, problem.offsets, shares, np.asarray(unit))


def _column_sums(part: Part, heaviest: float | None, share: float) -> np.ndarray:
    X, weight = part.data.X, part.data.weight_by_query
    if heaviest is None:
        return np.asarray(np.sum(X, axis=0, dtype=np.float64)) * share
    by_row = np.repeat(weight / heaviest, part.data.group_sizes)
    return np.asarray(np.sum(X * by_row[:, None], axis=0)) * share


def _set_units(part: Part, scale: np.ndarray | None, intercept: float) -> int:
    problem = part.memory["problem"]
    problem.set_units(part.data.X, None if scale is None else np.array(scale), intercept)
    _let_go(part, problem)
    return int(problem.n_weights)


def _let_go(part: Part, derived: Any) -> None:
    if not part.hold:
        del derived.rows


@contextmanager
def _rows_for(part: Part, name: str) -> Iterator[Any]:
    """Yield a stored object with its rows, which are read again unless they stay in memory."""
    derived = part.memory[name]
    if not part.hold:
        derived.rows = part.memory["problem"].rows_of(part.data.X)
    try:
        yield derived
    finally:
        _let_go(part, derived)


def _problem(part: Part) -> PartProblem:
    """Return the problem with its rows, which a copy reads again unless they stay in memory."""
    problem: PartProblem = part.memory["problem"]
    if not part.hold:
        problem = copy.copy(problem)
        problem.rows = problem.rows_of(part.data.X)
    return problem


def _open_cross_entropy(part: Part, objective: Any, alpha: float) -> tuple[int, float, bool]:
    problem = _problem(part)
    loss = part.memory["loss"] = CrossEntropy(
        problem.rows, problem.y, problem.offsets, problem.query_weight,
        alpha=alpha, objective=objective, n_jobs=problem.n_jobs,
    )  # fmt: skip
    _let_go(part, loss)
    return loss.n_queries, float(loss.weight.sum()), not loss.has_hessian


def _normalize(part: Part, total: float) -> None:
    part.memory["loss"].weight /= total


def _hessian(part: Part, weights: np.ndarray, share: float) -> np.ndarray:
    with _rows_for(part, "loss") as loss:
        if not loss.n_queries:
            return np.array(loss.alpha * np.eye(len(weights)))
        rows = np.inf if share >= 1.0 else max(1, round(share * loss.rows.n_rows))
        return np.array(loss.hessian(np.array(weights), rows))


def _open_pairs(part: Part, weighting: str) -> tuple[float, float, float, float]:
    problem = _problem(part)
    sums = PairSums(problem.rows, GradedPairs(problem.y, problem.offsets, problem.query_weight, problem.n_jobs))
    part.memory["pairs"] = sums  # scores and sorted pairs: 60 bytes a row, with the values
    _let_go(part, sums)
    shares, weighed = weight_shares(weighting, *_pair_counts(part))
    return sums.total_weight, sums.n_pairs, float(shares.sum()), weighed


def _pair_counts(part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    pairs = part.memory["pairs"].pairs
    return pairs.n_pairs, pairs.offsets, part.memory["problem"].query_weight


def _weigh_pairs(part: Part, weighting: str, scale: float) -> float:
    sums = part.memory["pairs"]
    shares, _ = weight_shares(weighting, *_pair_counts(part))
    sums.pairs.set_weight(scale * shares / np.maximum(sums.pairs.n_pairs, 1.0))
    sums.total_weight = sums.pairs.total_weight
    return sums.total_weight


def _grades(part: Part) -> np.ndarray:
    return np.unique(part.memory["problem"].y)


def _score_powers(part: Part, weights: np.ndarray, heaviest: float | None, middle: float, power: int) -> float:
    problem = _problem(part)
    own = problem.document_weights() / (1.0 if heaviest is None else heaviest)
    return float(np.sum(own * (problem.rows.scores(np.array(weights)) - middle) ** power))


def _open_oracle(part: Part, oracle_of: OracleOf) -> None:
    problem = part.memory["problem"]
    if part.hold:
        problem.rows.lay_out()
    part.memory["oracle"] = oracle_of(problem.y, problem.offsets)
    part.memory["query weight"] = problem.query_weight


def _label_weights(part: Part, rel: float) -> tuple[float, float]:
    problem = part.memory["problem"]
    own, relevant = problem.document_weights(), problem.y >= rel
    return float(own[relevant].sum()), float(own[~relevant].sum())


def _open_documents(part: Part, rel: float, weights: tuple[float, float]) -> None:
    part.memory["oracle"] = part.memory["problem"].document_hinge(rel, weights)
    part.memory["query weight"] = None


def _weight(part: Part, of_pairs: bool) -> np.ndarray:
    """Return the weight of each query at its place, 0 if the oracle does not keep it."""
    oracle, own = part.memory["oracle"], part.memory["query weight"]
    if of_pairs:
        own = part.memory["pairs"].pairs.weight
    return np.where(oracle.kept, np.ones(len(oracle.kept)) if own is None else own, 0.0)


def _kept_weight(part: Part, of_pairs: bool) -> tuple[float, int, int]:
    kept = part.memory["oracle"].kept
    return float(_weight(part, of_pairs)[kept].sum()), int(kept.sum()), len(kept)


def _query_keys(part: Part, of_pairs: bool) -> list[tuple[np.ndarray, ...]]:
    """Return the keys of the order by content, the sizes, and which queries count, at the positions of the problem."""
    problem = part.memory["problem"]
    return [(*problem.keys, np.diff(problem.offsets), _weight(part, of_pairs) > 0)]


def _open_planes(part: Part, of_pairs: bool, whole: float, blocks: list[np.ndarray] | None, n_blocks: int) -> None:
    weight, offsets = _weight(part, of_pairs) / whole, part.memory["oracle"].offsets
    own = np.zeros(len(weight), np.int64) if blocks is None else blocks[part.number]
    starts = np.searchsorted(own, np.arange(n_blocks + 1))
    part.memory["planes"] = _Planes(weight, np.repeat(weight, np.diff(offsets)), starts, offsets[starts])


class _Planes(NamedTuple):
    weight: np.ndarray  # of each query (m,)
    row_weight: np.ndarray  # (n,)
    starts: np.ndarray  # first query of each block (blocks + 1,)
    row_starts: np.ndarray

    def by_block(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values by query (m,) over the queries of each block (blocks,)."""
        sums, there = np.zeros(len(self.starts) - 1), np.diff(self.starts) > 0
        if there.any():
            sums[there] = np.add.reduceat(values, self.starts[:-1][there])
        return sums

    def block_weights(self) -> np.ndarray:
        return self.by_block(self.weight)


def _planes(part: Part, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    planes, problem = part.memory["planes"], _problem(part)
    loss, coefficients = part.memory["oracle"](problem.rows.scores(np.array(w)), problem.n_jobs)
    coefficients *= planes.row_weight
    return problem.rows.block_sums(coefficients, planes.row_starts), planes.by_block(loss * planes.weight)


def _ramp_risk(part: Part, w: np.ndarray) -> float:
    problem, weight = _problem(part), part.memory["planes"].weight
    return float(np.sum(weight * part.memory["oracle"].bounds(problem.rows.scores(np.array(w)), problem.n_jobs)))


def _set_anchor(part: Part, w: np.ndarray) -> None:
    problem = _problem(part)
    part.memory["oracle"].set_anchor(problem.rows.scores(np.array(w)), problem.n_jobs)


def _ask(part: Part, name: str, method: str, *arguments: Any) -> Any:
    """Call a method of a stored object that has its rows."""
    given = [np.array(one) if isinstance(one, np.ndarray) else one for one in arguments]
    with _rows_for(part, name) as derived:
        return getattr(derived, method)(*given)
