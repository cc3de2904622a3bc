"""Any binary trees: of unequal shape, with a question of its own in each node.

Oblivious trees have a faster predictor (`predictor`); this one serves trees that other tools grew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from truerank.core.errors import ModelFileError
from truerank.core.kernel import kernel
from truerank.core.threads import run_blocks
from truerank.trees.ensemble import Ensemble
from truerank.trees.predictor import writable

_TASK = 16_384  # rows of one task of a thread
_ZERO = 1e-35  # |x| up to which a value counts as zero where zero means missing (LightGBM's kZeroThreshold)
_FIELDS = ("roots", "features", "thresholds", "missing_right", "zero_missing", "left", "right", "values")


@dataclass(frozen=True)
class BinaryTrees:
    """Trees as flat arrays; node i asks `x ≤ threshold`, and a child c < 0 is leaf `~c`.

    Attributes
    ----------
    roots : int64 array (T,)
        First node of each tree, or `~leaf` of a tree that is one leaf.
    features : int64 array (N,)
    thresholds : float64 array (N,)
        Inf asks whether the value is there, with `missing_right`.
    missing_right : bool array (N,)
        Where nan goes.
    zero_missing : bool array (N,)
        Whether a value of at most 1e-35 in magnitude is missing too (LightGBM's `zero_as_missing`).
    left, right : int64 arrays (N,)
        Children; a node stands after its parent.
    values : float64 array (L,)
        Leaf values.
    """

    roots: np.ndarray
    features: np.ndarray = field(repr=False)
    thresholds: np.ndarray = field(repr=False)
    missing_right: np.ndarray = field(repr=False)
    zero_missing: np.ndarray = field(repr=False)
    left: np.ndarray = field(repr=False)
    right: np.ndarray = field(repr=False)
    values: np.ndarray = field(repr=False)

    @property
    def n_trees(self) -> int:
        """Number of trees T."""
        return len(self.roots)

    def check(self, n_features: int) -> None:
        """Raise `ModelFileError` when arrays from a file do not fit together, or a tree is none."""
        kinds = dict(zip(_FIELDS, "iifbbiif"))
        nodes = len(self.features)
        for name, kind in kinds.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind != kind:
                raise ModelFileError(f"the trees' {name} must be a flat array of {kind}-numbers")
            if name not in ("roots", "values") and len(array) != nodes:
                raise ModelFileError(f"the trees have {nodes} nodes and {len(array)} {name}")
        if nodes and not (self.features.min() >= 0 and self.features.max() < n_features):
            raise ModelFileError(f"a tree asks about a feature outside 0 … {n_features - 1}")
        if np.isnan(self.thresholds).any() or not np.isfinite(self.values).all():
            raise ModelFileError("thresholds must be numbers and leaf values finite")
        children = np.concatenate([self.roots, self.left, self.right])
        parents = np.concatenate([np.full(len(self.roots), -1), np.arange(nodes), np.arange(nodes)])
        inner = children >= 0
        if (children >= nodes).any() or (~children[~inner] >= len(self.values)).any():
            raise ModelFileError("a tree's child is a node or a leaf that does not exist")
        if (children[inner] <= parents[inner]).any() or (np.bincount(children[inner], minlength=nodes) != 1).any():
            raise ModelFileError("a tree has a cycle, or a node that does not belong to exactly one parent")

    @cached_property
    def _plan(self) -> tuple[np.ndarray, ...]:
        """Nodes and leaves in one numbering, a leaf its own child, and the steps that reach every leaf of a tree."""
        nodes, leaves = len(self.features), len(self.values)
        place = lambda child: np.where(child >= 0, child, nodes + ~child)  # noqa: E731
        own = np.arange(nodes, nodes + leaves)
        used = np.unique(self.features)
        children = np.empty((nodes + leaves, 2), dtype=np.int32)
        children[:, 0] = np.concatenate([place(self.left), own])
        children[:, 1] = np.concatenate([place(self.right), own])
        columns = np.concatenate([np.searchsorted(used, self.features), np.zeros(leaves, dtype=np.int64)])
        thresholds = np.concatenate([self.thresholds, np.full(leaves, np.inf)])
        flags = np.concatenate([self.missing_right + 2 * self.zero_missing, np.zeros(leaves, dtype=np.int64)])
        height = _heights(self.left, self.right)
        steps = np.array([height[root] if root >= 0 else 0 for root in self.roots], dtype=np.int64)
        return (
            used.astype(np.int64), place(self.roots).astype(np.int32), steps, columns.astype(np.int32), thresholds,
            flags.astype(np.uint8), children, np.concatenate([np.zeros(nodes), self.values]),
        )  # fmt: skip

    def predict(self, X: np.ndarray, n_jobs: int | None, scores: np.ndarray, trees: slice = slice(None)) -> np.ndarray:
        """Add the values of `trees` for the rows of X, float32 or float64, to `scores` (n,) and return these.

        Trees are added in their order, so a row has the same bits alone and among others. O(rows x trees x depth).
        """
        used, roots, steps, *arrays = self._plan

        def work(start: int, stop: int) -> None:
            _add_binary(writable(X[start:stop]), used, roots[trees], steps[trees], *arrays, scores[start:stop])

        run_blocks(work, [(i, min(i + _TASK, len(X))) for i in range(0, len(X), _TASK)], n_jobs)
        return scores


def binary_of_oblivious(ensemble: Ensemble) -> BinaryTrees:
    """The same trees with a level's question in each of its nodes; levels that are always answered yes are left out."""
    roots: list[int] = []
    features: list[int] = []
    thresholds: list[float] = []
    missing: list[bool] = []
    left: list[int] = []
    right: list[int] = []
    values: list[float] = []
    n_nodes = n_leaves = 0
    for t in range(ensemble.n_trees):
        asked = np.isfinite(ensemble.borders[t]) | ensemble.missing_right[t]
        asked |= ensemble.borders[t] == -np.inf
        levels = np.flatnonzero(asked)
        depth = len(levels)
        nodes = (1 << depth) - 1
        roots.append(n_nodes if depth else ~n_leaves)
        for level, own in enumerate(levels):
            first, width = n_nodes + (1 << level) - 1, 1 << level
            features += [int(ensemble.features[t, own])] * width
            thresholds += [float(ensemble.borders[t, own])] * width
            missing += [bool(ensemble.missing_right[t, own])] * width
            for k in range(width):  # k is the path so far, first answer in the highest bit
                for answer, children in ((0, left), (1, right)):
                    path = 2 * k + answer
                    children.append(first + width + path if level + 1 < depth else ~(n_leaves + path))
        for path in range(1 << depth):
            bits = sum(1 << int(own) for level, own in enumerate(levels) if path >> (depth - 1 - level) & 1)
            values.append(float(ensemble.values[t, bits]))
        n_nodes += nodes
        n_leaves += 1 << depth
    return BinaryTrees(
        np.array(roots, dtype=np.int64), np.array(features, dtype=np.int64), np.array(thresholds, dtype=np.float64),
        np.array(missing, dtype=bool), np.zeros(n_nodes, dtype=bool), np.array(left, dtype=np.int64),
        np.array(right, dtype=np.int64), np.array(values, dtype=np.float64),
    )  # fmt: skip


def _heights(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Questions on the longest way down from each node; children stand after their parent."""
    heights = np.zeros(len(left), dtype=np.int64)
    for i in range(len(left) - 1, -1, -1):
        below = [heights[c] for c in (left[i], right[i]) if c >= 0]
        heights[i] = 1 + max(below, default=0)
    return heights


@kernel
def _add_binary(X, used, roots, steps, columns, thresholds, flags, children, values, scores):
    """Add every tree's leaf value to `scores`, 64 rows side by side.

    All rows of a block take a step before any takes the next: none waits for another's, as one row's steps wait for
    each other. A row that has reached its leaf stays there.
    """
    n = X.shape[0]
    block = np.empty((max(1, used.size), 64), dtype=np.float64)
    node = np.empty(64, dtype=np.int32)
    special = False
    for i in range(flags.size):
        special |= flags[i] > 1
    for start in range(0, n, 64):
        rows = min(64, n - start)
        missing = False
        for i in range(rows):
            x = X[start + i]
            for k in range(used.size):
                block[k, i] = x[used[k]]
        for k in range(used.size):
            for i in range(rows):
                missing |= block[k, i] != block[k, i]
        for tree in range(roots.size):
            for i in range(rows):
                node[i] = roots[tree]
            for _ in range(steps[tree]):
                if not (missing or special):
                    for i in range(rows):
                        q = node[i]
                        node[i] = children[q, 1 if block[columns[q], i] > thresholds[q] else 0]
                elif not special:
                    for i in range(rows):
                        q = node[i]
                        x = block[columns[q], i]
                        node[i] = children[q, 1 if (x > thresholds[q]) | ((x != x) & (flags[q] == 1)) else 0]
                else:
                    for i in range(rows):
                        q = node[i]
                        x = block[columns[q], i]
                        lost = x != x or (flags[q] > 1 and abs(x) <= _ZERO)
                        go = (flags[q] & 1) == 1 if lost else x > thresholds[q]
                        node[i] = children[q, 1 if go else 0]
            for i in range(rows):
                scores[start + i] += values[node[i]]
