"""Numbers at the end of float64, twice the same column, absurd numbers of threads, interrupted batches."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from support.refusals import refused
from truerank import CalibratedClassifier, PairwiseDescent, RankingData, RidgeRanker
from truerank.core.errors import InvalidInputError
from truerank.core.threads import MOST_THREADS, resolve_n_jobs
from truerank.models.registry import RANKERS, ranker_class
from truerank.rankers.base import Ranker

LARGEST = np.finfo(np.float64).max


def judged(p=3):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, p))
    return X, (X[:, 0] > 0.5).astype(float), np.repeat(np.arange(4), 10)


@pytest.mark.parametrize("name", [name for name in RANKERS if issubclass(ranker_class(name), Ranker)])
@pytest.mark.parametrize("value", [LARGEST, -LARGEST, 1e300, 1e151])
def test_every_ranker_refuses_values_whose_products_overflow(name, value):
    X, y, qid = judged()
    X[7, 1] = value
    try:
        ranker = ranker_class(name)()
    except TypeError:
        pytest.skip("made of other rankers")
    for data in ((X, y, qid), (RankingData(X, y, qid), None, None)):
        with refused(InvalidInputError, code="overflow"):
            ranker.fit(data[0], data[1], qid=data[2])


def test_sparse_rows_and_rows_to_score_too():
    X, y, qid = judged()
    ranker = RidgeRanker().fit(X, y, qid=qid)
    X[3, 2] = LARGEST
    with refused(InvalidInputError, code="overflow"):
        ranker.predict(X)
    with refused(InvalidInputError, code="overflow"):
        RidgeRanker().fit(sparse.csr_matrix(X), y, qid=qid)
    frame = pd.DataFrame(X, columns=["bm25", "age", "price"])
    with refused(InvalidInputError, code="overflow"):
        RidgeRanker().fit(frame, y, qid=qid)


def test_two_columns_of_one_name():
    X, y, qid = judged()
    frame = pd.DataFrame(X, columns=["a", "b", "a"])
    for call in (lambda: RidgeRanker().fit(frame, y, qid=qid), lambda: RankingData(frame, y, qid)):
        with refused(InvalidInputError, argument="X"):
            call()


def test_a_million_threads_are_not_made():
    assert resolve_n_jobs(10**6) == MOST_THREADS


def test_batches_without_names_do_not_forget_those_of_the_first():
    X, y, qid = judged()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    ranker = PairwiseDescent().partial_fit(frame, y, qid=qid)
    with pytest.warns(UserWarning, match="feature names"):
        ranker.partial_fit(X, y, qid=qid)
    assert ranker.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(ranker.predict(frame[["c", "b", "a"]]), ranker.predict(frame))


def test_an_interrupted_batch_changes_nothing(monkeypatch):
    X, y, qid = judged()
    ranker = PairwiseDescent().partial_fit(X, y, qid=qid)
    before, queries = ranker.coef_.copy(), ranker.n_queries_in_

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(PairwiseDescent, "_keep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ranker.partial_fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.coef_, before)
    assert ranker.n_queries_in_ == queries


def test_masked_entries_are_no_values_of_a_classifier():
    X, y, _ = judged()
    masked = np.ma.masked_array(X, mask=X > 0.9)
    classifier = CalibratedClassifier(LogisticRegression())
    for argument, call in (
        ("X", lambda: classifier.fit(masked, y)),
        ("y", lambda: classifier.fit(X, np.ma.masked_array(y, mask=np.arange(40) == 3))),
        ("X", lambda: classifier.fit(X, y).predict_proba(masked)),
    ):
        with refused(InvalidInputError, argument=argument):
            call()


def test_classes_that_occur_once_have_probabilities():
    X, y, _ = judged()
    y[0] = 7
    p = CalibratedClassifier(LogisticRegression()).fit(X, y).predict_proba(X)
    assert p.shape == (40, 3)
    assert (p > 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
