"""AdaRank as the paper writes it: lists, loops, and a ranking made anew for every question asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Query = tuple[Sequence[Sequence[float]], Sequence[float]]  # rows of feature values, grades


def average_precision(grades: Sequence[float]) -> float:
    found, total = 0, 0.0
    for rank, grade in enumerate(grades, start=1):
        if grade >= 1:
            found += 1
            total += found / rank
    return total / found if found else 0.0


def ndcg(cutoff: int) -> Callable[[Sequence[float]], float]:
    def dcg(grades: Sequence[float]) -> float:
        return sum((2**g - 1) / math.log2(1 + rank) for rank, g in enumerate(grades[:cutoff], start=1))

    def value(grades: Sequence[float]) -> float:
        best = dcg(sorted(grades, reverse=True))
        return dcg(grades) / best if best else 0.0

    return value


def reciprocal_rank(grades: Sequence[float]) -> float:
    return next((1 / rank for rank, grade in enumerate(grades, start=1) if grade >= 1), 0.0)


def ranked(scores: Sequence[float], grades: Sequence[float]) -> list[float]:
    """Grades by descending score, equal scores in row order."""
    return [grades[j] for j in sorted(range(len(scores)), key=lambda j: (-scores[j], j))]


def adarank(
    queries: Sequence[Query],
    measure: Callable[[Sequence[float]], float],
    *,
    n_rounds: int,
    update: str = "paper",
    drop_constant: bool = True,
    signed: bool = False,
    repeat: bool = True,
    sample: Callable[[int, list[float]], Sequence[float]] | None = None,
    weights: Sequence[float] | None = None,
) -> list[dict[str, Any]]:
    """One record a round: feature, sign, alpha, phi, delta, bound, P, f's measure by query, combined weights."""
    m, p = len(queries), len(queries[0][0][0])
    weights = [1.0] * m if weights is None else list(weights)
    active = list(range(m))
    if drop_constant:
        active = [
            i
            for i in range(m)
            if abs(measure(sorted(queries[i][1], reverse=True)) - measure(sorted(queries[i][1]))) > 1e-12
        ]
    weak = [(k, sign) for sign in ((1.0, -1.0) if signed else (1.0,)) for k in range(p)]
    coef = [0.0] * p

    def value(i: int, w: Sequence[float]) -> float:
        rows, grades = queries[i]
        return measure(ranked([sum(a * b for a, b in zip(row, w)) for row in rows], grades))

    def unit(k: int, sign: float) -> list[float]:
        return [sign if j == k else 0.0 for j in range(p)]

    total = sum(weights[i] for i in active)
    P = {i: weights[i] / total for i in active}
    before = dict.fromkeys(active, 0.0)
    product = 1.0
    records = []
    for t in range(n_rounds):
        weak = [(k, sign) for k, sign in weak if repeat or k not in [r["feature"] for r in records]]
        if not weak:
            break
        sums = [sum(P[i] * value(i, unit(k, sign)) for i in active) for k, sign in weak]
        chosen_by = sums
        if sample is not None:
            share = dict(zip(active, sample(t, [P[i] for i in active])))
            chosen_by = [sum(share[i] * value(i, unit(k, sign)) for i in active) for k, sign in weak]
        best = max(chosen_by)
        chosen = next(j for j, s in enumerate(chosen_by) if s >= best - 1e-12)
        k, sign = weak[chosen]
        phi = sums[chosen]
        if phi <= 0:
            break
        alpha = 0.5 * math.log((1 + phi) / (1 - phi))
        h = {i: value(i, unit(k, sign)) for i in active}
        coef[k] += alpha * sign
        after = {i: value(i, coef) for i in active}
        delta = min(after[i] - before[i] - alpha * h[i] for i in active)
        product *= math.exp(-delta) * math.sqrt(1 - phi**2)
        records.append(
            {
                "feature": k,
                "sign": sign,
                "alpha": alpha,
                "phi": phi,
                "delta": delta,
                "bound": 1 - product,
                "P": dict(P),
                "measure": after,
                "coef": list(coef),
            }
        )
        if update == "paper":
            raw = {i: weights[i] * math.exp(-after[i]) for i in active}
        elif update == "compound":
            raw = {i: P[i] * math.exp(-after[i]) for i in active}
        else:
            raw = {i: P[i] * math.exp(-alpha * h[i]) for i in active}
        z = sum(raw.values())
        P = {i: raw[i] / z for i in active}
        before = after
    return records
