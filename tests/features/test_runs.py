"""TREC runs as features: joining, missing documents, grades, and documents that nobody retrieved."""

from __future__ import annotations

import io

import numpy as np
import pytest

from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.features.run_pool import join_runs
from truerank.io.trec import as_run, read_qrels, read_run
from truerank.measures import AP

A = "1 Q0 d1 1 4 a\n1 Q0 d2 2 2 a\n2 Q0 d9 1 1 a\n"
B = "1 Q0 d2 1 7 b\n1 Q0 d3 2 7 b\n3 Q0 d1 1 5 b\n"
QRELS = "2 0 d9 0\n1 0 d1 1\n1 0 d3 -2\n1 0 d8 1\n"


def runs():
    return [read_run(io.StringIO(text)) for text in (A, B)]


def test_union_of_documents_in_the_order_of_the_qrels():
    data = join_runs(runs(), read_qrels(io.StringIO(QRELS)), missing="nan")
    judgements = data.judgements()
    assert data.query_ids.tolist() == ["2", "1"]  # topic 3 is not judged
    assert data.doc_ids.tolist() == ["d9", "d3", "d2", "d1"]
    assert data.feature_names == ["a", "b"]
    np.testing.assert_array_equal(data.X, [[1, np.nan], [np.nan, 7], [2, 7], [4, np.nan]])
    assert data.y.tolist() == [0, 0, 0, 1]
    assert judgements.judged.tolist() == [True, True, False, True]
    assert judgements.grades.tolist() == [0, -1, 0, 1]
    assert judgements.missing_grades.tolist() == [1]  # d8: relevant, and retrieved by nobody
    # AP of a's scores over the union: d1 first of two relevant documents.
    assert AP.per_query(judgements, np.nan_to_num(data.X[:, 0])).tolist() == [0.0, 0.5]


def test_missing_documents_stand_below_the_lowest_score():
    X = join_runs(runs(), missing="min", margin=0.25).X
    # Topics 1, 2, 3; run a ranges over 2 … 4 in topic 1, all of run b's scores there are equal; topics that a run
    # lacks are 0 throughout.
    assert X.tolist() == [[1.5, 7], [2, 7], [4, 6.75], [1, 0], [0, 5]]
    assert join_runs(runs(), dtype=np.float32).X.dtype == np.float32


@pytest.mark.parametrize(("score", "dtype"), [(1e18, np.float64), (1.7e9, np.float32)])
def test_missing_documents_stand_below_scores_of_any_size(score, dtype):
    runs = [as_run({"q": {"a": score, "b": score}}, "x"), as_run({"q": {"c": -1e38, "a": 1e38}}, "y")]
    X = join_runs(runs, dtype=dtype).X  # documents c, b, a
    assert X[0, 0] < X[1, 0] == X[2, 0]
    assert np.isfinite(X).all()


def test_names_and_errors():
    a, b = runs()
    assert join_runs([a, a, b]).feature_names == ["a (1)", "a (2)", "b"]
    assert join_runs([a, b], names=["x", "y"]).feature_names == ["x", "y"]
    for settings in ({"names": ["x"]}, {"names": ["x", "x"]}, {"missing": "zero"}, {"margin": 0.0}):
        with pytest.raises(InvalidInputError):
            join_runs([a, b], **settings)
    with refused(InvalidInputError, argument="runs"):
        join_runs([])
    with refused(InvalidInputError, code="no-common-topic"):
        join_runs([a], read_qrels(io.StringIO("77 0 d1 1\n")))


def test_a_topic_for_which_a_run_has_no_document():
    a, b = as_run({"1": {"d1": 4.0, "d2": 2.0}, "2": {}}, "a"), as_run({"1": {}, "2": {"d3": 7.0}}, "b")
    joined = join_runs([a, b])
    assert joined.doc_ids.tolist() == ["d2", "d1", "d3"]
    assert joined.X.tolist() == [[2.0, 0.0], [4.0, 0.0], [0.0, 7.0]]
