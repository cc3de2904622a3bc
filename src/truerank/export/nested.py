"""Binary trees as nested objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truerank.trees.binary import BinaryTrees


def nested_trees(trees: BinaryTrees, leaf: Callable[[int], Any], split: Callable[[int, Any, Any], Any]) -> list[Any]:
    """Each tree from `leaf(number)` and `split(node, left, right)`, bottom up without recursion."""
    built: list[Any] = [None] * len(trees.features)

    def child(c: int) -> Any:
        return built[c] if c >= 0 else leaf(~c)

    left, right = trees.left.tolist(), trees.right.tolist()
    for node in range(len(built) - 1, -1, -1):  # children stand after their parent
        built[node] = split(node, child(left[node]), child(right[node]))
    return [child(root) for root in trees.roots.tolist()]
