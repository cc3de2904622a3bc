"""Models of other libraries pick their columns by name, with categories and missing values, wherever rows are given."""

from __future__ import annotations

import re

import numpy as np
import pytest

from support.refusals import refused
from truerank import (
    CalibratedRanker,
    cross_validate,
    explain,
    export_model,
    import_model,
    permutation_importance,
    read_table,
)
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.data.columns import as_trained
from truerank.export.format_table import FORMATS

pandas = pytest.importorskip("pandas")
lightgbm = pytest.importorskip("lightgbm")
from sklearn.base import clone  # noqa: E402
from sklearn.compose import make_column_selector, make_column_transformer  # noqa: E402
from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.linear_model import LogisticRegression, Ridge  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder  # noqa: E402

NUMBERS = ["f1", "f2", "views"]
OWN = [*NUMBERS, "kind"]


@pytest.fixture(scope="module")
def frames():
    """Training rows and test rows: further columns, missing values, and categories that are not in sorted order."""
    rng, n = np.random.default_rng(1), 60 * 15
    grade = rng.integers(0, 4, n)
    kinds = pandas.CategoricalDtype(["toy", "music", "book", "film"])
    frame = pandas.DataFrame(
        {
            "qid": np.repeat([f"s{k}" for k in range(60)], 15),
            "docid": [f"i{k}" for k in range(n)],
            "y": grade,
            "old_score": grade + rng.normal(size=n),
            "f1": grade + 2 * rng.normal(size=n),
            "f2": rng.normal(size=n),
            "views": np.where(rng.random(n) < 0.1, np.nan, rng.poisson(50, n)),
            "kind": pandas.Series(np.array(kinds.categories)[(grade + rng.integers(0, 2, n)) % 4]).astype(kinds),
        }
    )
    return frame.iloc[:450], frame.iloc[450:].sort_values(["qid", "f2"])


@pytest.fixture(scope="module", params=["lightgbm", "pipeline"])
def model(request, frames):
    """A fitted model, and the scores that its library gives to a frame."""
    train = frames[0]
    if request.param == "lightgbm":
        fitted = lightgbm.LGBMRanker(n_estimators=10, verbose=-1, num_threads=1)
        fitted.fit(train[OWN], train.y, group=[15] * 30)
        return fitted, fitted.predict
    columns = make_column_transformer((SimpleImputer(), NUMBERS), (OneHotEncoder(handle_unknown="ignore"), ["kind"]))
    fitted = make_pipeline(columns, LogisticRegression(max_iter=500)).fit(train[OWN], train.y > 1)
    return fitted, lambda X: fitted.predict_proba(X)[:, 1]


def test_calibrated_probabilities_are_the_same_for_frames_and_rows(model, frames):
    fitted, scores_of = model
    test = frames[1]
    data = read_table(test, categories=["kind"], missing="nan")
    by_rows = CalibratedRanker(fitted, cv="prefit").fit(data)
    by_frame = CalibratedRanker(fitted, cv="prefit").fit(test, test.y, qid=test.qid)
    expected = by_rows.predict_proba(data)
    assert list(by_rows.feature_names_in_) == OWN
    for one in (by_rows, by_frame):
        for rows in (data, test, test[OWN], test[[*reversed(OWN)]]):
            np.testing.assert_array_equal(one.predict_proba(rows), expected)
            np.testing.assert_allclose(one.predict(rows), scores_of(test[OWN]), rtol=1e-12)
    assert expected[:, 1].mean() == pytest.approx((test.y >= 1).mean(), abs=0.02)
    with refused(InvalidInputError, code="lost-column"):
        by_rows.predict_proba(test.drop(columns="views"))


def test_a_difference_is_explained_by_the_models_columns(model, frames):
    fitted, scores_of = model
    test = frames[1]
    data = read_table(test, categories=["kind"], missing="nan")
    found = explain(fitted, data, query="s40")
    own = test[test.qid == "s40"].set_index("docid")
    scores = pandas.Series(scores_of(own[OWN]), index=own.index)
    assert found.feature_names == OWN
    assert found.difference == pytest.approx(scores[found.above] - scores[found.below])
    assert found.contributions.sum() == pytest.approx(found.difference)
    by_frame = explain(fitted, test, query="s40", above=found.above, below=found.below)
    np.testing.assert_allclose(by_frame.contributions, found.contributions)
    # A category is shown by its text.
    best = scores.idxmax()
    every = [explain(fitted, data, query="s40", above=best, below=other) for other in own.index[:5] if other != best]
    kinds = [one for shown in every for one in shown.to_dict()["contributions"] if one["feature"] == "kind"]
    assert kinds
    assert all(one["above"] == own.kind[best] and one["below"] in {*own.kind} for one in kinds)
    assert any(own.kind[best] in str(shown) for shown in every)


def test_importance_reads_a_frame_as_it_reads_rows(model, frames):
    test = frames[1]
    data = read_table(test, categories=["kind"], missing="nan")
    one, other = (permutation_importance(model[0], rows, repeats=1, random_state=0) for rows in (test, data))
    assert one.feature_names == OWN
    assert other.feature_names == OWN
    np.testing.assert_allclose(one.importances_mean, other.importances_mean)


def test_an_export_is_certified_on_rows_with_further_columns(frames):
    train, test = frames
    fitted = lightgbm.LGBMRanker(n_estimators=10, verbose=-1, num_threads=1).fit(train[OWN], train.y, group=[15] * 30)
    data = read_table(test, categories=["kind"], missing="nan")
    own = import_model(fitted)
    rows = as_trained(own, data)  # with the numbers that LightGBM has for the categories
    np.testing.assert_array_equal(rows.restore(own.predict(rows)), fitted.predict(test[OWN]))
    for certify in (data, test, rows):
        certificate = export_model(fitted, "python", certify=certify).certificate
        assert (certificate.orders_changed, certificate.rows) == (0, len(test))
        assert certificate.data_hash == export_model(fitted, "python", certify=rows).certificate.data_hash
    assert data.feature_names[0] == "old_score"  # unchanged


def test_the_call_that_an_error_names_reads_the_frame(frames):
    train, test = frames
    fitted = lightgbm.LGBMRanker(n_estimators=5, verbose=-1, num_threads=1).fit(train[OWN], train.y, group=[15] * 30)
    frame = test.rename(columns={"qid": "session", "y": "label", "docid": "sku"})
    with refused(InvalidInputError, code="columns") as caught:
        permutation_importance(fitted, frame, repeats=1)
    call = str(caught.value).splitlines()[-1].removeprefix("Give ")
    data = eval(call, {"read_table": read_table, "frame": frame})
    assert data.doc_ids is not None
    found = permutation_importance(fitted, data, repeats=1, random_state=0)
    expected = permutation_importance(fitted, test, repeats=1, random_state=0)
    np.testing.assert_array_equal(found.importances, expected.importances)
    with refused(InvalidInputError, code="columns") as caught:  # without a model's columns
        cross_validate(fitted, frame, cv=3)
    call = str(caught.value).splitlines()[-1].removeprefix("Give ")
    again = eval(call, {"read_table": read_table, "frame": frame})
    np.testing.assert_array_equal(again.X, data.X)


@pytest.mark.parametrize("kind", ["pipeline", "by type", "lightgbm"])
def test_folds_fit_models_to_named_columns_and_texts(kind, frames):
    """The figures of cross-validation and calibration are those of the library's own fits to frames."""
    frame = frames[0].reset_index(drop=True)
    own = ["old_score", *OWN]
    columns = {
        "pipeline": [(SimpleImputer(), NUMBERS), (OneHotEncoder(handle_unknown="ignore"), ["kind"])],
        "by type": [
            (SimpleImputer(), make_column_selector(dtype_include="number")),
            (OneHotEncoder(), make_column_selector(dtype_include="category")),
        ],
    }
    if kind == "lightgbm":
        unfitted = lightgbm.LGBMRanker(n_estimators=10, verbose=-1, num_threads=1, min_child_samples=5)
    else:
        unfitted = make_pipeline(make_column_transformer(*columns[kind]), Ridge())
    data = read_table(frame, categories=["kind"], missing="nan")
    found = cross_validate({"mine": unfitted}, data, "nDCG@10", cv=3, random_state=0)
    fold = found.folds[data.query_index]
    expected = np.empty(len(frame))
    for k in range(3):
        train, test = frame[fold != k], frame[fold == k]
        group = {"group": train.groupby("qid").size()} if kind == "lightgbm" else {}
        expected[fold == k] = clone(unfitted).fit(train[own], train.y, **group).predict(test[own])
    np.testing.assert_allclose(found.scores["mine"], expected, rtol=1e-9)
    calibrated = CalibratedRanker(unfitted, cv=3).fit(data)
    group = {"group": data.group_sizes} if kind == "lightgbm" else {}
    whole = clone(unfitted).fit(frame[own], frame.y, **group)
    for rows in (data, frame):
        np.testing.assert_allclose(calibrated.predict(rows), whole.predict(frame[own]), rtol=1e-9)
        np.testing.assert_array_equal(calibrated.predict_proba(rows), calibrated.predict_proba(data))


def test_a_pipeline_by_names_lacks_a_column_of_the_rows(frames):
    data = read_table(frames[0], features=["f1", "f2"])
    with refused(InvalidInputError, code="lost-column") as caught:
        cross_validate(make_pipeline(make_column_transformer(("passthrough", NUMBERS)), Ridge()), data, cv=3)
    assert "'views'" in str(caught.value)


def test_a_model_without_categories_is_not_given_numbers_silently(frames):
    data = read_table(frames[0], features=["f1", "kind"], categories=["kind"])
    with pytest.warns(TruerankWarning) as caught:
        cross_validate(Ridge(), data, cv=3)
    assert "'kind'" in str(caught[0].message)


@pytest.mark.parametrize("target", [*FORMATS])
def test_an_export_states_the_numbers_of_categories(target, frames):
    """Rows with these numbers get the model's scores."""
    train, test = frames
    test = test.fillna({"views": 50.0})
    fitted = lightgbm.LGBMRanker(n_estimators=5, verbose=-1, num_threads=1)
    fitted.fit(train.fillna({"views": 50.0})[OWN], train.y, group=[15] * 30)
    names = ["a", "b", "views", "art"]
    notes = export_model(fitted, target, names).certificate.notes
    (note,) = [note for note in map(str, notes) if "'art'" in note]
    numbers = {text: int(code) for text, code in re.findall(r"(\w+)=(\d+)", note)}
    assert set(numbers) == {*test.kind}
    X = test[OWN].assign(kind=test.kind.astype(str).map(numbers)).to_numpy(dtype=float)
    np.testing.assert_array_equal(import_model(fitted).predict(X), fitted.predict(test[OWN]))
