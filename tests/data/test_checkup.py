"""Findings of the check-up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from truerank import RankingData
from truerank.data.checkup import EXPLANATIONS, examine, shared_queries

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
        "identical-rows": (1, ["a"]),
        "conflicting-grades": (1, ["a"]),
        "negative-grade": (1, ["c"]),
        "fractional-grade": (1, ["c"]),
    }
    assert found["duplicate-feature"].where == "feature 4 = 3"
    assert list(found) == [code for code in EXPLANATIONS if code in found]


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


def test_shared_queries():
    found = shared_queries(["train", "vali", "test"], [np.array([1, 2]), np.array([3]), np.array([2, 3])])
    assert [(finding.where, finding.count, finding.items) for finding in found] == [
        ("train and test: query 2", 1, [2]),
        ("vali and test: query 3", 1, [3]),
    ]
