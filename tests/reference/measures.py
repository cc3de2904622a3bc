"""Measures of one query, written as their definitions read: loops over the grades in ranked order."""

from __future__ import annotations

import math


def relevant(grades, rel=1):
    return [g >= rel for g in grades]


def ap(grades, total, rel=1, cutoff=None, reachable=False):
    """`grades` in ranked order, `total` relevant documents in all."""
    found, value = 0, 0.0
    for rank, hit in enumerate(relevant(grades, rel), start=1):
        if hit:
            found += 1
            if cutoff is None or rank <= cutoff:
                value += found / rank
    if reachable and cutoff is not None:
        total = min(total, cutoff)
    return value / total if total else 0.0


def dcg(grades, cutoff=None, gain="exponential", discount="log2"):
    value = 0.0
    for rank, grade in enumerate(grades[:cutoff], start=1):
        g = max(grade, 0)
        g = 2**g - 1 if gain == "exponential" else g
        if discount == "letor":
            value += g if rank <= 2 else g / math.log2(rank)
        else:
            value += g / math.log2(1 + rank)
    return value


def ndcg(grades, judged, cutoff=None, gain="exponential", discount="log2", short="pad"):
    """`judged`: grades of all judged documents of the query."""
    best = dcg(sorted(judged, reverse=True), cutoff, gain, discount)
    if short == "zero" and cutoff is not None and len(grades) < cutoff:
        return 0.0
    return dcg(grades, cutoff, gain, discount) / best if best > 0 else 0.0


def rr(grades, rel=1, cutoff=None):
    for rank, hit in enumerate(relevant(grades, rel), start=1):
        if hit:
            return 1 / rank if cutoff is None or rank <= cutoff else 0.0
    return 0.0


def precision(grades, cutoff, rel=1):
    return sum(relevant(grades, rel)[:cutoff]) / cutoff


def recall(grades, total, cutoff, rel=1):
    return sum(relevant(grades, rel)[:cutoff]) / total if total else 0.0


def success(grades, cutoff, rel=1):
    return float(any(relevant(grades, rel)[:cutoff]))


def rprec(grades, total, rel=1):
    return sum(relevant(grades, rel)[:total]) / total if total else 0.0


def wta(grades, best):
    return float(bool(grades) and best > 0 and grades[0] == best)


def roc(grades, rel=1):
    hits = relevant(grades, rel)
    pairs = right = 0
    for i in range(len(hits)):
        for j in range(i + 1, len(hits)):
            if hits[i] != hits[j]:
                pairs += 1
                right += hits[i]
    return right / pairs if pairs else 0.0


def mean_ndcg(grades, judged, gain="exponential", discount="log2"):
    values = [ndcg(grades, judged, k, gain, discount) for k in range(1, len(grades) + 1)]
    return sum(values) / len(values) if values else 0.0


def err(grades, largest, cutoff=None):
    value, going = 0.0, 1.0
    for rank, grade in enumerate(grades[:cutoff], start=1):
        stop = (2 ** max(grade, 0) - 1) / 2**largest
        value += going * stop / rank
        going *= 1 - stop
    return value


def rbp(grades, p, rel=1, cutoff=None):
    return (1 - p) * sum(p**i for i, hit in enumerate(relevant(grades, rel)[:cutoff]) if hit)


def bpref(grades, judged_mask, judged, rel=1):
    """trec_eval's form; `judged_mask` by ranked document, `judged` the grades of all judged documents."""
    total = sum(g >= rel for g in judged)
    bad = sum(0 <= g < rel for g in judged)
    above, value = 0, 0.0
    for grade, known in zip(grades, judged_mask):
        if grade >= rel:
            value += 1 - min(above, total) / min(total, bad) if above else 1
        elif known and grade >= 0:
            above += 1
    return value / total if total else 0.0


def judged_share(judged_mask, cutoff=None):
    head = judged_mask[:cutoff]
    return sum(head) / len(head) if head else 0.0


def wrong_pairs(grades, a, b):
    """Share of the pairs of grades a and b whose worse document stands first; None without such a pair."""
    high, low = max(a, b), min(a, b)
    pairs = wrong = 0
    for i in range(len(grades)):
        for j in range(i + 1, len(grades)):
            if {grades[i], grades[j]} == {high, low} and high != low:
                pairs += 1
                wrong += grades[i] == low
    return wrong / pairs if pairs else None


def mean_over_orders(scores, rows, function):
    """Mean of `function(rows in ranked order)` over all orders of the tied rows, each order listed."""
    from itertools import groupby, permutations, product

    ranked = sorted(rows, key=lambda row: -scores[row])
    groups = [list(group) for _, group in groupby(ranked, key=lambda row: scores[row])]
    values = [function([row for part in choice for row in part]) for choice in product(*map(permutations, groups))]
    return sum(values) / len(values)
