"""Sums over partitions along one fixed binary tree, so that their bits do not depend on which worker holds which."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.data.rows import Merge

Nodes = dict[tuple[int, int], Any]


def fold(nodes: Nodes, merge: Merge, n: int) -> Nodes:
    """Merge the nodes of the binary tree over partitions 0 … n - 1 as far as both children of a node are there.

    Node (level, i) stands for the partitions `i 2^level … (i + 1) 2^level - 1`, and is the merge of (level - 1, 2i) and
    (level - 1, 2i + 1). A node without a right child equals its left child.

    >>> from operator import add
    >>> fold({(1, 1): "c", (0, 0): "a", (0, 1): "b"}, add, 3)
    {(2, 0): 'abc'}
    """
    done: Nodes = {}
    level = 0
    waiting = dict(nodes)
    while waiting:
        width = (n + (1 << level) - 1) >> level
        here = sorted(i for depth, i in waiting if depth == level)
        for i in here:
            if (level, i) not in waiting:
                continue
            value = waiting.pop((level, i))
            if width == 1:
                done[level, i] = value
            elif i % 2 == 0 and i + 1 == width:
                waiting[level + 1, i // 2] = value
            elif i % 2 == 0 and (level, i + 1) in waiting:
                waiting[level + 1, i // 2] = merge(value, waiting.pop((level, i + 1)))
            else:
                done[level, i] = value
        level += 1
    return done


def size_of(value: object) -> int:
    """Bytes of the arrays in a message; objects that do not say theirs count by their pickled size."""
    if hasattr(value, "nbytes") and not (isinstance(value, np.ndarray) and value.dtype.hasobject):
        return int(value.nbytes)
    if isinstance(value, tuple | list):
        return sum(size_of(part) for part in value)
    if isinstance(value, dict):
        return sum(size_of(part) for part in value.values())
    if isinstance(value, bool | int | float) or value is None:
        return 8
    import pickle

    return len(pickle.dumps(value))
