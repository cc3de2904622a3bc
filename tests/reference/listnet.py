"""ListNet's objective as its definition reads, one query and one document at a time."""

from __future__ import annotations

import math


def objective(coef, X, y, qid, alpha=0.0, query_weight=None, normalize=False):
    queries = list(dict.fromkeys(qid))
    weight = dict.fromkeys(queries, 1.0) if query_weight is None else dict(zip(queries, query_weight))
    loss = total = 0.0
    for query in queries:
        rows = [i for i, q in enumerate(qid) if q == query]
        if len({float(y[i]) for i in rows}) < 2 or weight[query] == 0:
            continue
        scores = [sum(w * x for w, x in zip(coef, X[i])) for i in rows]
        top_score = max(scores)
        top_grade = max(y[i] for i in rows)
        score_sum = sum(math.exp(s - top_score) for s in scores)
        grade_sum = sum(math.exp(y[i] - top_grade) for i in rows)
        for i, s in zip(rows, scores):
            loss -= weight[query] * math.exp(y[i] - top_grade) / grade_sum * (s - top_score - math.log(score_sum))
        total += weight[query]
    if normalize and total:
        loss /= total
    return loss + alpha / 2 * sum(w * w for w in coef)


def gradient_descent(X, y, qid, learning_rate, epochs, alpha=0.0):
    """Algorithm 1 of the paper, with each query's share of the L2 term."""
    queries = [q for q in dict.fromkeys(qid) if len({float(g) for g, r in zip(y, qid) if r == q}) > 1]
    coef = [0.0] * len(X[0])
    for _ in range(epochs):
        for query in queries:
            rows = [i for i, q in enumerate(qid) if q == query]
            scores = [sum(w * x for w, x in zip(coef, X[i])) for i in rows]
            score_sum = sum(math.exp(s) for s in scores)
            grade_sum = sum(math.exp(y[i]) for i in rows)
            step = [alpha / len(queries) * w for w in coef]
            for i, s in zip(rows, scores):
                difference = math.exp(s) / score_sum - math.exp(y[i]) / grade_sum
                step = [d + difference * x for d, x in zip(step, X[i])]
            coef = [w - learning_rate * d for w, d in zip(coef, step)]
    return coef
