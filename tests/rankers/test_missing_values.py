"""What becomes of missing values, as each ranker says it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from support.refusals import refused
from truerank import AdaRank, RankerPipeline, RankingData
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.models.registry import RANKERS, ranker_class
from truerank.rankers.pipeline import fit_ranker


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    y = (X[:, 0] > 0.5).astype(float)
    X[3, 1] = np.nan
    return X, y, np.repeat([0, 1, 2], 20)


@pytest.mark.parametrize("name", RANKERS)
def test_a_ranker_keeps_its_word_on_missing_values(name, rows):
    X, y, qid = rows
    cls = ranker_class(name)
    if cls.missing_values != "an error":
        assert np.isfinite(cls().fit(X, y, qid=qid).predict(X)).all()
        return
    for data in ((X, y), (RankingData(X, y, qid),)):
        with refused(InvalidInputError, argument="X") as caught:
            cls().fit(*data, **({"qid": qid} if len(data) == 2 else {}))
        assert "HistGradientBoosting" not in str(caught.value)


def test_what_the_error_advises_works(rows):
    X, y, qid = rows
    data = RankingData(X, y, qid)
    for ranker in (RankerPipeline("score-binning", AdaRank()), make_pipeline(SimpleImputer(), AdaRank())):
        assert np.isfinite(fit_ranker(ranker, data).predict(X, qid=qid) if isinstance(ranker, RankerPipeline)
                           else fit_ranker(ranker, data).predict(X)).all()  # fmt: skip
    with refused(ValueError, argument="X") as caught:
        AdaRank().fit(np.where(np.isnan(X), np.inf, X), y, qid=qid)
    assert "missing values" not in str(caught.value)


def test_the_list_of_rankers_names_the_answer(capsys):
    assert main(["train", "--list"]) == 0
    text = capsys.readouterr().out
    assert text.count("missing values: ") == len(RANKERS)
    assert "missing values: to the side" in text
