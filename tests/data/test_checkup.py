"""Findings of the check-up."""

from __future__ import annotations

import math
import re
from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy import sparse

from truerank import RankingData
from truerank.data.checkup import _answers, _log_chance, _look, examine, fold_scales, scored, shared_queries, spreads
from truerank.data.remarks import CODES
from truerank.measures.file_order import file_order_finding

X = np.array(
    [
        # constant, by query, plain, copy of plain, missing
        [5, 1, 0.5, 0.5, 1],
        [5, 1, 0.5, 0.5, 1],
        [5, 1, -0.0, 0.0, np.nan],
        [5, 2, 4.0, 4.0, 2],
        [5, 3, 4.0, 4.0, 3],
        [5, 3, 7.0, 7.0, 3],
    ]
)
QID = ["a", "a", "a", "b", "c", "c"]
Y = [1, 0, 2, 1, -1, 0.5]
DOCUMENTS = ["d1", "d1", "d2", "d1", "d3", ""]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_findings(form):
    found = {finding.code: finding for finding in examine(RankingData(form(X), Y, QID, doc_ids=DOCUMENTS))}
    counts = {code: (finding.count, finding.items) for code, finding in found.items()}
    assert counts == {
        "single-document-query": (1, ["b"]),
        "query-without-pairs": (1, ["b"]),
        "constant-feature": (1, ["1"]),
        "query-level-feature": (1, ["2"]),
        "duplicate-feature": (1, ["4"]),
        "missing-value": (1, ["5"]),
        "duplicate-document": (1, ["a"]),
        "conflicting-documents": (1, ["a"]),
        "identical-rows": (1, ["a"]),
        "conflicting-grades": (1, ["a"]),
        "negative-grade": (1, ["c"]),
        "fractional-grade": (1, ["c"]),
    }
    assert found["duplicate-feature"].where == "feature 4 = 3"
    assert list(found) == [code for code in CODES if code in found]


def test_queries_in_pieces_and_without_relevant_documents():
    data = RankingData([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 0], [1, 2, 1, 2])
    counts = {finding.code: finding.count for finding in examine(data)}
    assert counts == {"joined-query": 2, "query-without-pairs": 1, "query-without-relevant": 1}


def test_clean_data_have_no_findings():
    rng = np.random.default_rng(0)
    data = RankingData(
        rng.random((20, 3)), np.tile([0, 1], 10), np.repeat([1, 2], 10), doc_ids=list(map(str, range(20)))
    )
    assert examine(data) == []


def test_data_without_judgments_and_long_lists():
    data = RankingData(np.zeros((30, 1)), None, np.arange(30))
    found = {finding.code: finding for finding in examine(data)}
    assert set(found) == {"single-document-query", "constant-feature"}
    assert found["single-document-query"].where == "queries 0, 1, 2, 3, 4, 5, 6, 7 and 22 more"


def test_a_query_is_shared_with_a_file_that_has_texts_for_ids():
    [found] = shared_queries(["train", "test"], [np.array([7, 8]), np.array(["007", "7"])])
    assert (found.code, found.count, found.items) == ("shared-query", 1, ["7"])
    assert shared_queries(["train", "test"], [np.array([7, "7"], dtype=object), np.array([8])]) == []


def test_shared_queries():
    found = shared_queries(["train", "vali", "test"], [np.array([1, 2]), np.array([3]), np.array([2, 3])])
    assert [(finding.where, finding.count, finding.items) for finding in found] == [
        ("train and test: query 2", 1, [2]),
        ("vali and test: query 3", 1, [3]),
    ]


def made(queries=40, documents=12, seed=0):
    rng = np.random.default_rng(seed)
    n = queries * documents
    return rng, rng.random((n, 4)), rng.integers(0, 3, n).astype(float), np.repeat(np.arange(queries), documents)


def test_a_planted_answer_is_found():
    _, X, y, qid = made()
    X[:, 2] = 10 * y - 3 * qid
    (finding,) = examine(RankingData(X, y, qid))
    assert (finding.code, finding.items, finding.severity) == ("feature-equals-grade", ["3"], "forbids a verdict")
    X[5, 2] -= 100
    assert examine(RankingData(X, y, qid)) == [] or y[5] == 0


@pytest.mark.parametrize(("queries", "documents", "relevant"), [(3, 2, 1), (5, 2, 1), (8, 2, 1), (3, 5, 1)])
def test_random_features_of_few_queries_are_no_answers(queries, documents, relevant):
    """Some of 46 random features order so few documents as the grades do, which is no error of the data."""
    grades = np.tile([0.0] * (documents - relevant) + [1.0] * relevant, queries)
    qid, by_chance = np.repeat(np.arange(queries), documents), 0
    for seed in range(40):
        X = np.random.default_rng(seed).random((len(qid), 46))
        data = RankingData(X, grades, qid)
        by_chance += bool(_answers(data, np.ones(queries, dtype=bool)).any())
        assert "feature-equals-grade" not in {finding.code for finding in examine(data)}
    assert by_chance > 0


def test_the_chance_of_the_order_of_the_grades_is_the_share_of_all_orders():
    grades = [[1.0, 0.0, 0.0, 2.0], [1.0, 1.0, 0.0]]
    for values in ([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0]], [[1.0, 1.0, 3.0, 4.0], [5.0, 6.0, 6.0]]):
        share = 1.0
        for own, shown in zip(grades, values):
            orders = [sorted(zip(shown, order)) for order in permutations(own)]
            right = [
                all(g <= h and (g == h or x < z) for (x, g), (z, h) in pairwise(order))
                for order in orders
            ]  # fmt: skip
            share *= np.mean(right)
        data = RankingData(np.concatenate(values)[:, None], np.concatenate(grades), [0] * 4 + [1] * 3)
        assert math.exp(_log_chance(data)) == pytest.approx(share)
        parts = [data.take_queries([k]).statistics(_look, False) for k in (0, 1)]
        assert data.statistics(_look, False).log_chance == pytest.approx((parts[0] + parts[1]).log_chance)


def test_a_huge_grade_and_conflicting_documents():
    _, X, y, qid = made()
    y[3] = 40
    documents = [f"d{i}" for i in range(len(y))]
    documents[1] = documents[0]
    y[0], y[1] = 0, 1
    codes = {finding.code: finding.count for finding in examine(RankingData(X, y, qid, doc_ids=documents))}
    assert codes == {"huge-grade": 1, "duplicate-document": 1, "conflicting-documents": 1}


def test_file_order_that_tells_the_grades_is_found_and_chance_is_not():
    found = 0
    for seed in range(60):
        _, X, y, qid = made(seed=seed)
        found += bool(file_order_finding(RankingData(X, y, qid)))
    assert found <= 2
    _, X, y, qid = made()
    order = np.lexsort((-y, qid))
    (finding,) = file_order_finding(RankingData(X, y[order], qid))
    assert finding.code == "file-order"
    assert finding.severity == "changes figures"


def test_scores():
    data = RankingData([[1.0]] * 6, [0, 1, 2, 0, 1, 0], ["a", "a", "a", "b", "b", "c"])
    found = {f.code: f.items for f in scored(data, np.array([1.0, 1.0, 2.0, 5.0, 5.0, 0.0]))}
    assert found == {"constant-scores": ["b"], "tied-scores": ["a"]}
    assert scored(data, np.arange(6.0)) == []


def test_files_that_were_normalised_apart():
    _, X, y, qid = made()
    one, other = RankingData(X, y, qid), RankingData(100 * X, y, qid)
    (finding,) = fold_scales(["a", "b"], [spreads(one), spreads(other)])
    assert (finding.code, finding.count) == ("fold-scale", 4)
    assert fold_scales(["a", "b"], [spreads(one), spreads(RankingData(2 * X, y, qid))]) == []


def test_few_rows_establish_neither_scales_nor_an_order_of_rows():
    scales = orders = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        qid, y = np.repeat(np.arange(3), 5), rng.permuted(np.tile([0.0, 0.0, 0.0, 0.0, 1.0], (3, 1)), axis=1).ravel()
        files = [RankingData(rng.exponential(size=(15, 46)) * (rng.random((15, 46)) < 0.1), y, qid) for _ in "ab"]
        scales += bool(fold_scales(["a", "b"], [spreads(data) for data in files]))
        orders += bool(file_order_finding(files[0]))
    assert scales == 0
    assert orders <= 2


def test_every_code_says_what_to_do():
    for code, entry in CODES.items():
        assert entry.severity in ("forbids a verdict", "changes figures", "note"), code
        assert entry.remedy, code


def test_advice_in_words_has_no_arguments_of_python():
    """Arguments are remedies of their own, which the command line words as options."""
    advice = [
        remedy for code in CODES.values() for remedy in ([code.remedy] if isinstance(code.remedy, str) else code.remedy)
    ]
    # Settings of a measure are written in the same way on the command line.
    wrong = [one for one in advice if isinstance(one, str) and re.search(r'(?<![(\w])\w+="', one)]
    assert wrong == []
