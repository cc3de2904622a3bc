"""Binary trees of any shape, from models of other tools. `ConstantPredictor` is faster for oblivious trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from truerank.core.errors import ModelFileError
from truerank.core.kernel import kernel
from truerank.core.schema import check_fields
from truerank.core.threads import row_blocks, run_blocks
from truerank.matrices.binning import BLOCK, CELLS_A_BORDER, MAX_BORDERS, code_columns
from truerank.matrices.steps import StepIndex
from truerank.trees.ensemble import Ensemble

_TASK = 16_384  # rows of one task of a thread
_ROWS = 1_024  # rows that are coded at once
_ZERO = 1e-35  # values up to it count as zero, and so as missing, with `zero_missing` (LightGBM's kZeroThreshold)


@dataclass(frozen=True)
class BinaryTrees:
    """Trees as flat arrays: node i asks `x ≤ threshold`, and a child c < 0 is leaf `~c`."""

    roots: np.ndarray  # int64 (T,): first node of each tree, or `~leaf` of a tree that is one leaf
    features: np.ndarray = field(repr=False)  # int64 (N,)
    thresholds: np.ndarray = field(repr=False)  # float64 (N,): inf with `missing_right` asks whether the value is there
    missing_right: np.ndarray = field(repr=False)  # bool (N,): where nan goes
    # bool (N,): whether |x| <= 1e-35 is missing too (LightGBM's `zero_as_missing`)
    zero_missing: np.ndarray = field(repr=False)
    left: np.ndarray = field(repr=False)  # int64 (N,): child; a node comes after its parent
    right: np.ndarray = field(repr=False)  # int64 (N,)
    values: np.ndarray = field(repr=False)  # float64 (L,): leaf values

    FIELDS: ClassVar[dict[str, str]] = {
        "features": "int[nodes] in [0, p)",
        "thresholds": "float[nodes] in [-inf, inf]",
        "missing_right zero_missing": "bool[nodes]",
        "values": "float[leaves]",
        "roots": "int[] in [last, nodes)",
        "left right": "int[nodes] in [last, nodes)",
    }

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    def nested(self, leaf: Callable[[int], Any], split: Callable[[int, Any, Any], Any]) -> list[Any]:
        """Build each tree from `leaf(number)` and `split(node, left, right)`, bottom up and without recursion."""
        built: list[Any] = [None] * len(self.features)

        def child(c: int) -> Any:
            return built[c] if c >= 0 else leaf(~c)

        left, right = self.left.tolist(), self.right.tolist()
        for node in range(len(built) - 1, -1, -1):  # children come after their parent
            built[node] = split(node, child(left[node]), child(right[node]))
        return [child(root) for root in self.roots.tolist()]

    def breadth_first(self, root: int) -> tuple[list[int], list[int]]:
        """Return nodes and leaves (as ~leaf) of a tree level by level, and the position of each left child (0: a leaf).

        The right child follows the left child.
        """
        order, left = [root], []
        for node in order:
            left.append(len(order) if node >= 0 else 0)
            if node >= 0:
                order += [int(self.left[node]), int(self.right[node])]
        return order, left

    def check(self, n_features: int) -> None:
        """Raise `ModelFileError` if arrays from a file do not fit together, or are not trees."""
        check_fields(self, self.FIELDS, p=n_features, last=-len(self.values))
        nodes = len(self.features)
        children = np.concatenate([self.roots, self.left, self.right])
        parents = np.concatenate([np.full(len(self.roots), -1), np.arange(nodes), np.arange(nodes)])
        inner = children >= 0
        if (children[inner] <= parents[inner]).any() or (np.bincount(children[inner], minlength=nodes) != 1).any():
            raise ModelFileError("a tree has a cycle, or a node that does not belong to exactly one parent")

    @cached_property
    def _plan(self) -> _Plan:
        return _Plan(self)

    def predict(self, X: np.ndarray, n_jobs: int | None, scores: np.ndarray) -> np.ndarray:
        """Add the trees' values for the rows of X, float32 or float64, to `scores` (n,), and return the scores.

        The score of a row does not depend on other rows. The cost is O(rows · (features · log thresholds + nodes)), or
        O(rows · depth) for trees with more than 256 leaves.
        """
        plan = self._plan

        def work(start: int, stop: int) -> None:
            for first in range(start, stop, _ROWS):
                last = min(first + _ROWS, stop)
                _add_binary(plan.codes(X[first:last]), *plan.arrays, scores[first:last])

        run_blocks(work, row_blocks(len(X), _TASK), n_jobs)
        return scores


class _Plan:
    """Arrays for the kernel, in which a node is one comparison of bytes.

    A value becomes the number of its feature's thresholds below it. A feature has several columns if it has more than
    254 thresholds, or if some nodes send NaN left and other nodes send it right.
    """

    def __init__(self, trees: BinaryTrees) -> None:
        nodes, n_trees = len(trees.features), trees.n_trees
        kinds, kind = np.unique(2 * trees.features + trees.zero_missing, return_inverse=True)
        ranks, source = np.empty(nodes, dtype=np.uint8), np.empty(nodes, dtype=np.int64)
        borders: list[np.ndarray] = []
        sources: list[int] = []
        for k, same in enumerate(np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])):
            own, place = np.unique(trees.thresholds[same], return_inverse=True)
            source[same] = len(borders) + place // MAX_BORDERS
            ranks[same] = place % MAX_BORDERS
            borders += [own[i : i + MAX_BORDERS] for i in range(0, len(own), MAX_BORDERS)]
            sources += [k] * (len(borders) - len(sources))
        self._features = kinds[sources] // 2
        self._zero_missing = np.flatnonzero(kinds[sources] % 2)
        self._n_columns, self._index = len(borders), StepIndex.of(borders, CELLS_A_BORDER)
        variants, column = np.unique(2 * source + trees.missing_right, return_inverse=True)

        tree, first, turn, heights = _survey(trees.roots, trees.left, trees.right)
        order = np.argsort(tree, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(tree, minlength=n_trees))])
        leaf_starts = starts[:-1] + np.arange(n_trees)  # a tree has a leaf more than nodes
        position = np.empty(nodes, dtype=np.int64)
        position[order] = np.arange(nodes)
        values = np.empty(nodes + n_trees)
        # A leaf is its own child: rows that have reached theirs stay while others go on.
        children = np.repeat(np.arange(2 * nodes + n_trees, dtype=np.int32), 2).reshape(-1, 2)
        for side, child, leaf in ((0, trees.left, first), (1, trees.right, turn)):
            inner, place = child >= 0, leaf_starts[tree] + leaf
            values[place[~inner]] = trees.values[~child[~inner]]
            below = nodes + place
            below[inner] = position[child[inner]]
            children[position, side] = below
        alone = trees.roots < 0
        values[leaf_starts[alone]] = trees.values[~trees.roots[alone]]
        steps = np.zeros(n_trees, dtype=np.int64)
        steps[~alone] = heights[trees.roots[~alone]]
        leaves = np.zeros(nodes + n_trees, dtype=np.int64)
        self.arrays = (
            variants // 2, variants % 2 == 1, starts, steps,
            np.concatenate([column[order], leaves]), np.concatenate([ranks[order], leaves]).astype(np.uint8),
            first[order].astype(np.uint8), turn[order].astype(np.uint8), children, values,
        )  # fmt: skip

    def codes(self, X: np.ndarray) -> np.ndarray:
        """Return the codes of the rows of X, in the format of `code_columns`."""
        columns = np.ascontiguousarray(X.T[self._features], dtype=np.float64)
        for k in self._zero_missing:
            columns[k, np.abs(columns[k]) <= _ZERO] = np.nan
        codes = np.zeros((-(-self._n_columns // BLOCK), len(X), BLOCK), dtype=np.uint8)
        code_columns(columns, self._index, codes, 0)
        return codes


def binary_of_oblivious(ensemble: Ensemble) -> BinaryTrees:
    """Return the trees with a level's question in each of its nodes, without padding levels."""
    roots: list[int] = []
    parts: list[tuple[np.ndarray, ...]] = []
    n_nodes = n_leaves = 0
    for t in range(ensemble.n_trees):
        borders, missing = ensemble.borders[t], ensemble.missing_right[t]
        levels = np.flatnonzero((borders < np.inf) | missing)
        depth, nodes = len(levels), (1 << len(levels)) - 1
        roots.append(n_nodes if depth else ~n_leaves)
        asked = np.repeat(levels, 1 << np.arange(depth))  # level by level
        child = 2 * np.arange(nodes)[:, None] + np.array([1, 2])
        child = np.where(child < nodes, n_nodes + child, ~(n_leaves + child - nodes))
        path = np.arange(1 << depth)  # a path has the first answer in its highest bit, a leaf in its lowest
        leaf = np.zeros_like(path)
        for level, own in enumerate(levels):
            leaf += ((path >> (depth - 1 - level)) & 1) << own
        values = ensemble.values[t, leaf]
        parts.append((ensemble.features[t, asked], borders[asked], missing[asked], child[:, 0], child[:, 1], values))
        n_nodes, n_leaves = n_nodes + nodes, n_leaves + len(path)
    kinds = (np.int64, np.float64, bool, np.int64, np.int64, np.float64)
    joined = [np.concatenate([np.empty(0), *(part[i] for part in parts)]).astype(kind) for i, kind in enumerate(kinds)]
    features, thresholds, missing_right, left, right, leaf_values = joined
    none = np.zeros(n_nodes, dtype=bool)
    return BinaryTrees(
        np.array(roots, dtype=np.int64), features, thresholds, missing_right, none, left, right, leaf_values
    )


@kernel
def _survey(roots, left, right):
    """Return the tree, first leaf, first leaf on the right, and height of each node; leaves count from the left."""
    nodes = left.size
    tree = np.zeros(nodes, dtype=np.int64)
    leaves, heights = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    first, turn = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    for t in range(roots.size):
        if roots[t] >= 0:
            tree[roots[t]] = t
    for i in range(nodes - 1, -1, -1):
        a, b = left[i], right[i]
        turn[i] = leaves[a] if a >= 0 else 1
        leaves[i] = turn[i] + (leaves[b] if b >= 0 else 1)
        heights[i] = 1 + max(heights[a] if a >= 0 else 0, heights[b] if b >= 0 else 0)
    for i in range(nodes):
        a, b = left[i], right[i]
        turn[i] += first[i]
        if a >= 0:
            tree[a], first[a] = tree[i], first[i]
        if b >= 0:
            tree[b], first[b] = tree[i], turn[i]
    return tree, first, turn, heights


@kernel
def _add_binary(codes, sources, missing_right, starts, steps, columns, ranks, first, turn, children, values, scores):
    """Add every tree's leaf value to `scores`, 256 rows at a time.

    The state of a row is the first leaf below its present node. In trees of at most 256 leaves every node, parents
    first, moves the rows of its right side to the right child: more comparisons than a walk, but one instruction
    compares many bytes. In larger trees, and with few rows, all rows move down one level at a time.
    """
    n = codes.shape[1]
    block = np.empty((sources.size, 256), dtype=np.uint8)
    leaf = np.empty(256, dtype=np.uint8)
    node = np.empty(256, dtype=np.int32)
    n_nodes = first.size
    for start in range(0, n, 256):
        rows = min(256, n - start)
        # Stage 1. Copy the used columns of codes, with NaN on the side of each.
        for k in range(sources.size):
            own, lane = codes[sources[k] >> 3], sources[k] & 7
            lost = np.uint8(255 if missing_right[k] else 0)
            for i in range(rows):
                code = own[start + i, lane]
                block[k, i] = lost if code == 255 else code
        for tree in range(starts.size - 1):
            value = values[starts[tree] + tree :]
            # Stage 2. In small trees, each node moves rows to its right child. In others, rows move one level at a
            # time.
            if steps[tree] == 0 or (starts[tree + 1] - starts[tree] < 256 and rows > 8):
                for i in range(rows):
                    leaf[i] = 0
                for q in range(starts[tree], starts[tree + 1]):
                    x, rank, a, b = block[columns[q]], ranks[q], first[q], turn[q]
                    for i in range(rows):
                        here = leaf[i]
                        leaf[i] = b if (here == a) & (x[i] > rank) else here
                for i in range(rows):
                    scores[start + i] += value[leaf[i]]
            else:
                for i in range(rows):
                    node[i] = starts[tree]
                for _ in range(steps[tree]):
                    for i in range(rows):
                        q = node[i]
                        node[i] = children[q, 1 if block[columns[q], i] > ranks[q] else 0]
                for i in range(rows):
                    scores[start + i] += values[node[i] - n_nodes]
