"""Binary trees as nested objects, and level by level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truerank.trees.binary import BinaryTrees


def nested_trees(trees: BinaryTrees, leaf: Callable[[int], Any], split: Callable[[int, Any, Any], Any]) -> list[Any]:
    """Build each tree from `leaf(number)` and `split(node, left, right)`, bottom up and without recursion."""
    built: list[Any] = [None] * len(trees.features)

    def child(c: int) -> Any:
        return built[c] if c >= 0 else leaf(~c)

    left, right = trees.left.tolist(), trees.right.tolist()
    for node in range(len(built) - 1, -1, -1):  # children come after their parent
        built[node] = split(node, child(left[node]), child(right[node]))
    return [child(root) for root in trees.roots.tolist()]


def breadth_first(trees: BinaryTrees, root: int) -> tuple[list[int], list[int]]:
    """Return nodes and leaves (as ~leaf) of a tree level by level, and the place of each left child.

    The right child follows the left one. A leaf has the place 0.
    """
    order, left = [root], []
    for node in order:
        left.append(len(order) if node >= 0 else 0)
        if node >= 0:
            order += [int(trees.left[node]), int(trees.right[node])]
    return order, left
