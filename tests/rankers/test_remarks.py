"""What changes the figures of a fit is a warning of one category, for arrays, frames and calibrators alike."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from truerank import RankingData, RidgeRanker, choose_calibrator
from truerank.calibration.posteriors import PlattCalibrator
from truerank.data.remarks import RemarkWarning


def _with_remarks():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y, qid = rng.integers(0, 3, 120), np.repeat(np.arange(20), 6)
    ranks = np.concatenate([rng.permutation(6) + 1.0 for _ in range(20)])
    return X, y, qid, ranks


def test_fit_warns_of_what_changes_the_figures():
    X, y, qid, ranks = _with_remarks()
    for column, grades, code in (
        (np.arange(120.0), y, "counting-feature"),
        (ranks, y, "rank-feature"),
        (X[:, 0], np.where(y == 2, 31, y), "huge-grade"),
    ):
        values = np.column_stack([X, column])
        for given in (values, sparse.csr_matrix(values), pd.DataFrame(values, columns=["a", "b", "c", "last"])):
            with pytest.warns(RemarkWarning) as found:
                RidgeRanker().fit(given, grades, qid=qid)
            assert {one.message.remark.code for one in found} == {code}
            assert found[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            RidgeRanker().fit(RankingData(values, grades, qid))  # `examine` gives its remarks
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RidgeRanker().fit(X, np.where(y > 0, 1.0, -1.0), qid=qid)
        RidgeRanker().fit(X, y / 2.0, qid=qid)


def test_folds_repeat_no_remark():
    X, y, qid, _ = _with_remarks()
    grades = np.where(y == 2, 31, y)
    texts = set()
    for left_out in range(3):
        kept = qid % 3 != left_out
        with pytest.warns(RemarkWarning) as found:
            RidgeRanker().fit(X[kept], grades[kept], qid=qid[kept])
        texts.update(str(one.message) for one in found)
    assert len(texts) == 1


def test_a_calibrator_warns_of_ranks():
    _, y, _, ranks = _with_remarks()
    rng = np.random.default_rng(1)
    positions = rng.permutation(120) + 1.0
    for fit in (PlattCalibrator().fit, choose_calibrator):
        with pytest.warns(RemarkWarning, match="negative numbers"):
            fit(positions, y > 0)
        for scores in (-positions, rng.normal(size=120), ranks, np.round(10 * rng.normal(size=120))):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                fit(scores, y > 0)
