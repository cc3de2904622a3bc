"""Step-down max-T by its definition: every sign vector in a loop."""

from __future__ import annotations

from itertools import product

import numpy as np


def step_down(differences, measures):
    """Adjusted p (h,) from all 2^n sign vectors, for differences (n, h) without NaN."""
    n, h = differences.shape
    scale = np.empty(h)
    for j in range(h):
        same = [(differences[:, k] ** 2).mean() for k in range(h) if measures[k] == measures[j]]
        scale[j] = np.sqrt(np.mean(same))

    def statistics(signs):
        return np.abs((differences * np.array(signs)[:, None]).mean(axis=0)) / (scale / np.sqrt(n))

    observed = statistics([1] * n)
    every = [statistics(signs) for signs in product([1, -1], repeat=n)]
    order = sorted(range(h), key=lambda j: -observed[j])
    p = np.empty(h)
    largest = 0.0
    for place, j in enumerate(order):
        remaining = order[place:]
        count = sum(max(one[k] for k in remaining) >= observed[j] - 1e-9 for one in every)
        largest = max(largest, count / len(every))
        p[j] = largest
    return p


def step_down_of_copies(values):
    """Adjusted p (h,) of values (h, n, 1 + R), from all (1 + R)^n choices of the copy that plays the original."""
    h, n, copies = values.shape

    def losses(choice):
        found = np.empty(h)
        for j in range(h):
            found[j] = np.mean(
                [values[j, i, c] - np.mean(np.delete(values[j, i], c)) for i, c in zip(range(n), choice)]
            )
        return found

    every = [losses(choice) for choice in product(range(copies), repeat=n)]
    scale = np.sqrt(np.mean(np.square(every), axis=0))
    observed = np.abs(every[0]) / scale
    order = sorted(range(h), key=lambda j: -observed[j])
    p = np.empty(h)
    largest = 0.0
    for place, j in enumerate(order):
        count = sum(max(abs(one[k]) / scale[k] for k in order[place:]) >= observed[j] - 1e-9 for one in every)
        largest = max(largest, count / len(every))
        p[j] = largest
    return p
