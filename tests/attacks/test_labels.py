"""Labels that are missing, or of kinds without a common order: refused with the reason, from every container."""

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from support.refusals import refused
from truerank import CalibratedClassifier
from truerank.core.errors import InvalidInputError

X = np.random.default_rng(0).normal(size=(60, 3))
MISSING = {
    "None": np.array([None, *["a", "b"] * 29, "a"], dtype=object),
    "pandas' NA": pd.array([pd.NA, *[1, 0] * 29, 1], dtype="Int64"),
    "categories": pd.Categorical([None, *["a", "b"] * 29, "a"]),
    "a series with nan": pd.Series([np.nan, *["a", "b"] * 29, "a"]),
    "a list": [None, *[1, 0] * 29, 1],
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_labels_are_counted(name):
    with refused(InvalidInputError, code="missing-labels"):
        CalibratedClassifier(GaussianNB()).fit(X, MISSING[name])


def test_numbers_and_texts_have_no_order():
    with refused(InvalidInputError, code="mixed-labels"):
        CalibratedClassifier(GaussianNB()).fit(X, np.array([1, "a"] * 30, dtype=object))
