"""Order systems by all pairs together: sets of possible ranks, and groups without significant differences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MOST_GROUPS = 200
RANKS = "`ranks`: the ranks that a system can have, simultaneously for all systems with 95 % confidence"


def rank_sets(better: np.ndarray) -> list[tuple[int, int]]:
    """Return the lowest and highest rank that each of k systems can have, given all significant differences.

    `better` (k, k) is true if the row's system is significantly better than the column's, by tests of all pairs with a
    correction such as Holm's. All true ranks are then in their sets with at least the confidence of these tests.
    If no pair is wrong, a system ranks below all better and above all worse systems, also by way of other systems.
    Systems with equal true means share their ranks, and each shared rank is in the set. Cost: O(k³ log k).

    References
    ----------
    Mogstad, Romano, Shaikh, Wilhelm: Inference for ranks with applications to mobility across neighbourhoods and
    academic achievement across countries. Review of Economic Studies 91 (2024), 476-518.

    Examples
    --------
    >>> better = np.zeros((3, 3), dtype=bool)
    >>> better[0, 2] = True
    >>> rank_sets(better)
    [(1, 2), (1, 3), (2, 3)]
    """
    reached = np.asarray(better, dtype=np.float32)
    k = len(reached)
    for _ in range(k.bit_length()):
        reached = np.minimum(reached + reached @ reached, 1.0)
    worse, above = reached.sum(axis=1).astype(int), reached.sum(axis=0).astype(int)
    return list(zip((1 + above).tolist(), (k - worse).tolist()))


def ranks_shown(ranks: tuple[int, int]) -> str:
    """Return the text of a set of ranks in a table: "2" or "1 to 3"."""
    low, high = ranks
    return str(low) if low == high else f"{low} to {high}"


def groups_alike(means: Sequence[float], different: np.ndarray) -> list[list[int]]:
    """Return groups of systems such that two systems share a group exactly if they do not differ significantly.

    The algorithm is Piepho's insert and absorb, which starts with one group of all systems. Each significant pair
    splits the groups that hold both systems; then groups inside other groups are removed. If the algorithm needs more
    than `MOST_GROUPS` groups, the groups are the longest sequences without a significant difference in the order of
    means. Systems without a common group may then still not differ significantly.

    `different` (k, k) is symmetric. Groups may overlap. Groups are in the order of their best member.

    References
    ----------
    Piepho: An algorithm for a letter-based representation of all-pairwise comparisons. J. Comput. Graph. Stat. 13
    (2004), 456-466.

    Examples
    --------
    >>> apart = np.zeros((3, 3), dtype=bool)
    >>> apart[0, 2] = apart[2, 0] = True
    >>> groups_alike([0.5, 0.4, 0.3], apart)
    [[0, 1], [1, 2]]
    """
    order = np.argsort(-np.asarray(means, dtype=np.float64), kind="stable").tolist()
    k = len(order)
    groups = [(1 << k) - 1]  # sets of places in the order of means, as bits
    for i in range(k):
        for j in range(i + 1, k):
            if not different[order[i], order[j]]:
                continue
            pair = 1 << i | 1 << j
            kept = [group for group in groups if group & pair != pair]
            parts = {group & ~(1 << one) for group in groups if group & pair == pair for one in (i, j)}
            for part in sorted(parts, key=int.bit_count, reverse=True):
                if not any(part & group == part for group in kept):
                    kept.append(part)
            groups = kept
            if len(groups) > MOST_GROUPS:
                return _runs_alike(order, different)
    found = [[i for i in range(k) if group >> i & 1] for group in groups]
    return [[order[i] for i in group] for group in sorted(found)]


def _runs_alike(order: list[int], different: np.ndarray) -> list[list[int]]:
    """Return the longest groups of systems with consecutive means in which no pair differs significantly."""
    groups: list[list[int]] = []
    reached = 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and not different[order[stop], order[start:stop]].any():
            stop += 1
        if stop > reached:
            groups.append(order[start:stop])
            reached = stop
    return groups
