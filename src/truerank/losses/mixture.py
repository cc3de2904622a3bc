"""A weighted sum of objectives, each over the grades or over labels of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.losses.protocols import BoostingObjective, Derivatives, checked


@dataclass(frozen=True)
class Part:
    """One objective of a mixture."""

    objective: BoostingObjective
    weight: float
    label: str | None  # name of its labels; None is the grades y


class Mixture:
    """`Σ_k weight_k loss_k(labels_k, scores)`: derivatives of the parts, weighed and added.

    Weights multiply losses as they are: a pairwise loss sums over pairs and squared error over rows, so equal weights
    are not equal influence. The score before the first tree is the weighted mean of what those parts ask for that have
    a level of their own (squared error); 0 without such.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = list(parts)
        self.quadratic = all(part.objective.quadratic for part in self.parts)
        self.by_place = any(getattr(part.objective, "by_place", False) for part in self.parts)
        self._labels: dict[str, np.ndarray] = {}

    def take_labels(self, labels: Mapping[str, np.ndarray]) -> None:
        """Take the labels by name, each (n,)."""
        self._labels = dict(labels)

    def reorder(self, rows: np.ndarray) -> None:
        """The rows are handed over in this order from now on."""
        self._labels = {name: values[rows] for name, values in self._labels.items()}
        for part in self.parts:
            if hasattr(part.objective, "reorder"):
                part.objective.reorder(rows)

    def begin(self, rng: np.random.Generator) -> None:
        """Each part draws in turn."""
        for part in self.parts:
            part.objective.begin(rng)

    def start(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        """The weighted mean of the parts' own starts."""
        own = [part for part in self.parts if part.objective.quadratic]
        total = sum(part.weight for part in own)
        if not total:
            return 0.0
        return sum(part.weight * part.objective.start(self._of(part, y), weights) for part in own) / total

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Derivatives:
        gradients, hessians = np.zeros(len(y)), np.zeros(len(y))
        for part in self.parts:
            g, h = checked(part.objective, self._of(part, y), scores, offsets)
            gradients += part.weight * g
            hessians += part.weight * h
        return gradients, hessians

    def _of(self, part: Part, y: np.ndarray) -> np.ndarray:
        """The labels that a part reads."""
        if part.label is None:
            return y
        if part.label not in self._labels:
            have = ", ".join(map(repr, self._labels)) or "none"
            raise InvalidInputError(
                f"the objective names the labels {part.label!r}; fit was given {have}: "
                f"fit(..., labels={{{part.label!r}: array}})"
            )
        return self._labels[part.label]
