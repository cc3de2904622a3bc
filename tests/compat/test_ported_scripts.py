"""Scripts for other libraries run with another import, or with the line that one error gives."""

from __future__ import annotations

import ast
import re
import warnings

import numpy as np
import pytest

from compat.ported_scripts import SCRIPTS
from truerank import ObliviousBoosting, evaluate, load_sample
from truerank.compat.port import Dataset, LGBMRanker, train
from truerank.core.errors import InvalidInputError, TruerankWarning

pandas = pytest.importorskip("pandas")
IMPORTS = [
    (r"^import (?:lightgbm|xgboost|catboost) as (\w+)$", r"from truerank.compat import port as \1"),
    (r"^from (?:lightgbm|xgboost|catboost)(?:\.sklearn)? import", "from truerank.compat.port import"),
]
PASTED = {"lightgbm, recommendations with dart", "lightgbm, penalties", "pyterrier, xgboost", "xgboost, demo/rank",
          "xgboost, penalties", "catboost, categories and pairs",
          "lightgbm, search with penalties and gains"}  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    data, names = load_sample(), {"np": np, "folder": str(tmp_path_factory.mktemp("files"))}
    for suffix, first in (("", 0), ("_valid", 20), ("_test", 40)):
        part = data.take_queries(range(first, first + 20))
        X = np.array(part.X)
        X[:, 3] = np.round(X[:, 3])
        names |= {f"X{suffix}": X, f"y{suffix}": part.y.astype(int), f"qid{suffix}": part.qid}
        names |= {f"group{suffix}": np.asarray(part.group_sizes)}
        names[f"frame{suffix}"] = pandas.DataFrame(X, columns=part.feature_names).assign(qid=np.asarray(part.qid))
    return names


def ported(script):
    for old, new in IMPORTS:
        script = re.sub(old, new, script, flags=re.MULTILINE)
    assert "truerank" in script
    return script


def attempt(script, inputs):
    """Run a script; return its scores, or the error."""
    names = dict(inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(script, "script", "exec"), names)
        except InvalidInputError as error:
            return error
    return names["scores"]


def pasted(script, error):
    """The script with the constructor that the error gives in the place of its own."""
    if "best_iteration_" in str(error):  # LightGBM's Booster counts it from 1
        return re.sub(r"\.best_iteration\b", ".best_iteration_", script)
    line = re.search(r"^Write: (\w+\(.*\))(?:\.fit.*)?$", str(error), re.MULTILINE)
    assert line, str(error)
    tree = ast.parse(script)
    made = ("LGBMRanker", "XGBRanker", "CatBoostRanker", "CatBoost", "train")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in made:
            own = ast.get_source_segment(script, node)
            new = line[1] if not own.split("(")[0].endswith("train") else None
            if new is None:  # train(params, rows, …): the settings go to params
                settings = ast.get_source_segment(script, node.args[0])
                new = own.replace(settings, "dict" + line[1].removeprefix("ObliviousBoosting"), 1)
            return "from truerank import ObliviousBoosting" + script.replace(own, new)
    raise AssertionError("no ranker is made")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_after_one_pasted_line_at_most(name, inputs):
    script = ported(SCRIPTS[name])
    found = attempt(script, inputs)
    edits = 0
    if isinstance(found, Exception):
        found, edits = attempt(pasted(script, found), inputs), 1
    assert not isinstance(found, Exception), found
    assert edits == (name in PASTED)
    value = evaluate(inputs["y_test"], found, "nDCG@10", qid=inputs["qid_test"])["nDCG@10"]
    assert value > 0.35  # random orders have 0.17


def test_a_measure_of_scores_is_answered_with_the_arguments_of_a_measure(inputs):
    given = {"group": inputs["group"], "eval_set": [(inputs["X_valid"], inputs["y_valid"])]} | {
        "eval_group": [inputs["group_valid"]]
    }
    with pytest.raises(InvalidInputError, match=r"function of \(grades\), .* in the order of the ranking"):
        LGBMRanker(n_estimators=2).fit(
            inputs["X"], inputs["y"], eval_metric=lambda y, scores: ("m", 0.0, True), **given
        )
    with pytest.raises(InvalidInputError, match=r"feval: give eval_metric=f"):
        train(
            {}, Dataset(inputs["X"], inputs["y"], group=inputs["group"]), 2, feval=lambda scores, rows: ("m", 0.0, True)
        )


def test_best_rounds_and_values_have_the_forms_of_both_libraries(inputs):
    gbm = train({}, Dataset(inputs["X"], inputs["y"], qid=inputs["qid"]), 6,
                valid_sets=[Dataset(inputs["X_valid"], inputs["y_valid"], qid=inputs["qid_valid"])])  # fmt: skip
    assert gbm.best_iteration == 5
    np.testing.assert_array_equal(gbm.predict(inputs["X"], num_iteration=gbm.best_iteration), gbm.predict(inputs["X"]))
    with pytest.raises(InvalidInputError, match="staged_predict"):
        gbm.predict(inputs["X"], num_iteration=5)
    assert gbm.best_score == gbm.best_score["valid_0"]["ndcg@10"] == gbm.evals_result_["valid_0"]["ndcg@10"][-1]
    with pytest.raises(InvalidInputError, match="contributions"):
        gbm.get_feature_importance(type="ShapValues")


def test_categories_of_one_fit_are_read_in_its_predictions():
    frame = pandas.DataFrame({"shop": ["a", "b", "a", "c"] * 3, "price": np.arange(12.0)})
    y, qid = [1, 0, 1, 0] * 3, [1] * 6 + [2] * 6
    with pytest.warns(TruerankWarning, match="cat_features"):
        ranker = ObliviousBoosting(n_estimators=3).fit(frame, y, qid=qid, cat_features=["shop"])
    own = ObliviousBoosting(n_estimators=3, categorical=["shop"]).fit(frame, y, qid=qid)
    np.testing.assert_array_equal(ranker.predict(frame), own.predict(frame))
    assert ranker.categorical is None
    ranker.fit(frame[["price"]], y, qid=qid)
    assert ranker.predict(frame[["price"]]).shape == (12,)  # without categories again


def test_names_without_a_counterpart_are_answered_with_what_to_use():
    from truerank.compat import port

    with pytest.raises(AttributeError, match=r"has no cv: use truerank\.cross_validate"):
        port.cv
    assert not hasattr(port, "no_such_name")
    assert port.Dataset([[1.0]], [1]).create_valid([[2.0]], [0], group=[1]).as_set[:2] == ([[2.0]], [0])


def test_callbacks_with_an_environment_and_regressors():
    from truerank.compat import port

    rng = np.random.default_rng(0)
    X, y, group = rng.normal(size=(100, 3)), rng.integers(0, 3, 100), [20] * 5
    seen = []

    def log(env):
        seen.append((env.iteration, *env.evaluation_result_list[0][:3]))

    class Stop:
        def after_iteration(self, info):
            return info.iteration < 4

    fitted = port.LGBMRanker(n_estimators=3).fit(
        X, y, group=group, eval_set=[(X, y)], eval_group=[group], callbacks=[log]
    )
    values = fitted.evals_result_["valid_0"]["ndcg@10"]
    assert seen == [(k, "valid_0", seen[0][2], value) for k, value in enumerate(values)]
    stopped = port.CatBoostRanker(iterations=20, verbose=False).fit(
        X, y, group_id=np.repeat(range(5), 20), callbacks=[Stop()]
    )
    assert stopped.tree_count_ == 4
    assert port.XGBRegressor(n_estimators=3).fit(X, y, qid=np.repeat(range(5), 20)).predict(X).shape == (100,)
    with pytest.raises(InvalidInputError, match="LGBMRanker"):
        port.LGBMClassifier(n_estimators=3)


@pytest.mark.parametrize("given", [{}, {"categorical_feature": "auto"}])
def test_columns_whose_type_is_a_category_are_categories(given):
    """As in LightGBM, whose default is "auto"; also categories that are numbers, and rows of `Dataset`."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "price": rng.random(200),
            "brand": pandas.Categorical(rng.choice(["acme", "bolt", None], 200)),
            "kind": pandas.Categorical(rng.integers(5, 9, 200)),
        }
    )
    grades, sizes = (frame["brand"] == "acme") + (frame["kind"].astype(int) % 2), [10] * 20
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        named = LGBMRanker(n_estimators=5).fit(frame, grades, group=sizes, cat_features=["brand", "kind"])
        expected = named.predict(frame)
        ranker = LGBMRanker(n_estimators=5).fit(frame, grades, group=sizes, **given)
        rows = Dataset(frame, grades, group=sizes, **given)
        trained = train({"objective": "lambdarank"}, rows, 5)
    for found in (ranker, trained):
        np.testing.assert_array_equal(found.predict(frame), expected)
        assert found.categorical is None
