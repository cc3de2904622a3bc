"""The boosting loop over derivatives, tree, leaves, scores and validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import stream
from truerank.core.rounds import tell
from truerank.core.threads import Workers
from truerank.matrices.exact_sums import EVERY_BIT, add_numbers, exact_total
from truerank.matrices.row_copies import RowCopies
from truerank.solvers.early_stopping import EarlyStopping
from truerank.solvers.result import Status
from truerank.trees.ensemble import pad_tree
from truerank.trees.grower import GrowthRules, TreeStructure
from truerank.trees.histogram import GradientSizes, PackingScales, blocks_of_sums

_LARGEST = 1e100  # of grades and weights, so that squares of their sums are finite


@dataclass(frozen=True)
class TreePlan:
    """The checked settings of the boosting loop."""

    n_estimators: int
    learning_rates: np.ndarray  # (n_estimators,)
    rules: GrowthRules
    unit: str
    replace: bool
    subsample: float
    feature_fraction: float
    seed: int


@dataclass
class Progress:
    """The trees so far, as rows of `Ensemble`, and after each tree the validation measure and objective's change."""

    trees: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    gains: list[np.ndarray] = field(default_factory=list)
    valid: list[float] = field(default_factory=list)
    change: list[float] = field(default_factory=list)

    def add(self, tree: TreeStructure, values: np.ndarray, borders: list[np.ndarray], depth: int) -> None:
        """Add a tree with its leaf values."""
        self.trees.append(pad_tree(tree, values, borders, depth))
        gains = np.zeros(len(borders))
        np.add.at(gains, tree.features, tree.gains)
        self.gains.append(gains)

    def keep(self, n_trees: int) -> None:
        for values in (self.trees, self.gains):
            del values[n_trees:]


class BoostedRows:
    """Training rows of a boosting loop. A subclass sets `_derived` and `_at_start`, results of `PartTrees.sizes`."""

    _derived: dict[str, Any]  # at the last derivatives
    _at_start: dict[str, Any]  # at the start scores

    def __init__(self, borders: list[np.ndarray], leaves: Any, copies: RowCopies | None) -> None:
        self.borders, self._leaves, self._copies = borders, leaves, copies

    def derive(self, t: int) -> None:
        """Compute gradients and hessians at the current scores, for tree t."""
        raise NotImplementedError

    def add(self, t: int, tree: TreeStructure, values: np.ndarray) -> None:
        """Add tree t to the scores."""
        raise NotImplementedError

    def _tree(self, scales: PackingScales, n_rows: float, allowed: np.ndarray) -> TreeStructure:
        """Return the next tree, of rows that count as `n_rows`."""
        raise NotImplementedError

    def _leaf_sums(self, tree: TreeStructure) -> tuple[np.ndarray, ...]:
        """Return the sums that determine the leaf values of a tree."""
        raise NotImplementedError

    def sizes(self) -> GradientSizes:
        """Return the magnitudes of the derivatives at the start."""
        return GradientSizes(0, self._at_start["all_gradients"], self._at_start["all_hessians"], True)

    def change(self) -> float:
        """Return the change of the training objective since the start, from the last derivatives (see `Watchman`)."""
        return exact_total(self._derived["change"])

    def grow(self, t: int, allowed: np.ndarray) -> tuple[TreeStructure, np.ndarray]:
        """Return tree t, which uses the features `allowed` (p,), and its leaf values; drop the derivatives."""
        derived = self._derived
        sizes = GradientSizes(derived["n"], derived["gradients"], derived["hessians"], derived["broken"] == 0)
        scales = PackingScales.of(sizes)
        unit = 1.0
        if "weight" in derived:
            unit = exact_total(derived["all_hessians"]) / exact_total(derived["weight"])
        counted = sizes.n_rows if self._copies is None else self._copies.rows_of(int(derived["copies"]))
        tree = self._tree(scales, counted, allowed)
        if not self._leaves.needs_sample:
            return tree, self._leaves.fit(tree)
        return tree, self._leaves.values(tree, *self._leaf_sums(tree), unit)


class Watched(Protocol):
    """Validation queries with the scores of their rows so far."""

    stopping: EarlyStopping | None  # None: the scores are added up, and not measured

    def value_with(self, tree: TreeStructure, values: np.ndarray) -> float:
        """Add a tree to the scores, and return the mean of the measure, or nan if it is not measured."""


class Watchman:
    """A test of divergence that requires only gradients and hessians.

    With u = scores - start, `Σ g u - ½ Σ h u²` is the exact change of a quadratic objective, and an approximation for
    other objectives. A quadratic objective diverges if it rises above its minimum by a quarter of its first value. The
    limit for other objectives is ten times the first value, because the weights of pairs may change from tree to tree.
    """

    _RISE, _ABOVE_START = 0.25, 10.0

    def __init__(self, quadratic: bool) -> None:
        self.quadratic, self.scale, self.least = quadratic, 0.0, 0.0

    def begin(self, sizes: GradientSizes) -> None:
        """Read the derivatives at the start; the objective is at most about (Σ|g|)² / 2Σh there."""
        size, total = exact_total(sizes.gradients), exact_total(sizes.hessians)
        self.scale = 0.5 * (size * size) / total if total > 0 else 0.0  # infinite, not an error, beyond all floats

    def diverges(self, change: float) -> bool:
        """Return whether training diverges, given the change after one more tree."""
        if not np.isfinite(change):
            return True
        self.least = min(self.least, change)
        return change > (self.least + self._RISE * self.scale if self.quadratic else self._ABOVE_START * self.scale)


def change_parts(
    start: float | np.ndarray, gradients: np.ndarray, hessians: np.ndarray, scores: np.ndarray, workers: Workers
) -> np.ndarray:
    """Return `exact_parts` of the rows' shares u (g - h u / 2), u = scores - start; they add up over rows."""
    blocks = blocks_of_sums(len(scores))
    parts = np.zeros((len(blocks), 2, 2048), dtype=np.int64)
    before = np.broadcast_to(np.asarray(start, dtype=np.float64), scores.shape)

    def add(first: int, last: int, own: np.ndarray) -> None:
        block = slice(first, last)
        with np.errstate(all="ignore"):  # of training that diverges
            u = scores[block] - before[block]
            change = u * (gradients[block] - 0.5 * hessians[block] * u)
        add_numbers(change.view(np.uint64), EVERY_BIT, own)

    workers.run(add, blocks, parts)
    total: np.ndarray = parts.sum(axis=0)
    return total


def check_limits(largest_grade: float, largest_weight: float | None) -> None:
    """Raise if squares of sums of grades or weights would over- or underflow, or if all weights of rows are 0."""
    if largest_grade > _LARGEST:
        raise InvalidInputError(
            f"y must lie within ±{_LARGEST:g}, got a magnitude of {largest_grade:g}. Scale y", code="large-grade"
        )
    if largest_weight is None:
        return
    largest = largest_weight
    if largest <= 0:
        raise InvalidInputError("Sample weights must contain at least one non-zero number", argument="sample_weight")
    if not 1.0 / _LARGEST <= largest <= _LARGEST:
        raise InvalidInputError(
            f"the largest weight of a row is {largest:g}; it must lie between {1.0 / _LARGEST:g} and {_LARGEST:g}. "
            f"Divide all weights by it",
            code="weights",
        )


def boost(rows: BoostedRows, plan: TreePlan, watched: Watched | None, progress: Progress, quadratic: bool) -> Status:
    """Add trees to `progress` up to `plan.n_estimators`, until validation stops the training, or until it diverges.

    Each tree has its own random streams, so that 60 trees continued to 100 equal a run of 100 in every bit. Return
    VALIDATION, ALL_ROUNDS, CALLBACK or DIVERGED. If training diverges from the first tree on, raise an
    `InvalidInputError`.
    """
    have, p = len(progress.trees), len(rows.borders)
    everything = np.ones(p, dtype=np.bool_)
    watchman = Watchman(quadratic)
    progress.change += [np.nan] * (have - len(progress.change))
    stopping = None if watched is None else watched.stopping
    if stopping is not None:
        for value in progress.valid:
            stopping.add_value(value)
    status = Status.ALL_ROUNDS
    if have:
        watchman.begin(rows.sizes())
        for change in progress.change:
            watchman.diverges(change)
    for t in range(have, plan.n_estimators + 1):
        rows.derive(t)
        if t == 0:
            watchman.begin(rows.sizes())
        elif t > len(progress.change):
            progress.change.append(rows.change())
            if watchman.diverges(progress.change[-1]):
                status = Status.DIVERGED
                break
        if t == plan.n_estimators:
            break
        allowed = everything if plan.feature_fraction == 1.0 else _allowed_features(p, plan, t)
        tree, values = rows.grow(t, allowed)
        values = plan.learning_rates[t] * values
        progress.add(tree, values, rows.borders, plan.rules.depth)
        rows.add(t, tree, values)
        measured = None
        if watched is not None:
            measured = watched.value_with(tree, values)
            progress.valid.append(measured)
            if stopping is not None:
                stopping.add_value(measured)
        del tree  # memory: it may hold every row's leaf
        asked = tell(t + 1, plan.n_estimators, validation=measured)
        if stopping is not None and stopping.exhausted:
            status = Status.VALIDATION
            break
        if asked:
            status = Status.CALLBACK
            break
    chooses = stopping is not None and stopping.patience is not None
    _keep_best(progress, plan, status, stopping.best_round if stopping is not None and chooses else None)
    return status


def _keep_best(progress: Progress, plan: TreePlan, status: Status, best_round: int | None) -> None:
    """Keep the trees up to the best round (None: all), or up to the lowest objective if training diverged."""
    progress.change += [np.nan] * (len(progress.trees) - len(progress.change))
    if status is Status.DIVERGED:
        least = int(np.nanargmin(progress.change)) + 1
        if not progress.change[least - 1] < 0.0:
            unlearned = sum(not tree[-1].any() for tree in progress.trees)
            if (plan.replace or plan.subsample < 1.0) and unlearned:
                raise InvalidInputError(
                    f"none of the first {len(progress.trees)} trees lowered the objective, and {unlearned} of them "
                    "sampled only rows without information, such as rows of weight 0. Raise subsample (it is "
                    f"{plan.subsample:g}), or remove the rows of weight 0"
                )
            raise InvalidInputError(
                f"training diverges. Lower learning_rate (it is {plan.learning_rates[0]:g}) or raise alpha (it is "
                f"{plan.rules.alpha:g})",
                code="diverged",
            )
        progress.keep(least)
        best_round = None if best_round is None else min(best_round, least)
    if best_round is not None:
        progress.keep(best_round)


def _allowed_features(n_features: int, plan: TreePlan, t: int) -> np.ndarray:
    """Return a mask (n_features,) of the features that tree t may use."""
    chosen = max(1, round(plan.feature_fraction * n_features))
    allowed = np.zeros(n_features, dtype=np.bool_)
    allowed[stream(plan.seed, "features", t).permutation(n_features)[:chosen]] = True
    return allowed
