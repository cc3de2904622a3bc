"""Agreement of two orders of systems, by loops over pairs, positions and random orders of ties."""

from __future__ import annotations

import itertools
import math

import numpy as np


def _orders(values):
    """All orders of systems by falling value, each order of ties as one."""
    groups = [[k for k, own in enumerate(values) if own == value] for value in sorted(set(values), reverse=True)]
    for parts in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [system for part in parts for system in part]


def tau(a, b):
    """Kendall's tau-b."""
    agree = untied_a = untied_b = 0
    for i, j in itertools.combinations(range(len(a)), 2):
        x, y = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
        agree, untied_a, untied_b = agree + x * y, untied_a + x * x, untied_b + y * y
    return agree / math.sqrt(untied_a * untied_b) if untied_a and untied_b else math.nan


def tau_ap(truth, judged):
    """Yilmaz, Aslam and Robertson's coefficient, a mean over orders of what the judge ties; tied pairs are 1/2."""
    found = []
    for order in _orders(judged):
        total = 0.0
        for place in range(1, len(order)):
            above = [1.0 if truth[one] > truth[order[place]] else 0.5 if truth[one] == truth[order[place]] else 0.0
                     for one in order[:place]]  # fmt: skip
            total += sum(above) / place
        found.append(2.0 * total / (len(order) - 1) - 1.0)
    return float(np.mean(found))


def rbo(a, b, p):
    """Rank-biased overlap of two whole lists of the same k systems, extrapolated; the mean over orders of ties."""
    found = []
    for first, second in itertools.product(_orders(a), _orders(b)):
        k = len(first)
        overlap = [len(set(first[:d]) & set(second[:d])) for d in range(1, k + 1)]
        total = sum(overlap[d - 1] / d * p**d for d in range(1, k + 1))
        found.append(overlap[k - 1] / k * p**k + (1.0 - p) / p * total)
    return float(np.mean(found))
