"""Validation rows in a scikit-learn Pipeline, and weights of queries by their ids."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from support.refusals import refused
from truerank import AdaRank, ObliviousBoosting, RidgeRanker
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData

RNG = np.random.default_rng(0)
QID = np.repeat(np.arange(30), 8)
X = RNG.normal(size=(240, 4)) * [1.0, 100.0, 0.01, 5.0] + [3.0, 50.0, 0.0, -2.0]
Y = np.clip(np.round((X[:, 0] - 3) + (X[:, 1] - 50) / 100 + RNG.normal(size=240)), 0, 3)
TRAIN, VALID = QID < 20, QID >= 20


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize(
    "ranker", [ObliviousBoosting(n_estimators=60, patience=5, learning_rate=0.3), AdaRank(n_estimators=20)]
)
def test_early_stopping_in_a_pipeline_is_that_on_transformed_rows(ranker, routing):
    scaler = StandardScaler().fit(X[TRAIN])
    valid = {"eval_y": Y[VALID], "eval_qid": QID[VALID]}
    alone = sklearn.clone(ranker).fit(
        scaler.transform(X[TRAIN]), Y[TRAIN], qid=QID[TRAIN], eval_X=scaler.transform(X[VALID]), **valid
    )
    whole = make_pipeline(StandardScaler(), sklearn.clone(ranker), transform_input=["eval_X"]).fit(
        X[TRAIN], Y[TRAIN], qid=QID[TRAIN], eval_X=X[VALID], **valid
    )
    np.testing.assert_array_equal(whole.predict(X), alone.predict(scaler.transform(X)))
    assert repr(whole[-1].evals_result_) == repr(alone.evals_result_)
    tuples = sklearn.clone(ranker).fit(
        scaler.transform(X[TRAIN]), Y[TRAIN], qid=QID[TRAIN],
        eval_set=(scaler.transform(X[VALID]), Y[VALID], QID[VALID]),
    )  # fmt: skip
    np.testing.assert_array_equal(tuples.predict(X), alone.predict(X))


def test_several_sets_and_arguments_that_contradict():
    def fit(**more):
        return ObliviousBoosting(n_estimators=5).fit(X[TRAIN], Y[TRAIN], qid=QID[TRAIN], **more)

    two = fit(eval_X=(X[TRAIN], X[VALID]), eval_y=(Y[TRAIN], Y[VALID]), eval_qid=[QID[TRAIN], QID[VALID]])
    assert len(two.evals_result_) == 2
    frame = pd.DataFrame(X[VALID]).assign(qid=QID[VALID])
    frame.columns = [*map(str, range(4)), "qid"]
    named = ObliviousBoosting(n_estimators=5).fit(
        pd.DataFrame(X[TRAIN], columns=frame.columns[:4]), Y[TRAIN], qid=QID[TRAIN], eval_X=frame, eval_y=Y[VALID]
    )
    assert np.isfinite(next(iter(next(iter(named.evals_result_.values())).values()))).all()
    for more in (
        {"eval_X": X[VALID]},
        {"eval_y": Y[VALID]},
        {"eval_X": X[VALID], "eval_y": Y[VALID], "eval_set": (X[VALID], Y[VALID], QID[VALID])},
    ):
        with refused(InvalidInputError, argument="eval_X"):
            fit(**more)
    with refused(InvalidInputError, argument="eval_qid"):
        fit(eval_qid=QID[VALID])


def test_weights_by_query_id_equal_weights_by_row():
    """Trials over ids of several types in random order of rows, given in six forms."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        ids = rng.choice(1000, size=12, replace=False)
        ids = ids if seed % 3 else np.array([f"q{one}" for one in ids])
        qid = np.repeat(rng.permutation(ids), rng.integers(2, 6, size=12))
        rows, grades = rng.normal(size=(len(qid), 3)), rng.integers(0, 3, len(qid)).astype(float)
        weight = dict(zip(ids.tolist(), rng.uniform(0.1, 5.0, 12).tolist()))
        by_row = np.array([weight[one] for one in qid.tolist()])
        first = RankingData(rows, grades, qid).query_ids.tolist()
        shuffled = pd.Series(weight).sample(frac=1.0, random_state=seed)
        index = rng.permutation(5000)[: len(qid)]
        forms = [
            by_row,
            np.array([weight[one] for one in first]),
            weight,
            weight | {"another": 3.0},
            shuffled,
            pd.Series([weight[one] for one in first]) if not {*range(12)} <= {*ids.tolist()} else weight,
            pd.Series(by_row),
        ]
        wanted = None
        for form in forms:
            data = RankingData(rows, grades, qid, query_weight=form)
            wanted = data.query_weight if wanted is None else wanted
            np.testing.assert_array_equal(data.query_weight, wanted)
        scores = RidgeRanker().fit(rows, grades, qid=qid, query_weight=by_row).predict(rows)
        np.testing.assert_array_equal(
            RidgeRanker().fit(rows, grades, qid=qid, query_weight=shuffled).predict(rows), scores
        )
        # Rows of a frame that was filtered: weight and grades have its index.
        there = RankingData(rows, pd.Series(grades, index=index), qid, query_weight=pd.Series(by_row, index=index))
        np.testing.assert_array_equal(there.query_weight, wanted)


def test_a_series_of_neither_rows_nor_queries_is_refused():
    qid = np.repeat(["a", "b", "c"], 4)
    rows, grades = RNG.normal(size=(12, 2)), RNG.integers(0, 3, 12).astype(float)
    for weight, words in (
        (pd.Series([1.0, 2.0, 3.0], index=["a", "b", "x"]), "1 of 3 queries, such as 'c'"),
        (pd.Series([1.0, 2.0, 3.0], index=[5, 6, 7]), "3 of 3 queries"),
        (pd.Series(np.ones(12), index=range(100, 112)), "3 of 3 queries"),
        (pd.Series([1.0, 2.0, 3.0, 4.0], index=["a", "a", "b", "c"]), "3 of 3 queries"),
        ({"a": 1.0, "b": 1.0}, "such as 'c'"),
        ({"a": 1.0, "b": -1.0, "c": 1.0}, r"numbers in \[0, inf\), got -1"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            RidgeRanker().fit(rows, grades, qid=qid, query_weight=weight)
