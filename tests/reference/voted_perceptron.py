"""Freund and Schapire's algorithm as printed, every weight vector written out."""

from __future__ import annotations

import math


def train(rows, signs, orders):
    """Weight vectors and their votes; `rows` have their 1 appended, `orders` lists the passes' orders."""
    vectors, votes = [[0.0] * len(rows[0])], [0]
    for order in orders:
        mistakes = 0
        for i in order:
            product = sum(v * x for v, x in zip(vectors[-1], rows[i]))
            if signs[i] * product > 0:
                votes[-1] += 1
            else:
                vectors.append([v + signs[i] * x for v, x in zip(vectors[-1], rows[i])])
                votes.append(1)
                mistakes += 1
        if mistakes == 0:
            break
    return vectors, votes


def score(vectors, votes, row):
    """log(1 + votes for) - log(1 + votes against), the votes scaled to a sum of 10,000."""
    share = sum(c for v, c in zip(vectors, votes) if sum(a * b for a, b in zip(v, row)) > 0) / sum(votes)
    return math.log(1 + 10_000 * share) - math.log(1 + 10_000 * (1 - share))
