"""Data frames whose columns are not those of fit: they are found by name, or the error says what is missing."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from support.refusals import refused
from truerank import ObliviousBoosting, RandomRanker, RankBoost, RankerPipeline, RidgeRanker, read_table
from truerank.core.errors import InvalidInputError

X = pandas.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
Y, QID = (X["a"] > 0).astype(int), np.repeat([0, 1], 20)
RANKERS = [RidgeRanker(), ObliviousBoosting(n_estimators=2, depth=1), RankerPipeline("z-score-in-query", RidgeRanker())]


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_columns_are_found_by_name_and_missing_ones_are_named(ranker):
    ranker.fit(X, Y, qid=QID)
    more = X.assign(title="x", price=1.0)[["title", "c", "b", "price", "a"]]
    expected = ranker.predict(X, qid=QID)
    np.testing.assert_array_equal(ranker.predict(more, qid=QID), expected)
    np.testing.assert_array_equal(ranker.predict(X[["b", "a", "c"]], qid=QID), expected)
    with refused(InvalidInputError, code="feature-names"):
        ranker.predict(X[["a", "b"]], qid=QID)


def test_categories_are_found_by_name_too():
    brands = X.assign(brand=pandas.Categorical(np.where(X["b"] > 0, "acme", "bolt")))
    ranker = ObliviousBoosting(n_estimators=3, depth=2, categorical=["brand"]).fit(brands, Y, qid=QID)
    more = brands.assign(title="x")[["title", "brand", "c", "a", "b"]]
    np.testing.assert_array_equal(ranker.predict(more), ranker.predict(brands))
    with refused(InvalidInputError, code="not-numeric"):
        RidgeRanker().fit(brands, Y, qid=QID)


@pytest.mark.parametrize("ranker", [RidgeRanker(), ObliviousBoosting(n_estimators=5, depth=2), RankBoost(5)])
def test_contributions_add_up_to_the_score_less_one_number(ranker):
    ranker.fit(X, Y, qid=QID)
    found = ranker.contributions(X[["c", "b", "a"]])
    assert found.shape == (40, 3)
    rest = ranker.predict(X) - found.sum(axis=1)
    np.testing.assert_allclose(rest, rest[0], atol=1e-9)
    some = ranker.contributions(X[:7], reference=X)
    np.testing.assert_allclose(some, found[:7], atol=1e-12)


def test_a_ranker_whose_scores_are_no_sum_has_no_contributions():
    with refused(InvalidInputError, code="no-contributions"):
        RandomRanker().fit(X, Y, qid=QID).contributions(X)


def test_all_columns_that_are_no_numbers_are_named_at_once():
    frame = X.assign(brand=pandas.Categorical(["a", "b"] * 20), shop="s", day=pandas.Timestamp("2025-01-01"))
    for named, lacking in (
        (None, "['brand', 'shop']"),
        (["brand"], "['brand', 'shop']"),
        (["shop"], "['shop', 'brand']"),
    ):
        with refused(InvalidInputError, code="not-numeric") as caught:
            ObliviousBoosting(categorical=named).fit(frame, Y, qid=QID)
        assert f"categorical={lacking}, and convert 'day'" in str(caught.value)
    data = read_table(frame.drop(columns="day").assign(qid=QID, y=Y), categories=["brand", "shop"])
    with refused(InvalidInputError, code="categories") as caught:
        ObliviousBoosting().fit(data)
    assert "categorical=['brand', 'shop']" in str(caught.value)


def test_a_column_of_dates_is_told_what_to_make_of_it():
    frame = pandas.DataFrame({"a": [1.0, 2.0], "listed": pandas.to_datetime(["2025-01-01", "2025-02-01"])})
    with refused(InvalidInputError, code="not-numeric"):
        ObliviousBoosting().fit(frame, [0, 1], qid=[1, 1])


def test_the_column_that_is_no_number_is_named():
    """Not the first column of a type that may hold texts; lists are no categories."""
    rows = pandas.DataFrame({"a": pandas.Series([1, None, 3, 4], dtype=object), "b": [1, 2, "n/a", 4]})
    with refused(InvalidInputError, code="not-numeric"):
        RidgeRanker().fit(rows, [0, 1, 0, 1], qid=[1, 1, 2, 2])
    polars = pytest.importorskip("polars")
    lists = polars.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "v": [[1, 2], [3], [4], [5]]})
    with refused(InvalidInputError, code="not-numeric"):
        RidgeRanker().fit(lists, [0, 1, 0, 1], qid=[1, 1, 2, 2])
