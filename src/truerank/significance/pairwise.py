"""Many systems at once: the resamples of a family, and groups of systems without a significant difference."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

FEWEST, MOST = 10_000, 400_000  # resamples of a family of tests
MOST_GROUPS = 200


def resamples_for(n_tests: int, level: float = 0.05) -> int:
    """Return the resamples with which the smallest p times the number of tests is half the level (10,000 to 400,000).

    The smallest p of B resamples is 1/(B + 1), and Holm multiplies it by the number of tests. With fewer resamples no
    difference could be significant.

    >>> resamples_for(1), resamples_for(4950)
    (10000, 198000)
    """
    return int(min(MOST, max(FEWEST, math.ceil(2 * n_tests / level))))


def groups_alike(means: Sequence[float], different: np.ndarray) -> list[list[int]]:
    """Return groups of systems such that two systems share a group exactly if they do not differ significantly.

    Piepho's insert and absorb: start with one group of all systems. Each significant pair splits the groups that hold
    both systems, and groups within other groups are removed. If that needs more than `MOST_GROUPS` groups, the groups
    are the longest sequences in the order of means without a significant difference. In this case, systems without a
    common group may also not differ significantly.

    `different` (k, k) is symmetric. Groups may overlap. Groups are sorted by their best member.

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
    """Return the longest sequences in the order of means without a significant difference."""
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
