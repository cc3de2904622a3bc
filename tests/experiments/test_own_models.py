"""A fitted model of any library is a system: compared over data frames, rows and files, imported and exported."""

from __future__ import annotations

import numpy as np
import pytest

import truerank
from support.refusals import refused
from truerank import Experiment, RankingData, load_sample
from truerank.core.errors import InvalidInputError

pandas = pytest.importorskip("pandas")
lightgbm, xgboost, catboost = map(pytest.importorskip, ("lightgbm", "xgboost", "catboost"))
from sklearn.compose import make_column_transformer  # noqa: E402
from sklearn.linear_model import LogisticRegression, Ridge  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402

TODAY = "bm25"


@pytest.fixture(scope="module")
def parts():
    """Training rows, and test rows as RankingData and as a frame with a column of texts, in another order of rows."""
    data = load_sample()
    train, test = data.take_queries(range(30)), data.take_queries(range(30, 60))
    frame = pandas.DataFrame(np.asarray(test.X), columns=list(test.feature_names))
    frame["y"], frame["qid"] = test.y, test.qid
    frame["brand"] = np.where(np.arange(len(frame)) % 3, "a", "b")
    return train, test, frame.sample(frac=1.0, random_state=4)


@pytest.fixture(scope="module")
def models(parts):
    """By name: a fitted model, and the scores that its own library gives to rows of the frame."""
    train = parts[0]
    rows = pandas.DataFrame(np.asarray(train.X), columns=list(train.feature_names))
    names, grades, sizes = list(rows), train.y.astype(int), train.group_sizes
    light = lightgbm.LGBMRanker(n_estimators=4, verbose=-1).fit(rows, grades, group=sizes)
    by_place = lightgbm.LGBMRanker(n_estimators=4, verbose=-1).fit(train.X, grades, group=sizes)
    boosted = xgboost.XGBRanker(n_estimators=4).fit(rows, grades, qid=train.qid)
    cat = catboost.CatBoostRanker(iterations=4, verbose=False, allow_writing_files=False)
    cat.fit(rows, train.y, group_id=train.qid)
    line = make_pipeline(StandardScaler(), Ridge()).fit(rows, train.y)
    chance = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, train.y > 0)
    grades_of = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, grades)
    margin = make_pipeline(StandardScaler(), LinearSVC()).fit(rows, train.y > 0)
    return {
        "lightgbm": (light, lambda X: light.predict(X[names])),
        "lightgbm by place": (by_place, lambda X: by_place.predict(X[names].to_numpy())),
        "lightgbm's booster": (light.booster_, lambda X: light.predict(X[names])),
        "xgboost": (boosted, lambda X: boosted.predict(X[names])),
        "xgboost's booster": (boosted.get_booster(), lambda X: boosted.predict(X[names])),
        "catboost": (cat, lambda X: cat.predict(X[names])),
        "pipeline": (line, lambda X: line.predict(X[names])),
        "its method": (line.predict, lambda X: line.predict(X[names])),
        "classifier": (chance, lambda X: chance.predict_proba(X[names])[:, 1]),
        "grades": (grades_of, lambda X: grades_of.predict_proba(X[names]) @ np.unique(grades)),
        "margin": (margin, lambda X: margin.decision_function(X[names])),
    }


NAMES = ["lightgbm", "lightgbm by place", "lightgbm's booster", "xgboost", "xgboost's booster", "catboost", "pipeline",
         "its method", "classifier", "grades", "margin"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_compared_as_it_is(name, models, parts, tmp_path):
    _, test, frame = parts
    model, scores_of = models[name]
    frame.to_csv(tmp_path / "test.csv", index=False)
    numbers = frame.drop(columns="brand")
    numbers.to_csv(tmp_path / "numbers.csv", index=False)
    sources = [(test, frame.sort_index()), (numbers, frame), (tmp_path / "numbers.csv", frame)]
    if name != "lightgbm by place":  # which reads all columns
        sources += [(frame, frame), (tmp_path / "test.csv", frame)]
    for data, rows in sources:
        found = Experiment(data, {"mine": model, "today": TODAY})
        given = Experiment(rows, {"mine": scores_of(rows), "today": TODAY})
        for system in ("mine", "today"):
            np.testing.assert_allclose(found.judged[system][1], given.judged[system][1], rtol=1e-6)
    assert len(found.compare().pairs) == 1


def test_columns_of_texts_go_to_the_model_as_they_are(parts):
    frame = parts[2]
    inputs, columns = [TODAY, "brand"], make_column_transformer((OneHotEncoder(), ["brand"]), remainder="passthrough")
    model = make_pipeline(columns, Ridge()).fit(frame[inputs], frame.y)
    found = Experiment(frame, {"mine": model, "today": TODAY})
    given = Experiment(frame, {"mine": model.predict(frame[inputs])})
    np.testing.assert_array_equal(found.judged["mine"][1], given.judged["mine"][1])


def test_a_function_sees_the_frame_or_the_array_that_was_given(parts):
    _, test, frame = parts
    place = list(test.feature_names).index(TODAY)
    by_name = Experiment(frame, {"mine": lambda X: 2 * X[TODAY] + (X["brand"] == "c"), "today": TODAY})
    by_place = Experiment(test, {"mine": lambda X: 2 * X[:, place], "today": TODAY})
    assert by_name.compare().pairs[0].difference == by_place.compare().pairs[0].difference == 0
    for wrong in (lambda X: np.stack([X[:, 0]] * 2, axis=1), lambda X: 1.0):
        with refused(InvalidInputError, code="one-score"):
            Experiment(test, {"mine": wrong, "today": TODAY})


def test_what_a_model_lacks_is_named(parts, models):
    _, _, frame = parts
    line = models["pipeline"][0]
    with refused(InvalidInputError, code="lost-column"):
        Experiment(frame.drop(columns=TODAY), {"mine": line})
    with refused(InvalidInputError, code="columns"):
        Experiment(frame.rename(columns={"y": "grade"}), {"mine": line, "today": TODAY})
    texts = LogisticRegression().fit(frame[[TODAY]], frame.y.map({0: "bad", 1: "fair"}).fillna("good"))
    with refused(InvalidInputError, code="classes"):
        Experiment(frame, {"mine": texts})


def test_training_queries_in_a_pipeline_of_scikit_learn_are_left_out(parts):
    train, test, frame = parts
    rows = pandas.DataFrame(np.asarray(train.X), columns=list(train.feature_names))
    model = make_pipeline(StandardScaler(), truerank.RidgeRanker())
    model.fit(rows, train.y, ridgeranker__qid=train.qid)
    both = RankingData.from_grouped(
        np.vstack([train.X[: train.offsets[5]], test.X]), np.concatenate([train.y[: train.offsets[5]], test.y]),
        np.concatenate([train.offsets[:6], train.offsets[5] + test.offsets[1:]]),
    ).replaced(feature_names=list(train.feature_names))  # fmt: skip
    assert Experiment(both, {"mine": model, "today": TODAY}).judgements.n_queries == test.n_queries
    assert Experiment(frame, {"mine": model, "today": TODAY}).judgements.n_queries == test.n_queries


@pytest.mark.parametrize("name", ["lightgbm", "lightgbm by place", "lightgbm's booster", "xgboost", "catboost"])
def test_a_model_is_imported_saved_and_exported_from_memory(name, models, parts, tmp_path):
    _, test, frame = parts
    model, scores_of = models[name]
    own = truerank.import_model(model)
    in_order = frame.sort_index()
    np.testing.assert_allclose(own.predict(test.X), scores_of(in_order), rtol=1e-6, atol=1e-7)
    truerank.save_model(model, tmp_path / "model.json")
    np.testing.assert_array_equal(truerank.load_model(tmp_path / "model.json").predict(test.X), own.predict(test.X))
    text = truerank.export_model(model, "vespa", feature_names=list(test.feature_names), certify=test)
    assert text.certificate.rank_agreement == 1.0


def test_columns_of_other_names_are_answered_with_the_table_to_give(parts):
    frame = parts[2].rename(columns={"qid": "query_id", "y": "relevance"})
    with pytest.raises(InvalidInputError) as caught:
        Experiment(frame, {"mine": lambda X: X[TODAY], "today": TODAY})
    assert 'Give read_table(frame, query="query_id", grade="relevance", categories=["brand"])' in str(caught.value)
    given = truerank.read_table(frame, query="query_id", grade="relevance", exclude=["brand"], features=None)
    assert Experiment(given, TODAY).evaluate()[TODAY]["nDCG@10"] > 0
