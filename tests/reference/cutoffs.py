"""Cut-offs by their definitions: every threshold in a loop, every tail as a sum, every bet by itself."""

from __future__ import annotations

import math


def missed(grades, shown):
    """Share of the relevant documents that are not among those shown; None where there are none."""
    relevant = sum(g >= 1 for g in grades)
    return sum(g >= 1 and not s for g, s in zip(grades, shown)) / relevant if relevant else None


def irrelevant_shown(grades, shown):
    kept = [g for g, s in zip(grades, shown) if s]
    return sum(g < 1 for g in kept) / len(kept) if kept else None


def nothing_in_top(scores, grades, k):
    ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    return float(not any(grades[i] >= 1 for i in ranked[:k]))


def mean_loss(queries, loss, threshold):
    """Mean of the losses that are not None, where documents with scores of at least `threshold` are shown."""
    losses = [loss(grades, [s >= threshold for s in scores]) for scores, grades in queries]
    known = [one for one in losses if one is not None]
    return sum(known) / len(known) if known else 0.0


def conformal(queries, loss, at_most):
    """The highest threshold with n/(n + 1) R + 1/(n + 1) ≤ α, or None."""
    n = sum(loss(grades, [True] * len(grades)) is not None for _, grades in queries)
    for threshold in sorted({s for scores, _ in queries for s in scores} | {math.inf}, reverse=True):
        if (n * mean_loss(queries, loss, threshold) + 1) / (n + 1) <= at_most + 1e-12:
            return threshold
    return None


def binomial_tail(lost, n, at_most):
    return sum(math.comb(n, i) * at_most**i * (1 - at_most) ** (n - i) for i in range(lost + 1))


def answered_by_sequence(values, losses, at_most, confidence, start, step):
    """Which queries are answered: binomial tails at growing shares of the queries, until the first is too large."""
    n, answered = len(values), [False] * len(values)
    least = math.log(1 - confidence) / math.log(1 - at_most)
    share = start
    while share < 1 + step - 1e-9:
        count = math.ceil(min(share, 1.0) * n - 1e-9)
        ordered = sorted(values, reverse=True)
        now = [v > ordered[count] if count < n else True for v in values]
        share += step
        if sum(now) < least - 1e-9:
            continue
        lost = sum(int(loss) for loss, is_answered in zip(losses, now) if is_answered)
        if binomial_tail(lost, sum(now), at_most) > 1 - confidence:
            break
        answered = now
    return answered


def bets(losses, at_most, confidence):
    """1/(highest wealth), at most 1."""
    n, wealth, highest = len(losses), 1.0, 1.0
    variance, squares = 0.25, 0.0
    for i, loss in enumerate(losses):
        stake = min(0.75 / (1 - at_most), math.sqrt(2 * math.log(1 / (1 - confidence)) / (n * variance)))
        wealth *= 1 + stake * (at_most - loss)
        highest = max(highest, wealth)
        mean = (0.5 + sum(losses[: i + 1])) / (i + 2)
        squares += (loss - mean) ** 2
        variance = (0.25 + squares) / (i + 2)
    return 1 / highest
