"""Shapley values by the definition: the mean over all orders of the players."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np


def shapley_by_enumeration(value: Callable[[frozenset[int]], float], n_players: int) -> np.ndarray:
    """φ_j = Σ_S (|S|! (n - |S| - 1)! / n!) (v(S ∪ j) - v(S)) over all coalitions S without j."""
    value = functools.cache(value)  # 2^p sets, each of which is asked for p times
    result = np.zeros(n_players)
    for j in range(n_players):
        others = [k for k in range(n_players) if k != j]
        for size in range(n_players):
            for chosen in combinations(others, size):
                weight = 1.0 / (n_players * comb(n_players - 1, size))
                result[j] += weight * (value(frozenset(chosen) | {j}) - value(frozenset(chosen)))
    return result


def tree_value(
    leaf_value: Callable[[int, frozenset[int]], float],
    features: list[int],
    right_of_row: list[float],
    right_of_reference: np.ndarray,
    known: frozenset[int],
) -> float:
    """v(S) of one oblivious tree, walked node by node: known features answer as the row does, others as the rows do."""

    def walk(level: int, number: int, shares: np.ndarray) -> float:
        if level == len(features):
            return leaf_value(number, known)
        q = right_of_reference[:, level]
        if features[level] in known:
            right = right_of_row[level]
        else:
            total = shares.sum()
            right = 0.5 if total <= 0 else float((shares * q).sum() / total)
        low = walk(level + 1, number, shares * (1 - q))
        high = walk(level + 1, number | (1 << level), shares * q)
        return (1 - right) * low + right * high

    return walk(0, 0, np.ones(len(right_of_reference)))
