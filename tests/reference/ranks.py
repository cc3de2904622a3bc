"""Sets of ranks from pairs: every order of the systems that contradicts no pair is tried."""

from __future__ import annotations

from itertools import permutations


def rank_sets(better):
    """The lowest and highest rank (from 1) of each of k systems over all orders that agree with `better` (k, k)."""
    k = len(better)
    ranks = [set() for _ in range(k)]
    for order in permutations(range(k)):
        place = {system: number for number, system in enumerate(order, 1)}
        if all(place[a] < place[b] for a in range(k) for b in range(k) if better[a][b]):
            for system in range(k):
                ranks[system].add(place[system])
    return [(min(own), max(own)) for own in ranks]
