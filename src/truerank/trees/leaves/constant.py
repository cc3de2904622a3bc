"""Constant leaves, with one value each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import Workers, row_blocks
from truerank.trees.grower import GrowthRules, TreeStructure
from truerank.trees.leaves.base import Leaves
from truerank.trees.rows import TrainingRows
from truerank.trees.training_columns import TrainingColumns

_EMPTY = 1e-12  # leaves with a smaller hessian have the value 0


def newton_values(gradients: np.ndarray, hessians: np.ndarray, alpha: float) -> np.ndarray:
    """Return leaf values `-G / (H + alpha)`, 0 for empty leaves; the mean residual for squared error and alpha = 0."""
    empty = empty_leaves(hessians)
    return np.where(empty, 0.0, -gradients / np.where(empty, 1.0, hessians + alpha))


def empty_leaves(hessians: np.ndarray) -> np.ndarray:
    """Return a mask of leaves whose H is below 1e-12, or below 1e-12 of the largest H if that is below 1."""
    return (hessians < _EMPTY * min(1.0, float(hessians.max(initial=0.0)))) | (hessians <= 0.0)


@dataclass(frozen=True)
class ConstantLeaves(Leaves):
    """One value in each leaf: `ObliviousBoosting(leaves=ConstantLeaves())`, without parameters."""

    name: ClassVar[str] = "constant"

    def fitter(self, rules: GrowthRules, columns: TrainingColumns, p_swap: float, workers: Workers) -> ConstantFitter:
        return ConstantFitter(rules.alpha, rules.monotone, workers)


class ConstantFitter:
    """A fitter and evaluator of constant leaves; `monotone` has the constraints of the features, int8 (p,)."""

    needs_sample = False

    def __init__(self, alpha: float, monotone: np.ndarray | None, workers: Workers) -> None:
        self.alpha, self.monotone, self.workers = alpha, monotone, workers

    def fit(self, tree: TreeStructure) -> np.ndarray:
        values = newton_values(tree.gradients, tree.hessians, self.alpha)
        if self.monotone is None:
            return values
        return constrain(values, tree.hessians, tree.features, self.monotone)

    def add(self, tree: TreeStructure, rows: TrainingRows, values: np.ndarray, scores: np.ndarray) -> None:
        """Add the tree's values to the scores (n,) of coded rows."""
        leaf = rows.leaf_numbers(tree, self.workers)
        self.workers.run(partial(_add_leaf_values, leaf, values, scores), row_blocks(len(scores)))


def constrain(values: np.ndarray, weights: np.ndarray, features: np.ndarray, monotone: np.ndarray | None) -> np.ndarray:
    """Return the values nearest to `values`, in least squares weighted by `weights`, that satisfy `monotone`.

    A leaf's value must not fall (1) or rise (-1) if the answer at a level of a constrained feature changes from no
    to yes. Dykstra's alternating projections over the levels (JASA 1983) find these values; a final running maximum
    removes the rounding error.

    >>> constrain(np.array([2.0, 0.0]), np.array([1.0, 3.0]), np.array([0]), np.array([1])).tolist()
    [0.5, 0.5]
    """
    if monotone is None or not np.any(monotone[features]):
        return values
    levels = [(t, int(monotone[k])) for t, k in enumerate(features) if monotone[k]]
    number = np.arange(len(values))
    weights = np.maximum(weights, 1e-9 * max(float(weights.max(initial=0.0)), 1e-300))
    result = values.copy()
    corrections = [np.zeros_like(values) for _ in levels]
    for _ in range(200 if len(levels) > 1 else 1):
        start = result.copy()
        for (t, sign), correction in zip(levels, corrections):
            low, high = number[(number >> t) & 1 == 0], number[(number >> t) & 1 == 1]
            target = result - correction
            a, b = target[low], target[high]
            mean = (weights[low] * a + weights[high] * b) / (weights[low] + weights[high])
            broken = sign * (b - a) < 0
            projected = target.copy()
            projected[low], projected[high] = np.where(broken, mean, a), np.where(broken, mean, b)
            correction[:] = projected - target
            result = projected
        if np.abs(result - start).max() <= 1e-12 * max(1.0, np.abs(values).max()):
            break
    for t, sign in levels:
        low, high = number[(number >> t) & 1 == 0], number[(number >> t) & 1 == 1]
        result[high] = (np.maximum if sign > 0 else np.minimum)(result[low], result[high])
    return result


@kernel
def _add_leaf_values(leaf, values, scores, start, stop):
    for i in range(start, stop):
        scores[i] += values[leaf[i]]
