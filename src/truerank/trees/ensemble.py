"""The trees of a model as flat arrays, and scores from constant leaves.

The used columns of a block of rows are copied side by side, so that one instruction answers a question for many rows.
Values are not binned: 100 trees of depth 6 take 600 comparisons for each row, for any number of features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from truerank.core.errors import ModelFileError
from truerank.core.kernel import kernel, kernel_array
from truerank.core.schema import check_fields
from truerank.core.threads import row_blocks, run_blocks
from truerank.matrices.steps import floor_float32
from truerank.trees.grower import TreeStructure

_TASK = 16_384  # rows of one task of a thread
MOST_LEVELS = 16  # the number of a leaf has as many bits


@dataclass(frozen=True)
class Ensemble:
    """Trees padded to one depth by levels that ask `x ≤ inf`, whose answer is always yes."""

    features: np.ndarray  # int32 (T, d)
    borders: np.ndarray  # float64 (T, d): `x ≤ border`; inf with `missing_right` asks whether x is observed
    missing_right: np.ndarray  # bool (T, d): where nan goes
    values: np.ndarray  # float64 (T, 2^d), or (T, 2^d, monomials) with polynomial leaves: learning rate included

    FIELDS: ClassVar[dict[str, str]] = {
        "features": "int[n_iter_, depth] in [0, p)",
        "borders": "float[n_iter_, depth] in [-inf, inf]",
        "missing_right": "bool[n_iter_, depth]",
        "values": "float[...]",
    }

    @property
    def n_trees(self) -> int:
        return len(self.features)

    @property
    def depth(self) -> int:
        return int(self.features.shape[1])

    def check(self, n_features: int, n_values: int | None) -> None:
        """Raise `ModelFileError` if arrays from a file do not fit together."""
        check_fields(self, self.FIELDS, p=n_features)
        t, d = self.features.shape
        if d > MOST_LEVELS:
            raise ModelFileError(f"ObliviousBoosting: trees have at most {MOST_LEVELS} levels, got {d}", code="depth")
        check_fields(self, {"values": f"float[{t}, {1 << d}{'' if n_values is None else f', {n_values}'}]"})


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


class ConstantPredictor:
    """Scores from constant leaves, added in the order of the trees; a row's score does not depend on other rows."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.used = np.unique(ensemble.features).astype(np.int64)
        self.columns = np.searchsorted(self.used, ensemble.features).astype(np.int64)
        self.borders, self.missing_right = ensemble.borders, ensemble.missing_right
        self.values = ensemble.values

    def predict(self, X: np.ndarray, n_jobs: int | None, scores: np.ndarray, trees: slice = slice(None)) -> np.ndarray:
        """Add the values of `trees` for the rows of X, float32 or float64, to `scores` (n,), and return the scores."""
        borders = self.borders[trees] if X.dtype == np.float64 else floor_float32(self.borders[trees])

        def work(start: int, stop: int) -> None:
            _add_constant(
                kernel_array(X[start:stop]), self.used, self.columns[trees], borders, self.missing_right[trees],
                self.values[trees], scores[start:stop],
            )  # fmt: skip

        run_blocks(work, row_blocks(len(X), _TASK), n_jobs)
        return scores


@kernel
def _add_constant(X, used, columns, borders, missing_right, values, scores):
    """Add every tree's leaf value to `scores` (n,), 256 rows at a time, in columns of 272 to spread over the cache."""
    n = X.shape[0]
    n_trees, depth = columns.shape
    block = np.empty((used.size, 272), dtype=X.dtype)
    leaf = np.empty(256, dtype=np.uint16)
    zero = np.uint16(0)
    for start in range(0, n, 256):
        rows = min(256, n - start)
        for i in range(rows):
            x = X[start + i]
            for k in range(used.size):
                block[k, i] = x[used[k]]
        missing = 0
        for k in range(used.size):
            x = block[k]
            for i in range(rows):
                missing += x[i] != x[i]
        for tree in range(n_trees):
            for i in range(rows):
                leaf[i] = zero
            level = 0
            while missing == 0 and level + 1 < depth:
                x, x_next = block[columns[tree, level]], block[columns[tree, level + 1]]
                c, c_next = borders[tree, level], borders[tree, level + 1]
                bit, bit_next = np.uint16(1 << level), np.uint16(2 << level)
                for i in range(rows):
                    leaf[i] |= (bit if x[i] > c else zero) | (bit_next if x_next[i] > c_next else zero)
                level += 2
            while level < depth:
                x = block[columns[tree, level]]
                c = borders[tree, level]
                bit = np.uint16(1 << level)
                if missing_right[tree, level]:
                    for i in range(rows):
                        leaf[i] |= zero if x[i] <= c else bit
                else:
                    for i in range(rows):
                        leaf[i] |= bit if x[i] > c else zero
                level += 1
            value = values[tree]
            for i in range(rows):
                scores[start + i] += value[leaf[i]]
