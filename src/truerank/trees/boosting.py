"""The boosting loop: objective, sample, tree, leaves, scores, validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.printing import note
from truerank.core.random_streams import stream
from truerank.core.rounds import tell
from truerank.core.threads import Workers, row_blocks
from truerank.data.ranking_data import RankingData
from truerank.losses.boosting import checked
from truerank.losses.protocols import BoostingObjective
from truerank.matrices.exact_sums import exact_parts, exact_total
from truerank.solvers.result import Status
from truerank.trees.ensemble import pad_tree
from truerank.trees.grower import Grower, GrowthRules
from truerank.trees.histogram import GradientSizes, pack_gradients
from truerank.trees.rows import ContentOrder, Rows, Sample


@dataclass(frozen=True)
class Plan:
    """The settings of the loop, checked."""

    n_estimators: int
    learning_rate: float
    rules: GrowthRules
    unit: str
    replace: bool
    subsample: float
    feature_fraction: float
    patience: int | None
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

    def keep(self, n_trees: int) -> None:
        """Forget the trees after the first `n_trees`."""
        for values in (self.trees, self.gains):
            del values[n_trees:]


@dataclass
class Watched:
    """Validation queries: their rows, scores (n,) up to the last tree, and the measure with its judgments."""

    rows: Rows
    scores: np.ndarray = field(repr=False)
    measure: Any
    judgements: Any = field(repr=False)

    @property
    def sign(self) -> float:
        """1 where a larger value of the measure is better, else -1."""
        return 1.0 if getattr(self.measure, "higher_is_better", True) else -1.0

    def value(self) -> float:
        """The measure's mean over the validation queries."""
        return self.value_of(self.scores)

    def value_of(self, scores: np.ndarray) -> float:
        """The measure's mean at other scores (n,)."""
        return float(self.measure.mean(self.judgements, scores))


class Watchman:
    """Knows from gradients and hessians alone how the training objective has changed since the start.

    With u = scores - start, `Σ g u - ½ Σ h u²` is the change of a quadratic objective, exactly; of another it
    is that of the parabola that the derivatives describe at the scores; where it is positive, the way back leads down.
    A quadratic objective diverges that stands a quarter of its first value above its least: sampling moves it by less.
    Of others, whose pairs may change their weights from tree to tree, ten times the first value must be lost, which a
    diverging one, growing by a factor from tree to tree, soon has.
    """

    _RISE, _ABOVE_START = 0.25, 10.0

    def __init__(self, start: Any, quadratic: bool) -> None:
        self.start, self.quadratic, self.scale = start, quadratic, 0.0

    def begin(self, sizes: GradientSizes) -> None:
        """Take the derivatives at the start: the objective is about (Σ|g|)² / 2Σh there, or less."""
        total = exact_total(sizes.hessians)
        self.scale = 0.5 * exact_total(sizes.gradients) ** 2 / total if total > 0 else 0.0

    def change(self, gradients: np.ndarray, hessians: np.ndarray, scores: np.ndarray) -> float:
        """The change since the start, in the objective's own unit."""
        return exact_total(change_parts(self.start, gradients, hessians, scores))

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


def boost(
    data: RankingData,
    rows: Rows,
    scores: np.ndarray,
    start: Any,
    objective: BoostingObjective,
    leaves: Any,
    plan: Plan,
    watched: Watched | None,
    workers: Workers,
    progress: Progress,
) -> Status:
    """Add trees to `progress` until there are `plan.n_estimators`, validation says stop, or training diverges.

    Tree t draws from random streams of its own, so that a run of 100 trees and one of 60 continued to 100 agree in
    every bit. `scores` (n,) are those of the trees that `progress` has already, and are advanced in place; `start`, a
    number or an array (n,), are those before the first tree.

    Returns
    -------
    Status
        VALIDATION (the trees after the best round are dropped), ALL_ROUNDS, CALLBACK, or DIVERGED.

    Raises
    ------
    InvalidInputError
        When training diverges from the first tree on.
    """
    row_weight = data.row_weight
    samples = plan.replace or plan.subsample < 1.0
    order = ContentOrder(data) if samples or getattr(objective, "by_place", False) else None
    if order is not None and getattr(objective, "by_place", False) and hasattr(objective, "reorder"):
        objective.reorder(order.rows)
    grower = Grower(rows.matrix, plan.rules, workers)
    watchman = Watchman(start, objective.quadratic)
    have = len(progress.trees)
    grower.paid |= np.any([gains > 0 for gains in progress.gains], axis=0)
    progress.change += [np.nan] * (have - len(progress.change))
    sign = 1.0 if watched is None else watched.sign
    best, best_round = -np.inf, have
    if progress.valid:
        best_round = int(np.argmax(sign * np.array(progress.valid))) + 1
        best = sign * progress.valid[best_round - 1]
    status = Status.ALL_ROUNDS
    # A quadratic objective's derivatives are computed twice rather than kept while a tree grows.
    again = objective.quadratic
    if have:
        objective.begin(stream(plan.seed, "objective", 0))
        first = np.broadcast_to(start, scores.shape).astype(np.float64)
        watchman.begin(GradientSizes.of(*_derivatives(objective, data, first, order)))
        del first
    for t in range(have, plan.n_estimators + 1):
        objective.begin(stream(plan.seed, "objective", t))
        gradients, hessians = _derivatives(objective, data, scores, order)
        if t == 0:
            watchman.begin(GradientSizes.of(gradients, hessians))
        elif t > len(progress.change):
            progress.change.append(watchman.change(gradients, hessians, scores))
            if watchman.diverges(progress.change):
                status = Status.DIVERGED
                break
        if t == plan.n_estimators:
            break
        drawn = None
        if samples:
            assert order is not None
            drawn = order.draw(stream(plan.seed, "rows", t), plan.unit, plan.replace, plan.subsample)
        allowed = allowed_features(rows.matrix.n_features, plan.feature_fraction, stream(plan.seed, "features", t))
        packed = pack_gradients(gradients, hessians, drawn)
        unit = 1.0
        if leaves.needs_sample and not objective.quadratic:
            weight = float(len(scores)) if row_weight is None else float(np.sum(row_weight))
            unit = float(np.sum(hessians)) / weight
        sample = None
        if leaves.needs_sample and not again:
            sample = Sample(gradients, hessians, drawn, unit)
        del gradients, hessians  # memory
        tree = grower.grow(packed, allowed)
        del packed
        if leaves.needs_sample and again:
            sample = Sample(*_derivatives(objective, data, scores, order), drawn, unit)
        values = plan.learning_rate * leaves.fit(tree, rows, sample)
        leaves.add(tree, rows, values, scores)
        padded = pad_tree(tree, values, rows.matrix.borders, plan.rules.depth)
        gains = np.zeros(rows.matrix.n_features)
        np.add.at(gains, tree.features, tree.gains)
        progress.trees.append(padded)
        progress.gains.append(gains)
        if watched is not None:
            leaves.add(tree, watched.rows, values, watched.scores)
        del tree, sample, drawn  # memory: a tree may hold every row's leaf
        if watched is None:
            if plan.verbose and (t + 1) % plan.verbose == 0:
                note(f"tree {t + 1}")
            if tell(t + 1, plan.n_estimators):
                status = Status.CALLBACK
                break
            continue
        progress.valid.append(watched.value())
        if plan.verbose and (t + 1) % plan.verbose == 0:
            note(f"tree {t + 1}: validation {watched.measure.name} {progress.valid[-1]:.4f}")
        stop = tell(t + 1, plan.n_estimators, validation=progress.valid[-1])
        if sign * progress.valid[-1] > best:
            best, best_round = sign * progress.valid[-1], t + 1
        elif plan.patience is not None and t + 1 - best_round >= plan.patience:
            status = Status.VALIDATION
            break
        if stop:
            status = Status.CALLBACK
            break
    keep_best(progress, plan, status, best_round if watched is not None and plan.patience is not None else None)
    return status


def keep_best(progress: Progress, plan: Plan, status: Status, best_round: int | None) -> None:
    """Keep the trees up to the best round by validation, or up to the least objective where training diverged.

    `best_round` is None where no validation queries stop the training. Training that diverges from its first tree is an
    `InvalidInputError`.
    """
    progress.change += [np.nan] * (len(progress.trees) - len(progress.change))
    if status is Status.DIVERGED:
        least = int(np.nanargmin(progress.change)) + 1
        if not progress.change[least - 1] < 0.0:
            raise InvalidInputError(
                f"training diverges. Lower learning_rate (it is {plan.learning_rate:g}) or raise alpha (it is "
                f"{plan.rules.alpha:g})"
            )
        progress.keep(least)
        best_round = None if best_round is None else min(best_round, least)
    if best_round is not None:
        progress.keep(best_round)


def _derivatives(
    objective: BoostingObjective, data: RankingData, scores: np.ndarray, order: ContentOrder | None
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients and hessians (n,), weights included."""
    assert data.y is not None
    if order is not None and getattr(objective, "by_place", False):
        gradients, hessians = order.derivatives(objective, scores)
    else:
        gradients, hessians = checked(objective, data.y, scores, data.offsets)
    return (
        (gradients, hessians) if data.row_weight is None else (gradients * data.row_weight, hessians * data.row_weight)
    )


def allowed_features(n_features: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """The features that one tree may ask about."""
    chosen = max(1, round(share * n_features))
    allowed = np.zeros(n_features, dtype=np.bool_)
    allowed[rng.permutation(n_features)[:chosen] if chosen < n_features else slice(None)] = True
    return allowed
