"""Probabilities travel with the model where the format holds formulas."""

import json
import shutil
import textwrap

import numpy as np
import pytest

from support.refusals import refused
from truerank import (
    CalibratedRanker,
    ObliviousBoosting,
    PooledCalibrator,
    RankingData,
    RidgeRanker,
    export_model,
    load_model,
    save_model,
)
from truerank.calibration import CALIBRATORS
from truerank.calibration.base import make_calibrator
from truerank.core.errors import InvalidInputError
from truerank.export.calibration import Calibration, _members
from truerank.export.form import form_of
from truerank.export.run import run_python


def data():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(400, 5)), 2)
    return RankingData(X, (X[:, 0] + rng.normal(size=400) > 0.5).astype(int), np.repeat(np.arange(20), 20))


DATA = data()
# A float32 probability; float32 features, in which an isotonic probability may rise steeply.
TOLERANCE = {"painless": 1e-7, "onnx": 5e-6}
EXPRESSIONS = ["python", "c", "painless", "vespa", "onnx"]


def available(format):
    if format == "onnx":
        pytest.importorskip("onnx")
    if format == "c" and shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("no C compiler on this machine")
    return format


@pytest.fixture(scope="module")
def by_default():
    return CalibratedRanker(RidgeRanker(), cv=3, random_state=0).fit(DATA)


@pytest.mark.parametrize("format", EXPRESSIONS)
def test_a_calibrated_ranker_at_its_defaults(by_default, format, tmp_path):
    assert isinstance(by_default.calibrators_[0], PooledCalibrator)
    assert len(by_default.calibrators_[0].weights_) > 1
    save_model(by_default, tmp_path / "model.json")
    for model in (by_default, load_model(tmp_path / "model.json")):
        own = export_model(model, available(format), certify=DATA).certificate
        assert own.policy["output"] == "probability"
        assert own.rank_agreement == 1.0
        assert own.largest_difference < TOLERANCE.get(format, 1e-14)


@pytest.mark.parametrize("format", EXPRESSIONS)
@pytest.mark.parametrize("method", [name for name in CALIBRATORS if name != "pool"])
def test_each_calibrator(method, format):
    model = CalibratedRanker(RidgeRanker(), method, cv=3).fit(DATA)
    own = export_model(model, available(format), certify=DATA).certificate
    assert own.largest_difference < TOLERANCE.get(format, 1e-14)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("method", list(CALIBRATORS))
def test_far_from_the_scores_that_were_seen(method, monotone):
    """On the scores themselves, at the ends of every piece and on either side, and where nothing was ever seen."""
    rng = np.random.default_rng(1)
    for shift in (0.0, 5000.0):
        y = rng.integers(0, 2, 300)
        scores = rng.laplace(size=300) + 1.5 * y + shift
        calibrator = make_calibrator(method, monotone=monotone).fit(scores, y)
        members = tuple(_members(calibrator))
        arrays = Calibration((members,)).arrays()
        knots = np.concatenate([member.knots for _, member in members])
        wide = shift + np.concatenate([-np.geomspace(1e-3, 1e5, 40), np.geomspace(1e-3, 1e5, 40)])
        grid = np.concatenate([scores, wide, np.nextafter(knots, -np.inf), knots + 1e-9 * np.abs(knots)])
        found = _probabilities(arrays, grid)
        expected = calibrator.predict_proba(grid)[:, 1]
        np.testing.assert_allclose(found, expected, atol=1e-10 if shift else 1e-12, rtol=0)


def _probabilities(arrays, scores):
    """By the text that an exported Python file has."""
    from truerank.export.program import _PROBABILITY

    space = {key: value.tolist() for key, value in arrays.items()} | {"n_member_kinds": len(arrays["member_kinds"])}
    text = "from bisect import bisect_left\nfrom math import exp, log1p\ndef probability(total):\n"
    exec(text + textwrap.indent(_PROBABILITY, "    ") + "    return total\n", space)
    return np.array([space["probability"](s) for s in scores.tolist()])


def test_spikes_and_densities_that_jump_at_their_modes():
    scores = np.array([0.0] * 10 + [1.0, 1.0, 1.0, 2.0, 2.5, 3.0])
    y = np.array([0] * 10 + [1] * 6)
    for method in ("asymmetric-laplace", "asymmetric-gaussian", "hybrid", "laplace"):
        calibrator = make_calibrator(method).fit(scores, y)
        found = _probabilities(Calibration((tuple(_members(calibrator)),)).arrays(), np.unique(scores))
        expected = calibrator.predict_proba(np.unique(scores))[:, 1]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("format", EXPRESSIONS)
def test_higher_grades_are_never_more_probable_than_lower_ones(format):
    """P(grade >= 2) is the least of two calibrators' probabilities; exchanged, the second is the higher one."""
    rng = np.random.default_rng(4)
    X = np.round(rng.normal(size=(200, 2)), 2)
    y = np.where(np.abs(X[:, 0]) < 0.7, 1, np.where(X[:, 0] > 0, 2, 0))
    graded = RankingData(X, y, np.repeat(np.arange(10), 20))
    model = CalibratedRanker(RidgeRanker(), "isotonic", cv=3, rel=2).fit(graded)
    model.calibrators_ = model.calibrators_[::-1]
    first, second = (c.predict_proba(model.predict(X))[:, 1] for c in model.calibrators_)
    assert (second > first + 0.1).any()
    assert len(form_of(model).calibration.grades) == 2
    text = export_model(model, available(format), certify=graded)
    assert text.certificate.largest_difference < TOLERANCE.get(format, 1e-14)


def test_a_file_of_a_pooled_model_needs_nothing_but_python(by_default):
    score = run_python(export_model(by_default, "python", certify=DATA))
    np.testing.assert_allclose(score(DATA.X), by_default.predict_proba(DATA.X)[:, 1], rtol=1e-13)


@pytest.mark.parametrize("options", [{}, {"query_statistics": True}])
def test_formats_without_formulas_give_scores(options):
    trees = ObliviousBoosting(leaves="constant", n_estimators=4, depth=2)
    model = CalibratedRanker(trees, cv=3, **options).fit(DATA)
    text = export_model(model, "solr", certify=DATA)
    assert text.certificate.policy["output"] == "score"
    assert "calibration left out" in text.certificate.notes[1]  # after the training queries
    assert json.loads(text)["class"].endswith("MultipleAdditiveTreesModel")


def test_what_looks_at_other_documents_is_refused():
    model = CalibratedRanker(RidgeRanker(), "platt", cv=3, query_statistics=True).fit(DATA)
    with refused(InvalidInputError, code="query-statistics"):
        export_model(model, "python")
