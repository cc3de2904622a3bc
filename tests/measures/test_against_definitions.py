"""Every measure against the loops of tests/reference/measures.py, on random ragged queries with ties."""

from __future__ import annotations

import numpy as np
import pytest

from reference import measures as slow
from truerank.data.ranking_data import Judgements
from truerank.measures import AP, ROC, RR, WTA, P, R, Rprec, Success, nDCG


def ragged(seed, queries=40, longest=30, grades=4, levels=12):
    """Judgements and scores with many ties, some queries without relevant documents, some without any document."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, longest, queries)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    y = rng.integers(-1, grades, offsets[-1]).astype(float)
    for query in range(0, queries, 5):
        y[offsets[query] : offsets[query + 1]] = 0
    missing = [rng.integers(0, grades, rng.integers(0, 4)) for _ in range(queries)]
    judgements = Judgements(
        y,
        offsets,
        missing_grades=np.concatenate(missing).astype(float),
        missing_offsets=np.concatenate([[0], np.cumsum([len(part) for part in missing])]),
    )
    return judgements, rng.integers(0, levels, offsets[-1]) / 7.0, missing


def by_query(judgements, scores, missing, function):
    """`function(grades in ranked order, grades of all judged documents)` of each query, ties in row order."""
    values = []
    for query in range(judgements.n_queries):
        rows = range(judgements.offsets[query], judgements.offsets[query + 1])
        ranked = sorted(rows, key=lambda row: (-scores[row], row))
        grades = [judgements.grades[row] for row in ranked]
        values.append(function(grades, [*grades, *missing[query].tolist()]))
    return np.array(values)


def count(judged, rel=1):
    return sum(grade >= rel for grade in judged)


CASES = {
    "AP": (AP, lambda g, j: slow.ap(g, count(j))),
    "AP2": (AP(rel=2), lambda g, j: slow.ap(g, count(j, 2), rel=2)),
    "AP@5": (AP @ 5, lambda g, j: slow.ap(g, count(j), cutoff=5)),
    "AP@5r": (AP(denominator="reachable") @ 5, lambda g, j: slow.ap(g, count(j), cutoff=5, reachable=True)),
    "nDCG": (nDCG, slow.ndcg),
    "nDCG@4": (nDCG @ 4, lambda g, j: slow.ndcg(g, j, 4)),
    "linear": (nDCG(gain="linear"), lambda g, j: slow.ndcg(g, j, gain="linear")),
    "letor": (nDCG(discount="letor") @ 6, lambda g, j: slow.ndcg(g, j, 6, discount="letor")),
    "letor4": (
        nDCG(convention="letor4") @ 9,
        lambda g, j: slow.ndcg(g, j, 9, discount="letor", short="zero"),
    ),
    "RR": (RR, lambda g, j: slow.rr(g)),
    "RR@3": (RR(rel=3) @ 3, lambda g, j: slow.rr(g, 3, 3)),
    "P@7": (P @ 7, lambda g, j: slow.precision(g, 7)),
    "R@7": (R @ 7, lambda g, j: slow.recall(g, count(j), 7)),
    "Success@2": (Success @ 2, lambda g, j: slow.success(g, 2)),
    "Rprec": (Rprec, lambda g, j: slow.rprec(g, count(j))),
    "WTA": (WTA, lambda g, j: slow.wta(g, max(j, default=0))),
    "ROC": (ROC(rel=2), lambda g, j: slow.roc(g, 2)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_definition(case, seed):
    measure, definition = CASES[case]
    judgements, scores, missing = ragged(seed)
    expected = by_query(judgements, scores, missing, definition)
    np.testing.assert_allclose(measure.per_query(judgements, scores), expected, atol=1e-13)


@pytest.mark.parametrize("case", CASES)
def test_several_rankings_at_once(case):
    measure, _ = CASES[case]
    judgements, _, _ = ragged(3)
    scores = np.random.default_rng(4).integers(0, 9, (5, judgements.n_rows)).astype(float)
    scores[2] = 0
    together = measure.per_query(judgements, scores)
    for row, values in zip(scores, together):
        np.testing.assert_array_equal(values, measure.per_query(judgements, row))
