"""The boosting loop: derivatives, tree, leaves, scores, validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.printing import note
from truerank.core.random_streams import stream
from truerank.core.rounds import tell
from truerank.core.threads import row_blocks
from truerank.matrices.exact_sums import exact_parts, exact_total
from truerank.solvers.early_stopping import EarlyStopping
from truerank.solvers.result import Status
from truerank.trees.ensemble import pad_tree
from truerank.trees.grower import GrowthRules, TreeStructure
from truerank.trees.histogram import GradientSizes


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
    verbose: int
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
    """The training rows as the loop sees them: here (`boosted_rows.RowsHere`) or in the partitions of a cluster.

    Attributes
    ----------
    borders : list of float64 arrays
        The borders of each feature.
    """

    borders: list[np.ndarray]

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
    """Validation queries with the scores of their rows so far.

    Attributes
    ----------
    stopping : EarlyStopping
    """

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
        self.quadratic, self.scale = quadratic, 0.0

    def begin(self, sizes: GradientSizes) -> None:
        """Take the derivatives at the start: the objective is about (Σ|g|)² / 2Σh there, or less."""
        total = exact_total(sizes.hessians)
        self.scale = 0.5 * exact_total(sizes.gradients) ** 2 / total if total > 0 else 0.0

    def diverges(self, changes: list[float]) -> bool:
        """Whether the last of the changes by tree says that training diverges."""
        last = changes[-1]
        if not np.isfinite(last):
            return True
        if self.quadratic:
            return last > min(0.0, float(np.nanmin(changes))) + self._RISE * self.scale
        return last > self._ABOVE_START * self.scale


def change_parts(start: Any, gradients: np.ndarray, hessians: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """`exact_parts` of the rows' shares in the change since the start, a number or an array (n,); they add up."""
    parts = np.zeros((2, 2048), dtype=np.int64)
    for first, last in row_blocks(len(scores)):
        block = slice(first, last)
        u = scores[block] - (start[block] if isinstance(start, np.ndarray) else start)
        with np.errstate(over="ignore", invalid="ignore"):
            parts += exact_parts(u * (gradients[block] - 0.5 * hessians[block] * u))
    return parts


def boost(rows: BoostedRows, plan: Plan, watched: Watched | None, progress: Progress, quadratic: bool) -> Status:
    """Add trees to `progress` until there are `plan.n_estimators`, validation says stop, or training diverges.

    Tree t draws from random streams of its own, so that a run of 100 trees and one of 60 continued to 100 agree in
    every bit. `quadratic` is the objective's.

    Returns
    -------
    Status
        VALIDATION (the trees after the best round are dropped), ALL_ROUNDS, CALLBACK, or DIVERGED.

    Raises
    ------
    InvalidInputError
        When training diverges from the first tree on.
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
    for t in range(have, plan.n_estimators + 1):
        rows.derive(t)
        if t == 0:
            watchman.begin(rows.sizes())
        elif t > len(progress.change):
            progress.change.append(rows.change())
            if watchman.diverges(progress.change):
                status = Status.DIVERGED
                break
        if t == plan.n_estimators:
            break
        tree, values = rows.grow(t, _allowed_features(p, plan.feature_fraction, stream(plan.seed, "features", t)))
        values = plan.learning_rates[t] * values
        progress.add(tree, values, rows.borders, plan.rules.depth)
        rows.add(t, tree, values)
        measured = None
        if watched is not None and stopping is not None:
            measured = watched.value_with(tree, values)
            progress.valid.append(measured)
            stopping.add_value(measured)
        del tree  # memory: it may hold every row's leaf
        if plan.verbose and (t + 1) % plan.verbose == 0:
            validation = "" if stopping is None else f": validation {stopping.measure.name} {measured:.4f}"
            note(f"tree {t + 1}{validation}")
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
            raise InvalidInputError(
                f"training diverges. Lower learning_rate (it is {plan.learning_rates[0]:g}) or raise alpha (it is "
                f"{plan.rules.alpha:g})"
            )
        progress.keep(least)
        best_round = None if best_round is None else min(best_round, least)
    if best_round is not None:
        progress.keep(best_round)


def _allowed_features(n_features: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """The features that one tree may ask about."""
    chosen = max(1, round(share * n_features))
    allowed = np.zeros(n_features, dtype=np.bool_)
    allowed[rng.permutation(n_features)[:chosen] if chosen < n_features else slice(None)] = True
    return allowed
