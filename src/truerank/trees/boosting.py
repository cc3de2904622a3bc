"""The boosting loop: objective, sample, tree, leaves, scores, validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.printing import note
from truerank.core.random_streams import stream
from truerank.core.threads import Workers
from truerank.data.ranking_data import RankingData
from truerank.losses.boosting import checked
from truerank.solvers.result import Status
from truerank.trees.ensemble import pad_tree
from truerank.trees.grower import Grower, GrowthRules
from truerank.trees.histogram import pack_gradients
from truerank.trees.rows import Rows, Sample, draw_rows


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
    """The trees so far, as lists of the rows of `Ensemble`, and the validation measure after each."""

    trees: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    gains: list[np.ndarray] = field(default_factory=list)
    valid: list[float] = field(default_factory=list)

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

    def value(self) -> float:
        """The measure's mean over the validation queries."""
        return self.value_of(self.scores)

    def value_of(self, scores: np.ndarray) -> float:
        """The measure's mean at other scores (n,)."""
        return float(self.measure.mean(self.judgements, scores))


def boost(
    data: RankingData,
    rows: Rows,
    scores: np.ndarray,
    row_weight: np.ndarray | None,
    objective: Any,
    leaves: Any,
    plan: Plan,
    watched: Watched | None,
    workers: Workers,
    progress: Progress,
) -> Status:
    """Add trees to `progress` until there are `plan.n_estimators`, or validation says stop.

    Tree t draws from random streams of its own, so that a run of 100 trees and one of 60 continued to 100 agree in
    every bit. `scores` (n,) are those of the trees that `progress` has already, and are advanced in place.

    Returns
    -------
    Status
        VALIDATION (the trees after the best round are dropped), ALL_ROUNDS, or INTERRUPTED.
    """
    assert data.y is not None
    grower = Grower(rows.matrix, plan.rules, workers)
    best, best_round = -np.inf, len(progress.trees)
    if progress.valid:
        best_round = int(np.argmax(progress.valid)) + 1
        best = progress.valid[best_round - 1]
    status = Status.ALL_ROUNDS
    begin = getattr(objective, "begin", None)
    again = getattr(objective, "cheap", False)  # gradients are computed twice rather than kept while a tree grows
    try:
        for t in range(len(progress.trees), plan.n_estimators):
            if begin is not None:
                begin(stream(plan.seed, "objective", t))
            gradients, hessians = _derivatives(objective, data, scores, row_weight)
            drawn = draw_rows(stream(plan.seed, "rows", t), data.offsets, plan.unit, plan.replace, plan.subsample)
            allowed = _allowed(rows.matrix.n_features, plan.feature_fraction, stream(plan.seed, "features", t))
            packed = pack_gradients(gradients, hessians, drawn)
            sample = None
            if leaves.needs_sample and not again:
                sample = Sample(gradients, hessians, drawn)
            del gradients, hessians  # memory
            tree = grower.grow(packed, allowed)
            del packed
            if leaves.needs_sample and again:
                sample = Sample(*_derivatives(objective, data, scores, row_weight), drawn)
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
                continue
            progress.valid.append(watched.value())
            if plan.verbose and (t + 1) % plan.verbose == 0:
                note(f"tree {t + 1}: validation {watched.measure.name} {progress.valid[-1]:.4f}")
            if progress.valid[-1] > best:
                best, best_round = progress.valid[-1], t + 1
            elif plan.patience is not None and t + 1 - best_round >= plan.patience:
                status = Status.VALIDATION
                break
    except KeyboardInterrupt:
        if watched is not None:
            progress.keep(len(progress.valid))  # a tree whose measure is not known
        if not progress.trees:
            raise
        status = Status.INTERRUPTED
    if watched is not None and plan.patience is not None:
        progress.keep(best_round)
    return status


def _derivatives(
    objective: Any, data: RankingData, scores: np.ndarray, row_weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients and hessians (n,), weights included."""
    assert data.y is not None
    gradients, hessians = checked(objective, data.y, scores, data.offsets)
    return (gradients, hessians) if row_weight is None else (gradients * row_weight, hessians * row_weight)


def _allowed(n_features: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """The features that one tree may ask about."""
    chosen = max(1, round(share * n_features))
    allowed = np.zeros(n_features, dtype=np.bool_)
    allowed[rng.permutation(n_features)[:chosen] if chosen < n_features else slice(None)] = True
    return allowed
