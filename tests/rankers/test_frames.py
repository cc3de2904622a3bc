"""Data frames whose columns are not those of fit: the error names them and says what to do."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from truerank import ObliviousBoosting, RankerPipeline, RidgeRanker
from truerank.core.errors import InvalidInputError

X = pandas.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
Y, QID = (X["a"] > 0).astype(int), np.repeat([0, 1], 20)
RANKERS = [RidgeRanker(), ObliviousBoosting(n_estimators=2, depth=1), RankerPipeline("z-score-in-query", RidgeRanker())]


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_columns_that_fit_did_not_have_are_named_and_can_be_left_out(ranker):
    ranker.fit(X, Y, qid=QID)
    more = X.assign(title="x", price=1.0)[["title", "c", "b", "price", "a"]]
    with pytest.raises(InvalidInputError, match=r"(?s)- price\n- title.*Pass X\[ranker\.feature_names_in_\]"):
        ranker.predict(more, qid=QID)
    expected = ranker.predict(X, qid=QID)
    np.testing.assert_array_equal(ranker.predict(more[ranker.feature_names_in_], qid=QID), expected)
    with pytest.raises(InvalidInputError, match=r"(?s)same order.*Pass X\[ranker\.feature_names_in_\]"):
        ranker.predict(X[["b", "a", "c"]], qid=QID)
    with pytest.raises(
        InvalidInputError, match=r"(?s)- c\n.*3 columns, of which this data frame has 2: make the missing"
    ):
        ranker.predict(X[["a", "b"]], qid=QID)


def test_a_column_of_dates_is_told_what_to_make_of_it():
    frame = pandas.DataFrame({"a": [1.0, 2.0], "listed": pandas.to_datetime(["2025-01-01", "2025-02-01"])})
    with pytest.raises(InvalidInputError, match="'listed' has the type datetime64.*days since then"):
        ObliviousBoosting().fit(frame, [0, 1], qid=[1, 1])
