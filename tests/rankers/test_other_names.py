"""Scripts of XGBoost, LightGBM and CatBoost users with the import changed, and what is said where names differ."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from support.refusals import refused
from truerank import (
    AdaRank,
    ListNet,
    MinMaxInQuery,
    ObliviousBoosting,
    RandomRanker,
    RankBoost,
    RankerPipeline,
    RankingData,
    RankSVM,
    RidgeRanker,
    SingleFeature,
    load_sample,
)
from truerank.core.errors import InvalidInputError, TruerankWarning

# The changed import: the name in their scripts, our class.
XGBRanker = LGBMRanker = CatBoostRanker = ObliviousBoosting


@pytest.fixture(scope="module")
def sets():
    data = load_sample()
    return [data.take_queries(range(start, start + 12)) for start in (0, 20, 40)]


def test_a_script_for_xgboost_runs(sets):
    train, valid, test = sets
    with pytest.warns(TruerankWarning, match="lambdarank_pair_method='topk' has no effect") as seen:
        ranker = XGBRanker(
            lambdarank_pair_method="topk",
            tree_method="hist",
            objective="rank:ndcg",
            n_estimators=12,
            max_depth=3,
            eta=0.3,
            reg_lambda=1.5,
            early_stopping_rounds=5,
            eval_metric=["ndcg@1", "ndcg@8"],
            seed=3,
            nthread=1,
            verbosity=0,
            missing=np.nan,
        )
    assert seen[0].filename == __file__
    ranker.fit(
        train.X,
        train.y,
        qid=train.qid,
        eval_set=[(train.X, train.y), (valid.X, valid.y)],
        eval_qid=[train.qid, valid.qid],
        verbose=True,
    )
    ours = ObliviousBoosting(
        objective="lambdarank", n_estimators=12, depth=3, learning_rate=0.3, alpha=1.5, patience=5,
        validation_measure="ndcg@8", random_state=3, n_jobs=1,
    ).fit(train, eval_set=valid)  # fmt: skip
    np.testing.assert_array_equal(ranker.predict(test.X), ours.predict(test))
    assert list(ranker.evals_result_) == ["valid_0", "valid_1"]
    np.testing.assert_array_equal(ranker.evals_result_["valid_1"]["nDCG@8"], ours.validation_scores_)
    assert ranker.evals_result()["validation_1"]["ndcg@1"][-1] == ranker.best_score_["valid_1"]["ndcg@1"]
    np.testing.assert_array_equal(
        ranker.predict(test.X, iteration_range=(0, ranker.best_iteration + 1)), ours.predict(test)
    )
    assert len(ranker.evals_result_["valid_0"]["nDCG@8"]) == ranker.best_iteration_ == ranker.n_iter_


def test_a_script_for_lightgbm_runs(sets):
    train, valid, _ = sets
    with pytest.warns(TruerankWarning, match="objective is .mse. here; LGBMRanker"):
        gbm = LGBMRanker(n_estimators=6, reg_alpha=0.0, subsample_freq=0, colsample_bytree=0.8, max_bin=63)
    gbm.fit(
        train.X,
        train.y,
        group=train.group_sizes,
        eval_set=[(valid.X, valid.y)],
        eval_group=[valid.group_sizes],
        eval_names=["held out"],
        eval_at=[1, 3],
    )
    ours = ObliviousBoosting(n_estimators=6, feature_fraction=0.8, borders=63).fit(train, eval_set=valid)
    np.testing.assert_array_equal(gbm.predict(valid.X), ours.predict(valid))
    assert list(gbm.evals_result_) == ["held out"]
    assert list(gbm.evals_result_["held out"]) == ["nDCG@10", "nDCG@1", "nDCG@3"]
    assert gbm.evals_result_["held out"]["nDCG@3"].shape == (6,)


def test_a_script_for_catboost_runs(sets):
    train, valid, _ = sets
    model = CatBoostRanker(
        iterations=5, depth=4, loss_function="RMSE", eval_metric="NDCG:top=5;type=Exp", random_seed=1, border_count=63,
        l2_leaf_reg=3, thread_count=-1, task_type="CPU", allow_writing_files=False,
    )  # fmt: skip
    model.fit(train.X, train.y, group_id=train.qid, eval_set={"eval": valid}, verbose=False)
    ours = ObliviousBoosting(n_estimators=5, depth=4, alpha=3, borders=64, random_state=1,
                             validation_measure="nDCG(gain='exponential')@5").fit(train, eval_set=valid)  # fmt: skip
    np.testing.assert_array_equal(model.predict(valid.X), ours.predict(valid))
    assert len(model.evals_result_["eval"]) == 1


def test_objects_of_other_libraries_say_what_to_pass(sets):
    catboost, xgboost = pytest.importorskip("catboost"), pytest.importorskip("xgboost")
    train = sets[0]
    with pytest.warns(TruerankWarning, match="custom_metric.*evaluate"):
        model = CatBoostRanker(loss_function="YetiRank", custom_metric=["NDCG:top=10"], iterations=4, random_seed=0,
                               verbose=False)  # fmt: skip
    with pytest.warns(TruerankWarning, match="plot has no effect"):
        model.fit(train, plot=True)
    for theirs in (catboost.Pool(train.X, train.y, group_id=train.qid), xgboost.DMatrix(train.X)):
        calls = (
            lambda X: model.fit(X), lambda X: model.fit(train, eval_set=[X]), model.predict, model.rank, model.score,
            lambda X: list(model.staged_predict(X)), model.permutation_importance,
        )  # fmt: skip
        for call in calls:
            with refused(InvalidInputError, code="other-library"):
                call(theirs)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lambdarank_unbiased": True, "objective": "rank:pairwise"}, "requires objective='rank:ndcg'"),
        ({"langevin": True}, "no counterpart"),
        ({"reg_alpha": 0.5}, "alpha is the squared one"),
        ({"max_depth": 3, "depth": 4}, "Pass only depth"),
        ({"n_estimatros": 3}, "Did you mean 'n_estimators'"),
        ({"booster": "dart"}, "rank-svm"),
    ],
)
def test_what_differs_is_named_with_ours_beside_it(arguments, words):
    with pytest.raises(InvalidInputError, match=words.replace("(", r"\(")):
        ObliviousBoosting(**arguments)


@pytest.mark.parametrize(
    ("arguments", "ours"),
    [
        ({"num_leaves": 31}, {"depth": 5}),
        ({"max_leaves": 0, "max_depth": 4}, {"depth": 4}),
        ({"num_leaves": 255, "max_depth": 4}, {"depth": 4}),
        ({"num_leaves": 8, "max_depth": 6}, {"depth": 3}),
        ({"max_depth": -1}, {"depth": 6}),
        ({"max_depth": 40}, {"depth": 12}),
        ({"min_child_samples": 20}, {"small_leaf_penalty": 1.0}),
        ({"min_child_weight": 5, "small_leaf_penalty": 0.5}, {"small_leaf_penalty": 0.5}),
        ({"colsample_bylevel": 0.5}, {"feature_fraction": 0.5}),
        ({"cat_features": (1, 2)}, {"categorical": [1, 2]}),
        ({"metric": "ndcg,map"}, {"validation_measure": ["ndcg", "map"]}),
        ({"metric": "ndcg", "eval_at": [1, 5]}, {"validation_measure": ["ndcg@1", "ndcg@5"]}),
        ({"loss_function": "LambdaMart:metric=NDCG;top=5"}, {"objective": "lambdarank", "measure": "nDCG@5"}),
    ],
)
def test_what_is_near_is_translated_with_one_warning(arguments, ours):
    with pytest.warns(TruerankWarning) as seen:
        params = ObliviousBoosting(**arguments).get_params()
    assert len(seen) == 1
    assert {name: params[name] for name in ours} == ours


def test_one_error_has_all_parameters_and_a_constructor_that_is_accepted():
    with pytest.raises(InvalidInputError) as refusal:
        ObliviousBoosting(reg_alpha=0.5, gamma=1.0, langevin=True, num_leaves=31, learning_rat=0.2, eta=0.3, seed=1)
    text = str(refusal.value)
    assert all(name in text for name in ("reg_alpha=0.5", "gamma=1.0", "langevin=True", "learning_rat=0.2"))
    line = text[text.index("Write: ") :].splitlines()[0].removeprefix("Write: ")
    params = eval(line).get_params()  # what the user pastes
    assert (params["depth"], params["learning_rate"], params["random_state"]) == (5, 0.3, 1)


def test_one_error_of_fit_has_all_arguments(sets):
    lightgbm = pytest.importorskip("lightgbm")
    with pytest.raises(InvalidInputError) as refusal:
        ObliviousBoosting(n_estimators=2, depth=3).fit(
            sets[0].X, sets[0].y, qid=sets[0].qid, init_score=[0.0], learning_rate=0.3, pairs=[],
            callbacks=[lightgbm.reset_parameter(bagging_fraction=[0.5, 0.6])],
        )  # fmt: skip
    text = str(refusal.value)
    assert all(name in text for name in ("init_score", "pairs", "callbacks", "constructor"))
    assert "ObliviousBoosting(depth=3, n_estimators=2, learning_rate=0.3).fit(X, y, qid=qid" in text


def test_callbacks_of_other_libraries_set_what_they_set_there(sets):
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    train, valid, test = sets
    record = {}
    rates = [0.3, 0.2, 0.1, 0.05]
    ours = ObliviousBoosting("constant", n_estimators=4, learning_rate=rates, patience=2).fit(train, eval_set=valid)
    for callbacks in (
        [lightgbm.early_stopping(2, verbose=False), lightgbm.reset_parameter(learning_rate=rates),
         lightgbm.record_evaluation(record)],
        [xgboost.callback.EarlyStopping(rounds=2), xgboost.callback.LearningRateScheduler(lambda place: rates[place])],
    ):  # fmt: skip
        theirs = ObliviousBoosting("constant", n_estimators=4).fit(train, eval_set=valid, callbacks=callbacks)
        np.testing.assert_array_equal(theirs.predict(test), ours.predict(test))
        assert (theirs.patience, theirs.learning_rate) == (None, 0.1)
    np.testing.assert_array_equal(record["valid_0"]["ndcg@10"], ours.validation_scores_)


def test_rankers_without_callbacks_in_the_constructor_say_where_they_go():
    with refused(InvalidInputError, code="unknown-parameter"):
        AdaRank(callbacks=[])


def refusal(**arguments):
    """What the constructor says against an argument; "" where it is taken."""
    try:
        ObliviousBoosting(**arguments)
    except InvalidInputError as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore:ObliviousBoosting")
@pytest.mark.parametrize("name", ["xgboost.XGBRanker", "lightgbm.LGBMRanker", "catboost.CatBoostRanker"])
def test_every_parameter_of_theirs_is_taken_or_explained(name):
    library, _, ranker = name.partition(".")
    cls = getattr(pytest.importorskip(library), ranker)
    named = [one for base in cls.__mro__ for one in inspect.signature(base.__init__).parameters.values()]
    theirs = {one.name: one.default for one in named if one.kind is not one.VAR_KEYWORD and one.name != "self"}
    for ours in ("args", "kwargs", "params", *ObliviousBoosting().get_params()):
        theirs.pop(ours, None)
    assert len(theirs) > 10
    assert [one for one, default in theirs.items() if refusal(**{one: default})] == []
    assert [one for one in theirs if "it has leaves" in refusal(**{one: 12345})] == []


@pytest.mark.filterwarnings("ignore:the rows of 12 of 12 queries were not adjacent")
def test_clicks_in_the_order_they_were_shown(sets):
    train, _, test = sets
    with pytest.warns(TruerankWarning, match="sampling_method.*same probability"):
        ranker = XGBRanker(
            n_estimators=6, objective="rank:ndcg", lambdarank_unbiased=True, lambdarank_bias_norm=2, ndcg_exp_gain=True,
            sampling_method="gradient_based",
        )  # fmt: skip
    clicks = (train.y > 1).astype(float)
    rows = np.random.default_rng(1).permutation(train.n_rows)  # queries apart; within each, the order counts
    position = np.zeros(train.n_rows)
    for query in np.unique(train.qid):
        own = train.qid[rows] == query
        position[own] = np.arange(own.sum()) + 1
    ranker.fit(train.X[rows], clicks[rows], qid=train.qid[rows])
    ours = ObliviousBoosting(n_estimators=6, objective="unbiased-lambdarank", objective_params={"norm": 2})
    ours.fit(train.X[rows], clicks[rows], qid=train.qid[rows], position=position)
    np.testing.assert_array_equal(ranker.predict(test), ours.predict(test))
    assert ranker.click_propensities_.shape == ours.click_propensities_.shape
    with refused(InvalidInputError, argument="position"):
        ours.fit(train)


@pytest.mark.parametrize(
    ("theirs", "objective", "measure"),
    [
        ("rank:map", "lambdarank", "AP"),
        ("rank_xendcg", "xe-ndcg", "nDCG@10"),
        ("QueryRMSE", "query-mse", "nDCG@10"),
        ("YetiRankPairwise", "yetirank", "nDCG@10"),
    ],
)
def test_objectives_of_theirs(theirs, objective, measure):
    ranker = ObliviousBoosting(objective=theirs)
    assert (ranker.objective, ranker.measure) == (objective, measure)
    assert ObliviousBoosting(loss_function=theirs).objective == objective
    assert ObliviousBoosting(objective=theirs, measure="RR").measure == "RR"


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_column_qid_says_the_queries(sets, name):
    frames = pytest.importorskip(name)
    train, _, test = sets
    columns = {f"f{k}": train.X[:, k] for k in range(5)}
    frame = frames.DataFrame({"qid": train.qid, **columns})
    held = frames.DataFrame({**{f"f{k}": test.X[:, k] for k in range(5)}, "qid": test.qid})
    ranker = XGBRanker(n_estimators=3).fit(frame, train.y, eval_set=[(held, test.y)])
    same = XGBRanker(n_estimators=3).fit(frames.DataFrame(columns), train.y, qid=train.qid)
    assert list(ranker.feature_names_in_) == list(columns)
    np.testing.assert_array_equal(ranker.predict(held), same.predict(held))
    np.testing.assert_array_equal(ranker.rank(held), ranker.rank(held[list(columns)], qid=test.qid))
    assert ranker.score(held, test.y) == ranker.validation_scores_[-1] == same.score(held, test.y, qid=test.qid)
    assert np.shape(ranker.permutation_importance(held, test.y, repeats=1)) == (5,)
    with refused(InvalidInputError, argument="qid"):
        ranker.fit(frame, train.y, qid=train.qid[::-1])
    assert ranker.fit(frame, train.y, qid=train.qid).n_features_in_ == 5
    around = RankerPipeline([MinMaxInQuery()], RidgeRanker()).fit(frame, train.y)
    np.testing.assert_array_equal(around.predict(held), around.predict(held[list(columns)], qid=test.qid))


def test_a_column_qid_of_an_arrow_table_says_the_queries(sets):
    pyarrow = pytest.importorskip("pyarrow")
    train, _, test = sets
    tables = [pyarrow.table({"qid": data.qid, **{f"f{k}": data.X[:, k] for k in range(5)}}) for data in (train, test)]
    ranker = XGBRanker(n_estimators=3).fit(tables[0], train.y)
    same = XGBRanker(n_estimators=3).fit(train.X[:, :5], train.y, qid=train.qid)
    assert ranker.n_features_in_ == 5
    np.testing.assert_array_equal(ranker.predict(tables[1]), same.predict(test.X[:, :5]))
    np.testing.assert_array_equal(ranker.rank(tables[1]), same.rank(test.X[:, :5], qid=test.qid))


def test_validation_sets_in_the_words_of_newer_releases(sets):
    train, valid, test = sets
    gbm = LGBMRanker(n_estimators=4, ndcg_eval_at=[1, 3], objective="mse")
    gbm.fit(
        train.X, train.y, group=np.array(train.group_sizes, dtype=float), feature_name="auto",
        categorical_feature="auto", eval_set=[(valid.X, valid.y), (test.X, test.y)],
        eval_group=[valid.group_sizes, test.group_sizes],
    )  # fmt: skip
    assert list(gbm.evals_result_) == ["valid_0", "valid_1"]
    assert set(gbm.evals_result_["valid_0"]) == {"nDCG@1", "nDCG@3"}
    assert gbm.predict(valid.X, num_iteration=gbm.best_iteration_, raw_score=True).shape == (valid.n_rows,)
    for bad, words in (
        ({"num_iteration": 2}, "staged_predict"),
        ({"pred_contrib": True}, r"ranker.contributions\(X\)"),
        ({"qidd": 1}, "Did you mean 'qid'"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            gbm.predict(valid.X, **bad)
    with refused(InvalidInputError, argument="eval_X"):
        gbm.fit(train, eval_X=valid.X)


def test_what_their_fitted_rankers_have_is_named(sets):
    ranker = XGBRanker(n_estimators=1).fit(sets[0])
    assert ranker.get_booster() is ranker
    assert (ranker.tree_count_, ranker.get_num_boosting_rounds(), ranker.feature_name()) == (1, 1, ranker.feature_name_)
    assert not hasattr(ranker, "eval_metrics")
    with pytest.raises(AttributeError, match="ObliviousBoosting has no eval_metrics: .*evaluate"):
        ranker.eval_metrics


def test_masked_values_are_not_taken_as_values(sets):
    data = sets[0]
    whole = np.ma.array(data.X, mask=np.zeros_like(data.X))
    assert XGBRanker(n_estimators=1).fit(whole, np.ma.array(data.y), qid=data.qid).n_iter_ == 1
    rows, grades = np.ma.array(data.X, mask=data.X > 3), np.ma.array(data.y, mask=data.y > 0)
    for X, y, argument in ((rows, data.y, "X"), (data.X, grades, "y")):
        for fails in (
            lambda X=X, y=y: XGBRanker().fit(X, y, qid=data.qid),
            lambda X=X, y=y: RankingData(X, y, data.qid),
        ):
            with refused(InvalidInputError, argument=argument):
                fails()
    with refused(InvalidInputError, argument="X"):
        XGBRanker(n_estimators=1).fit(data).predict(rows)


def test_rankers_without_the_setting_say_so():
    with refused(InvalidInputError, code="unknown-parameter"):
        AdaRank(max_depth=3)
    assert AdaRank(early_stopping_rounds=7, verbose=False).patience == 7
    with pytest.warns(TruerankWarning, match="no effect"):
        ObliviousBoosting(lambdarank_num_pair_per_sample=8)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"init_model": 3}, {"argument": "init_model"}),
        ({"early_stopping_rounds": 5}, {"argument": "patience"}),
        ({"eval_metric": "ndcg"}, {"argument": "eval_metric"}),
        ({"n_estimators": 5}, {"argument": "n_estimators"}),
        ({"use_best_model": False}, {"argument": "use_best_model"}),
        ({"shuffle": False}, {"argument": "shuffle"}),
        ({"grup": [3]}, {"argument": "grup"}),
        ({"group": [0.5, 1.5]}, {"argument": "group"}),
        ({"eval_qid": [[1]]}, {"argument": "eval_qid"}),
    ],
)
def test_arguments_of_fit_are_explained(sets, arguments, words):
    with refused(InvalidInputError, **words):
        ObliviousBoosting(n_estimators=1).fit(sets[0].X, sets[0].y, **arguments)


def test_settings_of_fit_that_ask_for_nothing_are_taken(sets):
    settings = {"plot": False, "silent": True, "use_best_model": True, "logging_level": "Silent", "verbose": False}
    assert ObliviousBoosting(n_estimators=1).fit(sets[0], **settings).n_iter_ == 1


def test_group_and_qid_say_the_same_once(sets):
    data = sets[0]
    with pytest.raises(InvalidInputError, match="Pass only qid"):
        ObliviousBoosting().fit(data.X, data.y, qid=data.qid, group=data.group_sizes)
    with refused(InvalidInputError, argument="eval_set"):
        AdaRank().fit(data, eval_set=[sets[1], sets[2]])


def test_clone_pickle_and_set_params_keep_working(sets):
    ranker = ObliviousBoosting(max_depth=3, objective="rank:pairwise")
    with refused(InvalidInputError, code="unknown-parameter"):
        ranker.set_params(langevin=True)
    assert clone(ranker).get_params()["depth"] == 3
    assert pickle.loads(pickle.dumps(ranker)).objective == "pairwise-logistic"
    assert ranker.set_params(eta=0.5, max_depth=2).get_params()["learning_rate"] == 0.5


@pytest.mark.parametrize(
    "ranker",
    [
        AdaRank(n_estimators=5),
        RankBoost(n_estimators=5),
        RankSVM(max_iter=20),
        RidgeRanker(),
        ListNet(max_iter=20),
        SingleFeature(),
        ObliviousBoosting(n_estimators=3),
        RankerPipeline([MinMaxInQuery()], RidgeRanker()),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_ranker_has_importances(sets, ranker):
    shares = ranker.fit(sets[0]).feature_importances_
    assert shares.shape == (20,)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)


def test_importances_count_in_the_units_of_training(sets):
    ranker = RankSVM(C=1e-2).fit(sets[0])
    weights = np.abs(ranker.coef_ * ranker.scale_)
    np.testing.assert_allclose(ranker.feature_importances_, weights / weights.sum())


def test_chance_has_no_importances(sets):
    assert RandomRanker().fit(sets[0]).feature_importances_.tolist() == [0.0] * 20
