"""Probabilities travel with the model where the format holds formulas."""

import json

import numpy as np
import pytest

from truerank import CalibratedRanker, ObliviousBoosting, RankingData, RidgeRanker, export_model
from truerank.core.errors import InvalidInputError


def data():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(400, 5)), 2)
    return RankingData(X, (X[:, 0] + rng.normal(size=400) > 0.5).astype(int), np.repeat(np.arange(20), 20))


DATA = data()


@pytest.mark.parametrize("method", ["platt", "logistic", "spline", "asymmetric-laplace", "gaussian", "hybrid"])
@pytest.mark.parametrize("format", ["python", "onnx", "painless"])
def test_probabilities(method, format):
    if format == "onnx":
        pytest.importorskip("onnx")
    model = CalibratedRanker(RidgeRanker(), method, cv=3).fit(DATA)
    own = export_model(model, format, certify=DATA, force=True).certificate
    assert own.policy["output"] == "probability"
    assert own.largest_difference < 2e-6


def test_formats_without_formulas_give_scores():
    model = CalibratedRanker(ObliviousBoosting(leaves="constant", n_estimators=4, depth=2), "platt", cv=3).fit(DATA)
    text = export_model(model, "solr", certify=DATA)
    assert text.certificate.policy["output"] == "score"
    assert "calibration left out" in text.certificate.notes[0]
    assert json.loads(text)["class"].endswith("MultipleAdditiveTreesModel")


def test_what_has_no_form_is_refused():
    with pytest.raises(InvalidInputError, match="polynomials"):
        export_model(CalibratedRanker(RidgeRanker(), "isotonic", cv=3).fit(DATA), "python")
    model = CalibratedRanker(RidgeRanker(), "platt", cv=3, query_statistics=True).fit(DATA)
    with pytest.raises(InvalidInputError, match="other documents"):
        export_model(model, "python")
