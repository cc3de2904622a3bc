"""Texts to probabilities: classifiers, labels, tables, the model file."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from support.refusals import refused
from truerank.calibration.text_classifier import CLASSIFIERS, TextClassifier
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.models.model_file import load_model, save_model
from truerank.text.topic_classifiers import LinearSVM, TopicNaiveBayes, VotedPerceptron

WORDS = {
    "earn": ["profit", "share", "dividend", "quarter"],
    "grain": ["wheat", "tonne", "crop", "harvest"],
    "ship": ["vessel", "port", "cargo", "strike"],
}


def news(n, seed=0, several=False):
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n):
        own = [name for name in WORDS if rng.uniform() < 0.35] if several else [rng.choice(list(WORDS))]
        pool = [word for name in own for word in WORDS[name]] or ["nothing"]
        other = [word for words in WORDS.values() for word in words] + ["said", "year", "company"]
        texts.append(" ".join([*rng.choice(pool, 4), *rng.choice(other, 5)]))
        labels.append([str(name) for name in own] if several else str(own[0]))
    return texts, labels


@pytest.mark.parametrize("classifier", [*CLASSIFIERS, LogisticRegression()])
def test_one_label_each(classifier, tmp_path):
    texts, labels = news(240)
    fitted = TextClassifier(classifier, method="temperature", n_words=12).fit(texts, labels)
    assert fitted.classes_.tolist() == sorted(WORDS)
    new, truth = news(200, seed=1)
    p = fitted.predict_proba(new)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (fitted.predict(new) == truth).mean() > 0.7
    np.testing.assert_allclose(np.log(p), fitted.predict_log_proba(new), atol=1e-9)
    if isinstance(classifier, str):
        save_model(fitted, tmp_path / "model.json")
        loaded = load_model(tmp_path / "model.json")
        np.testing.assert_array_equal(loaded.predict_proba(new), p)
        assert loaded.predict(new).tolist() == fitted.predict(new).tolist()


def test_any_number_of_labels(tmp_path):
    texts, labels = news(240, several=True)
    fitted = TextClassifier("naive-bayes", method="platt").fit(texts, labels)
    assert fitted.multi_label_
    new, truth = news(200, seed=1, several=True)
    p = fitted.predict_proba(new)
    Y = np.array([[name in some for name in sorted(WORDS)] for some in truth])
    prior = np.array([[name in some for name in sorted(WORDS)] for some in labels]).mean(axis=0)
    assert ((p - Y) ** 2).mean() < 0.7 * ((prior - Y) ** 2).mean()
    assert fitted.predict(new)[0] == fitted.classes_[p[0] >= 0.5].tolist()
    assert sum(map(len, fitted.decide(new, cost_fn=9.0))) > sum(map(len, fitted.predict(new)))
    save_model(fitted, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict_proba(new), p)
    # One label that a document has or has not.
    one = TextClassifier(method="platt").fit(texts, [[name for name in some if name == "ship"] for some in labels])
    assert one.predict_proba(new).shape == (200, 1)
    assert set(map(tuple, one.predict(new))) == {(), ("ship",)}


def test_labels_that_are_none_or_of_two_types_are_refused():
    texts, labels = news(60)
    for wrong, message in (
        (None, r"y\[7\] is None, which is not a label"),
        (float("nan"), r"y\[7\] is nan, which is not a label"),
        ([labels[7], None], r"y\[7\] is None, which is not a label"),
        (3, r"labels must be all text or all numbers: y\[0\] is '\w+' and y\[7\] is 3"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            TextClassifier(method="platt").fit(texts, [*labels[:7], wrong, *labels[8:]])


def test_a_document_without_a_label_among_single_labels_is_said():
    texts, labels = news(60)
    with pytest.warns(TruerankWarning, match="1 of 60 documents has no label, so each label is decided by itself"):
        fitted = TextClassifier("naive-bayes", method="platt").fit(texts, [[], *labels[1:]])
    assert fitted.multi_label_


def test_a_table_in_place_of_texts(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 3)) * [1, 1000, 1] + 2 * y[:, None] * [1, 0, 0]
    fitted = TextClassifier(method="pool").fit(X, np.array(["no", "yes"])[y])
    assert (fitted.predict(X) == np.array(["no", "yes"])[y]).mean() > 0.75
    save_model(fitted, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict_proba(X), fitted.predict_proba(X))
    with refused(InvalidInputError, code="other-input"):
        fitted.predict(["words"])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_of_a_data_frame_go_by_their_names(library, tmp_path):
    tables = pytest.importorskip(library)
    make = tables.table if library == "pyarrow" else tables.DataFrame
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 2)) + 2 * y[:, None] * [1, 0]
    fitted = TextClassifier(method="platt").fit(make({"a": X[:, 0], "b": X[:, 1]}), y)
    save_model(fitted, tmp_path / "model.json")
    other = make({"c": X[:, 1], "b": X[:, 1], "a": X[:, 0]})
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict_proba(other), fitted.predict_proba(X))
    with refused(InvalidInputError, code="lost-column"):
        fitted.predict(make({"b": X[:, 1], "c": X[:, 0]}))
    assert not hasattr(fitted.fit(X, y), "feature_names_in_")
    with refused(InvalidInputError, code="column-names"):
        fitted.fit(X, y, feature_names=["a", "b", "c"])


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_text_is_named_by_its_row(missing):
    with pytest.raises(InvalidInputError, match="row 1 is .*Use '' for a document without words"):
        TextClassifier().fit(["wheat and corn", missing, "a ship"], ["grain", "ship", "ship"])


def test_what_cannot_be_is_refused():
    with refused(InvalidInputError, code="one-label"):
        TextClassifier().fit(["a text"] * 3, ["x"] * 3)
    with refused(InvalidInputError, argument="y"):
        TextClassifier().fit(["a text"] * 3, ["x", "y"])
    with refused(InvalidInputError, argument="classifier"):
        TextClassifier("forest").fit(["a text"] * 3, ["x", "y", "x"])
    with refused(InvalidInputError, code="no-word"):
        TextClassifier(method="platt").fit(["1 2"] * 6, ["x", "y"] * 3)
    with refused(InvalidInputError, argument="X"):
        TextClassifier().fit("a text", ["x"])


@pytest.mark.parametrize("classifier", ["linear-svm", "voted-perceptron"])
@pytest.mark.parametrize("exponent", [-1000, 500, 1000])
def test_columns_of_any_scale(classifier, exponent):
    """Features of 1e160 made liblinear run for ever, those of 1e308 nan, and those of 1e-300 went unseen."""
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"])[np.arange(40) % 2]
    X = np.clip(rng.normal(size=(40, 3)) / 5 + np.outer(np.arange(40) % 2, [0.4, 0, 0]), -1, 1)
    huge = X.copy()
    huge[:, 0] *= 2.0**exponent
    usual, other = (TextClassifier(classifier, "platt", random_state=0).fit(rows, y) for rows in (X, huge))
    np.testing.assert_allclose(other.predict_proba(huge), usual.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("cls", [LinearSVM, VotedPerceptron, TopicNaiveBayes])
def test_values_whose_products_overflow_are_refused(cls):
    X = [[1e160, 1.0], [1.0, 2.0], [1e160, 0.5], [0.0, 1.0]]
    with refused(InvalidInputError, argument="X", value=1e160):
        cls().fit(X, [1, 0, 1, 0])


def test_scores_that_say_nothing_have_a_model_file(tmp_path):
    """An infinite temperature was refused on saving, as weights of columns of huge values."""
    y = np.array(["a", "b"] * 15)
    for seed in range(4):
        X = np.random.default_rng(seed).integers(0, 7, size=(30, 2)).astype(float)
        for method in ("temperature", "pool"):
            fitted = TextClassifier("linear-svm", method).fit(X, y)
            save_model(fitted, tmp_path / "m.json")
            np.testing.assert_array_equal(load_model(tmp_path / "m.json").predict_proba(X), fitted.predict_proba(X))


def test_as_many_labels_as_documents():
    with refused(InvalidInputError, code="nothing-held-out"):
        TextClassifier("naive-bayes").fit([f"word{i} heat" for i in range(6)], [f"label {i}" for i in range(6)])
