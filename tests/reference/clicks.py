"""Slow, obvious versions of what `truerank.clicks` computes: dicts, loops, a general optimiser."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
from scipy.optimize import minimize


def counts(log):
    """Impressions and clicks of each (query, document, position)."""
    shown, clicked = Counter(), Counter()
    for q, d, k, c in zip(log.query.tolist(), log.document.tolist(), log.position.tolist(), log.clicked.tolist()):
        shown[q, d, k] += 1
        clicked[q, d, k] += c
    return shown, clicked


def matched(log, K):
    """A_kl: clicks at k on documents that were also shown at l, each weighed by n_l / (n_k + n_l)."""
    shown, clicked = counts(log)
    places = defaultdict(list)
    for q, d, k in shown:
        if k <= K:
            places[q, d].append(k)
    A = np.zeros((K, K))
    for (q, d), ranks in places.items():
        for k in ranks:
            for m in ranks:
                if k != m:
                    n, other = shown[q, d, k], shown[q, d, m]
                    A[k - 1, m - 1] += clicked[q, d, k] * other / (n + other)
    return A


def propensities(A):
    """The maximum of Σ A_kl log(p_k / (p_k + p_l)) by a general optimiser."""

    def loss(u):
        u = np.append(0.0, u)
        return sum(A[k, m] * np.logaddexp(0.0, u[m] - u[k]) for k in range(len(A)) for m in range(len(A)) if k != m)

    return np.exp(np.append(0.0, minimize(loss, np.zeros(len(A) - 1), tol=1e-12).x))


def exclusion(log):
    """z of Σ over lists of 2 Σ_{k<l} Σ_i (c_ik - mean c_k)(c_il - mean c_l), summed by query."""
    lists = defaultdict(list)
    for start, stop in zip(log.offsets[:-1], log.offsets[1:]):
        lists[log.query[start], tuple(log.document[start:stop].tolist())].append(log.clicked[start:stop].astype(float))
    by_query = Counter()
    for (q, _), clicks in lists.items():
        if len(clicks) > 1:
            c = np.array(clicks)
            d = c - c.mean(axis=0)
            by_query[q] += sum(2 * (d[:, k] * d[:, m]).sum() for k, m in combinations(range(c.shape[1]), 2))
    values = np.array(list(by_query.values()))
    return values.sum() / np.sqrt((values**2).sum())


def steepness(log, theta):
    """z of Σ over documents and halves of the impressions of (weight - mean weight) · residual, by loops."""
    shown, clicked = Counter(), Counter()
    rows = zip(log.query.tolist(), log.document.tolist(), log.position.tolist(), log.clicked.tolist(),
               (log.impression % 2).tolist())  # fmt: skip
    for q, d, k, c, half in rows:
        if k <= len(theta):
            shown[q, d, half, k] += 1
            clicked[q, d, half, k] += c
    expected, hits, places = Counter(), Counter(), defaultdict(list)
    for q, d, half, k in sorted(shown):
        expected[q, d, half] += shown[q, d, half, k] * theta[k - 1]
        hits[q, d, half] += clicked[q, d, half, k]
        places[q, d, half].append(k)
    mean = sum(hits.values()) / sum(expected.values())
    terms, sums = [], defaultdict(lambda: np.zeros(2))
    for (q, d, half), ranks in places.items():
        other = (q, d, 1 - half)
        if other not in expected:
            continue
        rate = hits[other] / expected[other]
        weight = rate / (rate + mean)
        for k, m in combinations(ranks, 2):
            n, c = [shown[q, d, half, at] for at in (k, m)], [clicked[q, d, half, at] for at in (k, m)]
            t = theta[[k - 1, m - 1]]
            residual = (c[0] * n[1] * t[1] - c[1] * n[0] * t[0]) / (sum(n) * t.sum())
            terms.append(((q, d, half), (k, m), weight, residual))
            sums[k, m] += np.array([weight, 1.0]) * sum(c) * n[0] * n[1] / sum(n)
    total = Counter()
    for owner, pair, weight, residual in terms:
        total[owner] += (weight - sums[pair][0] / max(sums[pair][1], 1e-300)) * residual
    values = np.array(list(total.values()))
    return values.sum() / np.sqrt((values**2).sum())


def value(log, run, theta, cutoff):
    """Self-normalised value, its least and most, and the support of a run {query: {document: score}}, by loops."""
    shown, clicked = counts(log)
    impressions = Counter(log.query_ids[log.query[log.offsets[:-1]]].tolist())
    total = least = most = weight = known = 0.0
    for query, scores in run.items():
        if query not in impressions:
            continue
        share = impressions[query] / sum(impressions[other] for other in run if other in impressions)
        for rank, document in enumerate(sorted(scores, key=scores.get, reverse=True)[:cutoff]):
            clicks = seen = 0.0
            for (q, d, k), n in shown.items():
                if (log.query_ids[q], log.document_ids[d]) == (query, document):
                    clicks += clicked[q, d, k]
                    seen += n * theta[k - 1]
            weight += share * theta[rank]
            if seen:
                total += share * theta[rank] * clicks / seen
                known += share * theta[rank]
            else:
                most += share * theta[rank]
    return total, total + least, total + most, known / weight
