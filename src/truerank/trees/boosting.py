"""The boosting loop: derivatives, tree, leaves, scores, validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.random_streams import stream
from truerank.core.rounds import tell
from truerank.core.threads import Workers
from truerank.matrices.exact_sums import add_numbers, exact_total
from truerank.solvers.early_stopping import EarlyStopping
from truerank.solvers.result import Status
from truerank.trees.ensemble import pad_tree
from truerank.trees.grower import GrowthRules, TreeStructure
from truerank.trees.histogram import GradientSizes, blocks_of_sums, for_kernel


@dataclass(frozen=True)
class Plan:
    """The settings of the loop, checked."""

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
    """The trees so far, as lists of the rows of `Ensemble`; after each tree the validation measure and by how much
    the training objective has changed since the start (see `Watchman`)."""

    trees: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    gains: list[np.ndarray] = field(default_factory=list)
    valid: list[float] = field(default_factory=list)
    change: list[float] = field(default_factory=list)

    def add(self, tree: TreeStructure, values: np.ndarray, borders: list[np.ndarray], depth: int) -> None:
        """One more tree, with its leaves' values."""
        self.trees.append(pad_tree(tree, values, borders, depth))
        gains = np.zeros(len(borders))
        np.add.at(gains, tree.features, tree.gains)
        self.gains.append(gains)

    def keep(self, n_trees: int) -> None:
        """Forget the trees after the first `n_trees`."""
        for values in (self.trees, self.gains):
            del values[n_trees:]


class BoostedRows(Protocol):
    """The training rows as the loop sees them: here (`boosted_rows.RowsHere`) or in the partitions of a cluster."""

    borders: list[np.ndarray]  # of each feature

    def derive(self, t: int) -> None:
        """Take gradients and hessians at the scores so far, for tree t.

        Rows that have trees already begin with those at the scores before the first.
        """

    def sizes(self) -> GradientSizes:
        """Magnitudes of the derivatives that were taken last, of all rows."""
        ...

    def change(self) -> float:
        """By how much the training objective has changed since the start, by these derivatives (see `Watchman`)."""
        ...

    def grow(self, t: int, allowed: np.ndarray) -> tuple[TreeStructure, np.ndarray]:
        """Tree t for these derivatives, which are dropped, from the features `allowed` (p,); and its leaves' values."""
        ...

    def add(self, t: int, tree: TreeStructure, values: np.ndarray) -> None:
        """Advance the scores by tree t."""


class Watched(Protocol):
    """Validation queries with the scores of their rows so far."""

    stopping: EarlyStopping

    def value_with(self, tree: TreeStructure, values: np.ndarray) -> float:
        """Advance the scores by a tree; the measure's mean."""
        ...


class Watchman:
    """Says from gradients and hessians alone whether training diverges.

    With u = scores - start, `Σ g u - ½ Σ h u²` is the change of a quadratic objective, exactly; of another it
    is that of the parabola that the derivatives describe at the scores; where it is positive, the way back leads down.
    A quadratic objective diverges that stands a quarter of its first value above its least: sampling moves it by less.
    Of others, whose pairs may change their weights from tree to tree, ten times the first value must be lost, which a
    diverging one, growing by a factor from tree to tree, soon has.
    """

    _RISE, _ABOVE_START = 0.25, 10.0

    def __init__(self, quadratic: bool) -> None:
        self.quadratic, self.scale, self.least = quadratic, 0.0, 0.0

    def begin(self, sizes: GradientSizes) -> None:
        """Take the derivatives at the start: the objective is about (Σ|g|)² / 2Σh there, or less."""
        size, total = exact_total(sizes.gradients), exact_total(sizes.hessians)
        self.scale = 0.5 * (size * size) / total if total > 0 else 0.0  # infinite, not an error, beyond all floats

    def diverges(self, change: float) -> bool:
        """Whether training diverges, by the change after one more tree."""
        if not np.isfinite(change):
            return True
        self.least = min(self.least, change)
        return change > (self.least + self._RISE * self.scale if self.quadratic else self._ABOVE_START * self.scale)


def change_parts(
    start: Any, gradients: np.ndarray, hessians: np.ndarray, scores: np.ndarray, workers: Workers
) -> np.ndarray:
    """`exact_parts` of the rows' shares in the change since the start, a number or an array (n,); they add up."""
    blocks = blocks_of_sums(len(scores))
    parts = np.zeros((len(blocks), 2, 2048), dtype=np.int64)
    before = np.broadcast_to(np.asarray(start, dtype=np.float64), scores.shape)

    def add(first: int, last: int, own: np.ndarray) -> None:
        _add_changes(*(for_kernel(one[first:last]) for one in (before, gradients, hessians, scores)), own)

    workers.run(add, [(*block, own) for block, own in zip(blocks, parts)])
    total: np.ndarray = parts.sum(axis=0)
    return total


def boost(rows: BoostedRows, plan: Plan, watched: Watched | None, progress: Progress, quadratic: bool) -> Status:
    """Add trees to `progress` until there are `plan.n_estimators`, validation says stop, or training diverges.

    Tree t draws from random streams of its own, so that a run of 100 trees and one of 60 continued to 100 agree in
    every bit. `quadratic` is the objective's. Returns VALIDATION (the trees after the best round are dropped),
    ALL_ROUNDS, CALLBACK or DIVERGED; training that diverges from the first tree on is an `InvalidInputError`.
    """
    have, p = len(progress.trees), len(rows.borders)
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
        tree, values = rows.grow(t, _allowed_features(p, plan, t))
        values = plan.learning_rates[t] * values
        progress.add(tree, values, rows.borders, plan.rules.depth)
        rows.add(t, tree, values)
        measured = None
        if watched is not None and stopping is not None:
            measured = watched.value_with(tree, values)
            progress.valid.append(measured)
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


def _keep_best(progress: Progress, plan: Plan, status: Status, best_round: int | None) -> None:
    """Keep the trees up to the best round by validation, or up to the least objective where training diverged.

    `best_round` is None where no validation queries stop the training. Training that diverges from its first tree is an
    `InvalidInputError`.
    """
    progress.change += [np.nan] * (len(progress.trees) - len(progress.change))
    if status is Status.DIVERGED:
        least = int(np.nanargmin(progress.change)) + 1
        if not progress.change[least - 1] < 0.0:
            unlearned = sum(not tree[-1].any() for tree in progress.trees)
            if (plan.replace or plan.subsample < 1.0) and unlearned:
                raise InvalidInputError(
                    f"{unlearned} of the first {len(progress.trees)} trees saw a sample that teaches nothing, such as "
                    f"rows of weight 0 alone, and no other lowered the objective: raise subsample (it is "
                    f"{plan.subsample:g}), or leave rows of weight 0 out"
                )
            raise InvalidInputError(
                f"training diverges. Lower learning_rate (it is {plan.learning_rates[0]:g}) or raise alpha (it is "
                f"{plan.rules.alpha:g})"
            )
        progress.keep(least)
        best_round = None if best_round is None else min(best_round, least)
    if best_round is not None:
        progress.keep(best_round)


def _allowed_features(n_features: int, plan: Plan, t: int) -> np.ndarray:
    """The features that tree t may ask about, a mask (n_features,)."""
    chosen = max(1, round(plan.feature_fraction * n_features))
    if chosen == n_features:
        return np.ones(n_features, dtype=np.bool_)
    allowed = np.zeros(n_features, dtype=np.bool_)
    allowed[stream(plan.seed, "features", t).permutation(n_features)[:chosen]] = True
    return allowed


@kernel
def _add_changes(start, g, h, scores, parts):
    """Add u (g - h u / 2), u = scores - start, of every row to `exact_parts`; all but the scores (n,) may be (1,)."""
    n = scores.size
    start_step, g_step, h_step = np.int64(start.size == n), np.int64(g.size == n), np.int64(h.size == n)
    change = np.empty(n)
    for i in range(n):
        u = scores[i] - start[i * start_step]
        change[i] = u * (g[i * g_step] - 0.5 * h[i * h_step] * u)
    add_numbers(change.view(np.uint64), ~np.uint64(0), parts)
