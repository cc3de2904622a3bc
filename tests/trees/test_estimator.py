import json

import numpy as np
import pytest

from rankers.conformance import ranker_checks
from support.edited_models import unsealed
from support.refusals import refused
from truerank import AdaRank, FuzzyLeaves, ObliviousBoosting, PolynomialLeaves, RankingData, load_model, save_model
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.random_streams import stream
from truerank.data.samples import load_sample
from truerank.losses.protocols import PlainObjective
from truerank.measures import parse_measure
from truerank.trees.rows import draw_rows

test_scikit_learn_conformance = ranker_checks([ObliviousBoosting("constant", n_estimators=4, depth=2)])
test_scikit_learn_conformance_fuzzy = ranker_checks([ObliviousBoosting("fuzzy", n_estimators=4, depth=2)])
test_scikit_learn_conformance_polynomial = ranker_checks([ObliviousBoosting("polynomial", n_estimators=4, depth=2)])


@pytest.fixture(scope="module")
def judged():
    data = load_sample()
    return data.take_queries(range(60)), data.take_queries(range(60, 100))


def test_squared_error_is_fitted_to_nothing_left():
    X = np.arange(16.0)[:, None]
    y = np.random.default_rng(0).standard_normal(16)
    ranker = ObliviousBoosting("constant", n_estimators=200, depth=4, learning_rate=1.0, borders=16).fit(X, y)
    np.testing.assert_allclose(ranker.predict(X), y, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_sums_of_leaf_values(judged, dtype):
    train, test = judged
    X = train.X.astype(dtype)
    X[::7, 2] = np.nan
    ranker = ObliviousBoosting("constant", n_estimators=7, depth=3).fit(X, train.y, qid=train.qid)
    T = test.X.astype(dtype)
    T[::5, :3] = np.nan
    expected = np.full(len(T), ranker.start_)
    for features, borders, right, values in zip(
        ranker.tree_features_, ranker.tree_borders_, ranker.tree_missing_right_, ranker.tree_values_
    ):
        leaf = np.zeros(len(T), dtype=int)
        for t, (k, c, r) in enumerate(zip(features, borders, right)):
            leaf += np.where(np.isnan(T[:, k]), r, T[:, k].astype(float) > c).astype(int) << t
        expected += values[leaf]
    np.testing.assert_array_equal(ranker.predict(T), expected)
    np.testing.assert_array_equal(ranker.predict(T[3:4]), expected[3:4])


def test_float32_and_float64_of_the_same_values_agree(judged):
    train, _ = judged
    X = train.X.astype(np.float32)
    a = ObliviousBoosting("constant", n_estimators=10, depth=4).fit(X, train.y, qid=train.qid)
    b = ObliviousBoosting("constant", n_estimators=10, depth=4).fit(X.astype(np.float64), train.y, qid=train.qid)
    np.testing.assert_array_equal(a.tree_values_, b.tree_values_)
    np.testing.assert_array_equal(a.predict(X), b.predict(X.astype(np.float64)))


@pytest.mark.parametrize("sampling", [{}, {"bootstrap": "row"}, {"bootstrap": "query", "feature_fraction": 0.5}])
def test_continuing_equals_one_run(judged, sampling):
    train, valid = judged
    kw = {"depth": 3, "random_state": 3, **sampling}
    whole = ObliviousBoosting("constant", n_estimators=12, **kw).fit(train, eval_set=valid)
    part = ObliviousBoosting("constant", n_estimators=5, warm_start=True, **kw).fit(train, eval_set=valid)
    part.set_params(n_estimators=12).fit(train, eval_set=valid)
    np.testing.assert_array_equal(part.tree_values_, whole.tree_values_)
    np.testing.assert_array_equal(part.validation_scores_, whole.validation_scores_)
    np.testing.assert_array_equal(part.predict(valid), whole.predict(valid))
    with refused(InvalidInputError, code="fewer-trees"):
        part.set_params(n_estimators=3).fit(train)


def test_early_stopping_keeps_the_best_round(judged):
    train, valid = judged
    ranker = ObliviousBoosting("constant", n_estimators=300, depth=4, learning_rate=0.3, patience=8).fit(
        train, eval_set=valid
    )
    history = ranker.validation_scores_
    assert ranker.n_iter_ == int(np.argmax(history)) + 1
    assert len(history) == ranker.n_iter_ + 8
    averaged = parse_measure(ranker.measure).tie_averaged()
    assert averaged.mean(valid.judgements(), ranker.predict(valid)) == pytest.approx(history.max())
    assert "stopped early" in ranker.status_


def test_saved_and_loaded_models_score_alike(judged, tmp_path):
    train, test = judged
    ranker = ObliviousBoosting("constant", n_estimators=6, depth=3).fit(train)
    save_model(ranker, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.predict(test), ranker.predict(test))
    document = unsealed(json.loads((tmp_path / "m.json").read_text()))
    document["model"]["fitted"]["tree_features_"]["values"][0] = 10_000
    (tmp_path / "m.json").write_text(json.dumps(document))
    with refused(ValueError, argument="tree_features_", code="range"):
        load_model(tmp_path / "m.json")


def test_weight_two_equals_two_copies(judged):
    train, _ = judged
    # Few values: the borders do not depend on their counts.
    X, y = np.round(20 * train.X / (1e-9 + np.abs(train.X).max(axis=0))), train.y
    twice = np.random.default_rng(0).random(len(y)) < 0.3
    kw = {"n_estimators": 8, "depth": 3, "borders": 120}
    a = ObliviousBoosting("constant", **kw).fit(X, y, qid=np.zeros(len(y)), sample_weight=1.0 + twice)
    copies = np.concatenate([X, X[twice]]), np.concatenate([y, y[twice]])
    b = ObliviousBoosting("constant", **kw).fit(*copies, qid=np.zeros(len(copies[1])))
    np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-9)


def test_monotone_scores(judged):
    train, test = judged
    signs = np.zeros(train.n_features)
    signs[:4] = 1
    signs[4:8] = -1
    ranker = ObliviousBoosting("constant", n_estimators=30, depth=4, monotone=signs).fit(
        train.X, train.y, qid=train.qid
    )
    X = test.X[:50].copy()
    for k in range(8):
        sweep = []
        for value in np.quantile(train.X[:, k], np.linspace(0, 1, 15)):
            X_k = X.copy()
            X_k[:, k] = value
            sweep.append(ranker.predict(X_k))
        assert (signs[k] * np.diff(np.array(sweep), axis=0) >= -1e-12).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"depth": 13}, {"argument": "depth"}),
        ({"borders": 300}, {"argument": "borders"}),
        ({"leaves": "soft"}, {"argument": "leaves"}),
        ({"objective": "auc"}, {"argument": "objective", "value": "auc"}),
        ({"bootstrap": "tree"}, {"argument": "bootstrap", "value": "tree"}),
        ({"patience": 5}, {"argument": "patience"}),
        ({"monotone": [1]}, {"argument": "monotone"}),
        ({"monotone": {"monotone": 1}}, {"argument": "monotone"}),
        ({"subsample": 0.0}, {"argument": "subsample", "value": 0.0}),
    ],
)
def test_bad_settings_say_what_is_wrong(judged, params, message):
    with refused(InvalidInputError, **message):
        ObliviousBoosting(**params).fit(judged[0])


class HandedOverByContent(PlainObjective):
    """A user's object that wants its rows in an order by content."""

    by_place = True

    def __init__(self, function):
        self.function = function

    def __call__(self, y, scores, offsets):
        return self.function(y, scores, offsets)


@pytest.mark.parametrize("given", [lambda f: f, HandedOverByContent])
def test_a_users_objective_that_misbehaves(given):
    X, y = np.arange(4.0)[:, None], np.array([0.0, 1, 0, 1])
    for answer, code in (
        (lambda y, s, o: s - y, "objective-result"),
        (lambda y, s, o: (s - y, np.ones(2)), "objective-shape"),
        (lambda y, s, o: ((s - y)[:1], np.ones(4)), "objective-shape"),
        (lambda y, s, o: (s - y, np.full(4, -0.25)), "negative-hessians"),
        (lambda y, s, o: (s / 0 * np.nan, np.ones(4)), "objective-finite"),
    ):
        with refused(InvalidInputError, code=code), np.errstate(all="ignore"):
            ObliviousBoosting("constant", objective=given(answer), n_estimators=1).fit(X, y)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_are_refused_by_name(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"a": [1.0, 2.0], "colour": ["red", "blue"]})
    with refused(InvalidInputError, code="not-numeric"):
        ObliviousBoosting("constant").fit(frame, [0, 1])


def test_progress_is_told(judged, capsys):
    train, valid = judged
    ObliviousBoosting("constant", n_estimators=4, depth=2, verbose=2).fit(train, eval_set=valid)
    by_parameter = capsys.readouterr().err
    rounds = [line.partition(" 0.")[0] for line in by_parameter.splitlines()]
    measure = "valid_0 nDCG@10"
    assert rounds == [f"ObliviousBoosting: round {k} of 4, {measure}" for k in (2, 4)]
    ObliviousBoosting("constant", n_estimators=4, depth=2).fit(train, eval_set=valid, verbose=2)
    assert capsys.readouterr().err == by_parameter
    ObliviousBoosting("constant", n_estimators=4, depth=2).fit(train, eval_set=valid, verbose=-1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("ties", ["near", "average"])
def test_fuzzy_scores_are_monotone(judged, ties):
    train, test = judged
    X = np.round(train.X, 1)  # many ties
    signs = {k: 1 if k < 3 else -1 for k in range(6)}
    ranker = ObliviousBoosting(FuzzyLeaves(ties=ties, search=True), n_estimators=25, depth=4, monotone=signs).fit(
        X, train.y, qid=train.qid
    )
    rows = test.X[:30].copy()
    rows[::7, 10] = np.nan
    for k, sign in signs.items():
        low, high = X[:, k].min(), X[:, k].max()
        sweep = []
        for value in np.linspace(low - 0.1, high + 0.1, 40):
            rows[:, k] = value
            sweep.append(ranker.predict(rows))
        rows[:, k] = test.X[:30, k]
        assert (sign * np.diff(np.array(sweep), axis=0) >= -1e-12).all()
    free = ObliviousBoosting(FuzzyLeaves(ties=ties), n_estimators=25, depth=4).fit(X, train.y, qid=train.qid)
    assert not np.allclose(free.predict(test.X), ranker.predict(test.X))


@pytest.mark.parametrize("objective", ["lambdarank", "softmax", "pairwise-logistic", "mse"])
def test_query_weight_two_equals_two_copies_of_the_query(judged, objective):
    train, _ = judged
    X = np.round(20 * train.X / (1e-9 + np.abs(train.X).max(axis=0)))  # few values: the same borders
    weight = np.where(np.arange(train.n_queries) % 3 == 0, 2.0, 1.0)
    copied = np.repeat(weight == 2, np.diff(train.offsets))
    qid = train.query_index
    kw = {"n_estimators": 6, "depth": 3, "borders": 120, "objective": objective}
    a = ObliviousBoosting("constant", **kw).fit(X, train.y, qid=qid, query_weight=weight)
    b = ObliviousBoosting("constant", **kw).fit(
        np.concatenate([X, X[copied]]), np.concatenate([train.y, train.y[copied]]),
        qid=np.concatenate([qid, 1000 + qid[copied]]),
    )  # fmt: skip
    np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-6)
    plain = ObliviousBoosting("constant", **kw).fit(X, train.y, qid=qid)
    assert not np.allclose(a.predict(X), plain.predict(X), atol=1e-6)


def test_queries_are_drawn_whole(judged):
    train, _ = judged
    drawn = draw_rows(stream(0, "rows", 0), train.offsets, "query", False, 0.5)
    by_query = drawn[train.offsets[:-1]]
    np.testing.assert_array_equal(drawn, np.repeat(by_query, np.diff(train.offsets)))
    assert by_query.sum() == train.n_queries // 2
    assert set(np.unique(by_query)) == {0, 1}
    again = draw_rows(stream(0, "rows", 0), train.offsets, "query", True, 1.0)
    assert again[train.offsets[:-1]].sum() == train.n_queries
    assert again.max() > 1


def test_a_tree_asks_about_its_share_of_features(judged):
    train, _ = judged
    ranker = ObliviousBoosting("constant", n_estimators=12, depth=4, feature_fraction=0.2).fit(train)
    asked = [set(f[np.isfinite(b)].tolist()) for f, b in zip(ranker.tree_features_, ranker.tree_borders_)]
    assert max(map(len, asked)) <= round(0.2 * train.n_features)
    assert len(set().union(*asked)) > 0.2 * train.n_features


def test_bad_constraints_say_what_is_wrong(judged):
    for given, message in (
        ({99: 1}, "column 99, but X has the columns 0"),
        ({-1: 1}, "column -1"),
        ({0: "up"}, "must have -1, 0 or 1"),
        ("up", "must have -1, 0 or 1"),
        ({0: 2}, "must have -1, 0 or 1"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            ObliviousBoosting("constant", monotone=given).fit(judged[0])


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
def test_a_file_keeps_models_of_any_parameters(judged, tmp_path, leaves):
    train, test = judged
    X = np.where(np.random.default_rng(0).random(test.X.shape) < 0.1, np.nan, test.X)
    ranker = ObliviousBoosting(
        leaves, objective=lambda y, s, offsets: (s - y, np.ones_like(s)), n_estimators=4, depth=3,
        monotone=None if leaves == "polynomial" else {0: 1}, random_state=np.random.default_rng(3), bootstrap="row",
    ).fit(train.X, train.y, qid=train.qid)  # fmt: skip
    save_model(ranker, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.predict(X), ranker.predict(X))
    np.testing.assert_array_equal(loaded.feature_importances_, ranker.feature_importances_)
    with refused(InvalidInputError, argument="objective"):
        loaded.fit(train.X, train.y, qid=train.qid)


def test_categories_are_refused_at_prediction_too():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    ranker = ObliviousBoosting("constant", n_estimators=1).fit(frame, [0, 1])
    assert ranker.feature_names_in_.tolist() == ["a", "b"]
    for wrong in (["x", "y"], pandas.Timestamp(0)):
        with refused(InvalidInputError, code="not-numeric"):
            ranker.predict(frame.assign(b=wrong))
        with refused(InvalidInputError, code="not-numeric"):
            ranker.fit(frame, [0, 1], eval_set=(frame.assign(b=wrong), [0, 1], None))


@pytest.mark.parametrize(
    ("common", "change"),
    [
        ({}, {"objective": "softmax"}),
        ({"objective": "lambdarank"}, {"objective_params": {"sigma": 3.0}}),
        ({"objective": "lambdarank"}, {"measure": "AP"}),
        ({"objective": "lambdarank", "measure": "nDCG@3"}, {"convention": "mslr"}),
        ({"objective": "pairwise-logistic"}, {"objective_params": {"sigma": 3.0}}),
        ({"objective": "yetirank"}, {"objective_params": {"permutations": 3}}),
        ({"objective": "yetirank"}, {"objective_params": {"decay": 0.5}}),
        ({"objective": "yetirank"}, {"random_state": 1}),
        ({}, {"n_estimators": 4}),
        ({}, {"learning_rate": 0.2}),
        ({}, {"depth": 4}),
        ({}, {"borders": 5}),
        ({}, {"alpha": 2.0}),
        ({}, {"small_leaf_penalty": 100.0}),
        ({"leaves": "fuzzy"}, {"leaves": FuzzyLeaves(fuzziness=0.3)}),
        ({"leaves": "fuzzy"}, {"leaves": FuzzyLeaves(p_swap=0.9)}),
        ({"leaves": "fuzzy"}, {"leaves": FuzzyLeaves(ties="near")}),
        ({"leaves": "fuzzy"}, {"leaves": FuzzyLeaves(search=True)}),
        ({"leaves": "fuzzy"}, {"leaves": FuzzyLeaves(places=5)}),
        ({"leaves": "polynomial"}, {"leaves": PolynomialLeaves(degree=2)}),
        ({"leaves": "polynomial"}, {"leaves": PolynomialLeaves(smoothing=1.0)}),
        ({"leaves": "polynomial", "alpha": 9}, {"leaves": PolynomialLeaves(solution="two-rounds")}),
        ({"leaves": "polynomial"}, {"clip": False}),
        ({}, {"start": "linear"}),
        ({"start": "linear"}, {"start_alpha": 3.0}),
        ({}, {"bootstrap": "row"}),
        ({"bootstrap": "row"}, {"bootstrap": "query"}),
        ({"bootstrap": "row"}, {"replace": False}),
        ({"bootstrap": "row"}, {"subsample": 0.5}),
        ({"bootstrap": "row"}, {"random_state": 1}),
        ({}, {"feature_fraction": 0.3}),
        ({}, {"monotone": {1: -1, 2: -1, 3: -1}}),
    ],
)
def test_every_parameter_does_something(judged, common, change):
    train, test = judged
    rows = 1.5 * test.X  # beyond the training range too
    kw = {"leaves": "constant", "n_estimators": 3, "depth": 3} | common
    a = ObliviousBoosting(**kw).fit(train.X, train.y, qid=train.qid)
    b = ObliviousBoosting(**(kw | change)).fit(train.X, train.y, qid=train.qid)
    assert not np.array_equal(a.predict(rows), b.predict(rows))


def test_a_second_fit_leaves_nothing_of_the_first(judged, tmp_path):
    train, _ = judged
    ranker = ObliviousBoosting("fuzzy", start="linear", n_estimators=2, depth=2).fit(train)
    ranker.set_params(leaves="constant", start="constant").fit(train)
    fresh = ObliviousBoosting("constant", n_estimators=2, depth=2).fit(train)
    for name in ("a.json", "b.json"):
        save_model(ranker if name == "a.json" else fresh, tmp_path / name)
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
def test_the_deepest_trees(judged, leaves):
    train, test = judged
    ranker = ObliviousBoosting(leaves, depth=12, n_estimators=2).fit(train)
    assert ranker.tree_values_.shape[:2] == (2, 4096)
    assert np.isfinite(ranker.predict(test)).all()
    np.testing.assert_array_equal(list(ranker.staged_predict(test))[-1], ranker.predict(test))


@pytest.mark.parametrize(
    "leaves", ["round", {"kind": "fuzzy", "degree": 2}, PolynomialLeaves(smoothing=-1.0), FuzzyLeaves(ties="far"), 3]
)
def test_leaves_that_do_not_exist_are_named(judged, leaves):
    with pytest.raises(InvalidInputError, match=r"leaves|smoothing|ties"):
        ObliviousBoosting(leaves).fit(judged[0])


def test_sample_weights_travel_with_the_data(judged):
    train, test = judged
    weight = np.random.default_rng(0).integers(1, 4, train.n_rows).astype(float)
    own = RankingData(train.X, train.y, train.qid, sample_weight=weight)
    expected = ObliviousBoosting("constant", n_estimators=3).fit(train, sample_weight=weight).predict(test)
    np.testing.assert_array_equal(ObliviousBoosting("constant", n_estimators=3).fit(own).predict(test), expected)
    assert train.sample_weight is None
    half = own.take_queries(range(10, 20))
    np.testing.assert_array_equal(half.sample_weight, weight[own.offsets[10] : own.offsets[20]])
    with refused(InvalidInputError, argument="sample_weight"):
        AdaRank().fit(own)


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
def test_damaged_files_are_refused(judged, tmp_path, leaves):
    train, test = judged
    ranker = ObliviousBoosting(leaves, start="linear", n_estimators=2, depth=2).fit(train)
    save_model(ranker, tmp_path / "m.json")
    whole = unsealed(json.loads((tmp_path / "m.json").read_text()))

    def load(change):
        document = json.loads(json.dumps(whole))
        change(document["model"])
        (tmp_path / "d.json").write_text(json.dumps(document))
        return load_model(tmp_path / "d.json")

    unread = {"status_", "n_queries_in_", "seed_", "feature_names_in_"}
    one = {"$array": "float64", "shape": [1], "values": [1.0]}
    for name in set(whole["model"]["fitted"]) - unread:
        if name not in (
            "history_",
            "inputs_",
            "close_columns_",
            "saw_missing_",
            "training_sketch_",
        ):  # without which a model predicts all the same
            with pytest.raises(ModelFileError):
                load(lambda model, name=name: model["fitted"].pop(name))
        for value in ("x", None, 3.5, [1, 2], one, {"$float": "nan"}):
            if value == 3.5 and name == "start_":
                continue  # another model, and a sound one
            if value == [1, 2] and name == "close_columns_":
                continue
            if value is one and name == "validation_scores_":
                continue
            with pytest.raises(ModelFileError):
                load(lambda model, name=name, value=value: model["fitted"].__setitem__(name, value))
    for name, value in (("leaves", "other"), ("leaves", {"constant": "fuzzy"}.get(leaves, "constant"))):
        if leaves == "fuzzy" and value == "constant":
            continue  # a plain model hides in a fuzzy one
        with pytest.raises(ModelFileError):
            load(lambda model, name=name, value=value: model["params"].__setitem__(name, value))
    np.testing.assert_array_equal(load(lambda model: None).predict(test), ranker.predict(test))
