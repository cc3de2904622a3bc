"""Binary trees, one question after the other."""

import math


def leaf_of(trees, root, row):
    """The leaf that `row` comes to in the tree below `root`."""
    node = int(root)
    while node >= 0:
        x = float(row[trees.features[node]])
        missing = math.isnan(x) or (trees.zero_missing[node] and abs(x) <= 1e-35)
        right = trees.missing_right[node] if missing else x > trees.thresholds[node]
        node = int((trees.right if right else trees.left)[node])
    return ~node


def score(trees, row):
    """The sum of the values of the leaves that `row` comes to, tree by tree."""
    total = 0.0
    for root in trees.roots:
        total += trees.values[leaf_of(trees, root, row)]
    return total
