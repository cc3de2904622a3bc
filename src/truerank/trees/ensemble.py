"""The trees of a model as flat arrays, for model files and predictors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.errors import ModelFileError
from truerank.trees.grower import TreeStructure

MOST_LEVELS = 16  # the number of a leaf has as many bits


@dataclass(frozen=True)
class Ensemble:
    """Trees padded to one depth by levels that ask `x ≤ inf`, whose answer is always yes."""

    features: np.ndarray  # int32 (T, d)
    borders: np.ndarray  # float64 (T, d): `x ≤ border`; inf with `missing_right` asks whether x is observed
    missing_right: np.ndarray  # bool (T, d): where nan goes
    values: np.ndarray  # float64 (T, 2^d), or (T, 2^d, monomials) with polynomial leaves: learning rate included

    @property
    def n_trees(self) -> int:
        return len(self.features)

    @property
    def depth(self) -> int:
        """Levels of each tree d, padding included."""
        return int(self.features.shape[1])

    def check(self, n_features: int, n_values: int | None) -> None:
        """Raise `ModelFileError` if arrays from a file do not fit together."""
        t, d = self.features.shape if self.features.ndim == 2 else (-1, -1)
        shape = (t, 1 << max(d, 0)) if n_values is None else (t, 1 << max(d, 0), n_values)
        if t < 0 or self.borders.shape != (t, d) or self.missing_right.shape != (t, d) or self.values.shape != shape:
            raise ModelFileError("ObliviousBoosting: the arrays of the trees do not fit together")
        if d > MOST_LEVELS:
            raise ModelFileError(f"ObliviousBoosting: trees have at most {MOST_LEVELS} levels, got {d}")
        if self.features.size and not (self.features.min() >= 0 and self.features.max() < n_features):
            raise ModelFileError(f"ObliviousBoosting: a tree asks about a feature outside 0 … {n_features - 1}")
        if np.isnan(self.borders).any() or not np.isfinite(self.values).all():
            raise ModelFileError("ObliviousBoosting: borders must be numbers and leaf values finite")


def pad_tree(
    tree: TreeStructure, values: np.ndarray, borders: list[np.ndarray], depth: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a tree's rows of the `Ensemble` arrays; padded levels repeat its first feature, or feature 0."""
    features = np.full(depth, tree.features[0] if tree.depth else 0, dtype=np.int32)
    features[: tree.depth] = tree.features
    cuts = np.full(depth, np.inf)
    for level in range(tree.depth):
        own = borders[int(tree.features[level])]
        code = int(tree.codes[level])
        cuts[level] = own[code] if code < len(own) else np.inf
    right = np.zeros(depth, dtype=np.bool_)
    right[: tree.depth] = tree.missing_right
    padded = np.zeros((1 << depth, *values.shape[1:]))
    padded[: len(values)] = values
    return features, cuts, right, padded
