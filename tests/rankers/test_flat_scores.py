"""A fit whose scores cannot rank says so, in every ranker, and says what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from truerank.models.registry import RANKERS, ranker_class
from truerank.rankers.measure_svm import MeasureSVM
from truerank.rankers.rank_svm import RankSVM

LEARNERS = sorted(set(RANKERS) - {"random", "single-feature"})


def made(name):
    kind = ranker_class(name)
    settings = {"n_estimators": 3, "max_iter": 200}
    known = kind().get_params()
    return kind(**{key: value for key, value in settings.items() if key in known})


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("case", ["one grade", "same documents"])
def test_every_ranker_warns_when_it_learned_nothing(name, case):
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(4), 5)
    X, y = rng.normal(size=(20, 3)), np.tile([0.0, 1.0, 0.0, 0.0, 1.0], 4)
    if case == "one grade":
        y[:] = 1.0
    else:
        X[:] = 2.0
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        scores = made(name).fit(X, y, qid=qid).predict(X)
    assert np.ptp(scores.reshape(4, 5), axis=1).max() <= 1e-13 * max(1e-300, np.abs(scores).max())
    assert any("learned nothing" in str(one.message) for one in seen)


def test_the_warning_says_why_and_what_to_do():
    X, y, qid = np.arange(8.0).reshape(8, 1), np.ones(8), np.repeat([1, 2], 4)
    with pytest.warns(ConvergenceWarning, match="nothing can be learned.*Check that queries have documents"):
        RankSVM().fit(X, y, qid=qid)


def test_zero_weights_that_are_optimal_are_not_called_success(collections):
    """The margin bound of nDCG@k on queries of real length: converged, certified, and of no use."""
    from reproductions import protocol

    data = protocol.load_collection(collections, "ohsumed").data.take_queries(range(40))
    with pytest.warns(ConvergenceWarning, match="learned nothing.*converged.*another measure"):
        ranker = MeasureSVM("nDCG@5", bound="margin", rel=1).fit(data)
    assert not ranker.coef_.any()
    MeasureSVM("nDCG@5", rel=1).fit(data)  # the default bound learns: no warning, which would be an error here
