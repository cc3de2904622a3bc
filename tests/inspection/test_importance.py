import numpy as np
import pytest

import truerank
from support.refusals import refused
from truerank import CalibratedRanker, ObliviousBoosting, RandomRanker, RankerPipeline, RankingData, RidgeRanker
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.inspection.importance import (
    partial_dependence,
    permutation_importance,
    removal_importance,
)
from truerank.rankers.own_importance import own_importance

pytestmark = pytest.mark.filterwarnings("ignore:.*used for training")


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 5))
    X[:, 4] = np.repeat(rng.standard_normal(30), 20)  # says something of the query, nothing of its documents
    y = np.digitize(2 * X[:, 1] + X[:, 3] + 2 * X[:, 4], [0, 2, 4]).astype(float)
    return RankingData(X, y, np.repeat(np.arange(30), 20))


def test_gains_find_the_features_that_matter(planted):
    ranker = ObliviousBoosting("constant", n_estimators=30, depth=3).fit(planted)
    assert ranker.feature_importances_.sum() == pytest.approx(1)
    assert set(np.argsort(-ranker.feature_importances_)[:3]) == {1, 3, 4}


def test_gains_add_up_to_the_error_that_each_tree_takes_away(planted):
    ranker = ObliviousBoosting("constant", n_estimators=1, depth=3, learning_rate=1.0).fit(planted)
    y = planted.y
    before, after = ((y - y.mean()) ** 2).sum(), ((y - ranker.predict(planted)) ** 2).sum()
    assert ranker.tree_gains_.sum() == pytest.approx(before - after)


def test_shuffling_within_queries_ignores_what_is_constant_in_them(planted):
    ranker = ObliviousBoosting("constant", n_estimators=30, depth=3).fit(planted)
    kept = planted.X.copy()
    loss = np.asarray(ranker.permutation_importance(planted, random_state=1))
    np.testing.assert_array_equal(planted.X, kept)
    assert loss[4] == 0
    assert np.argmax(loss) == 1
    assert loss[3] > 5 * abs(loss[0])
    np.testing.assert_array_equal(loss, np.asarray(permutation_importance(ranker, planted, random_state=1)))


def test_intervals_hold_the_mean_and_rows_may_be_arrays(planted):
    ranker = ObliviousBoosting("constant", n_estimators=10, depth=3).fit(planted)
    found = ranker.permutation_importance(planted, random_state=1)
    used = found.importances_mean != 0
    np.testing.assert_array_equal(used, [False, True, False, True, False])
    assert ((found.low < found.importances_mean) & (found.importances_mean < found.high))[used].all()
    assert np.isnan(found.low[~used]).all()  # a feature that no tree uses has no interval
    assert found.low[1] > 0
    same = ranker.permutation_importance(planted.X, planted.y, qid=planted.qid, random_state=1)
    np.testing.assert_array_equal(found.importances, same.importances)
    assert found.to_rows()[0][0] == "feature 2"
    assert ((found.p_adjusted >= 0.05) | (found.low > 0) | (found.high < 0)).all()


def test_chance_is_no_importance(planted):
    """Features 1 and 3 are noise, feature 5 describes the query: none is shown, whatever the fit made of them."""
    held_out = RankingData(planted.X[::-1], planted.y[::-1], planted.qid[::-1])
    found = permutation_importance(RidgeRanker().fit(planted), held_out, random_state=2)
    assert found.shown == ["feature 2", "feature 4"]
    above = found.importances_mean > found.noise_floor
    np.testing.assert_array_equal(above, found.p_adjusted < 0.05)
    assert (found.p_adjusted[4], found.noise_floor[4], found.n_queries) == (1.0, 0.0, 30)
    assert "corrected over 5 features (step-down max-T)" in str(found)
    assert str(found).endswith("Significant loss at 0.05: feature 2, feature 4")
    one = permutation_importance(RidgeRanker().fit(planted), planted.take_queries([0]), random_state=2)
    assert (one.p_adjusted == 1).all()
    assert np.isnan(one.low).all()


def test_losses_are_shown_by_name_the_largest_first(planted):
    found = permutation_importance(RidgeRanker().fit(planted), planted, measure="RR", repeats=1, random_state=1)
    lines = str(found).partition("\n\n")[2].splitlines()
    assert lines[0].split("  ")[0] == "feature"
    assert "loss of RR (ranklib)" in lines[0]
    assert lines[2].startswith("feature 2 ")
    assert found._repr_html_().count("<tr>") == 6
    assert found.to_markdown().splitlines()[0].startswith("| feature | loss of ")
    assert "tabular" in found.to_latex()


def test_what_a_model_says_of_its_features(planted):
    ridge = RidgeRanker().fit(planted)
    kind, values = own_importance(ridge)
    assert (kind, next(iter(values))) == ("weight", "feature 2")
    assert values["feature 2"] == ridge.coef_[1]
    assert own_importance(CalibratedRanker(RidgeRanker(), "platt").fit(planted))[0] == "weight"
    kind, values = own_importance(RankerPipeline(["z-score-in-query"], ObliviousBoosting(n_estimators=3)).fit(planted))
    assert kind == "share in the model"
    assert sum(values.values()) == pytest.approx(1)
    for silent in (RidgeRanker(), ObliviousBoosting(), object()):
        assert own_importance(silent) is None


def test_a_fitted_ranker_shows_its_weights_in_a_notebook(planted):
    fitted = RidgeRanker().fit(planted)
    shown = fitted._repr_mimebundle_()
    assert shown["text/plain"] == repr(fitted)
    assert f"{fitted.coef_[1]:.4f}" in shown["text/html"]
    for without in (RidgeRanker(), RandomRanker().fit(planted)):
        assert "<td" not in without._repr_html_().rpartition("</style>")[2].rpartition("</div>")[2]
        assert "RidgeRanker" in without._repr_html_() or "RandomRanker" in without._repr_html_()


def test_any_predictor_and_any_direction(planted):
    class Plain:
        def predict(self, X):
            return X[:, 1]

    found = permutation_importance(Plain(), planted, measure="pairs(3,0)", random_state=0)
    assert np.argmax(found.importances_mean) == 1
    assert found.importances_mean[1] > 0
    assert not found.importances_mean[[0, 2, 3, 4]].any()


def test_a_feature_that_is_gone(planted):
    train, test = planted.take_queries(np.arange(20)), planted.take_queries(np.arange(20, 30))
    found = removal_importance(ObliviousBoosting("constant", n_estimators=15, depth=3), train, test)
    assert np.argmax(found.importances_mean) == 1
    with refused(ValueError, code="one-feature"):
        removal_importance(ObliviousBoosting(), RankingData([[1.0], [2.0]], [0, 1]), RankingData([[1.0]], [1]))


def test_partial_dependence_of_a_line():
    data = RankingData(np.arange(12.0).reshape(6, 2), [0, 1, 2, 0, 1, 2], feature_names=["a", "b"])

    class Line:
        def predict(self, X):
            return 3 * X[:, 0] - X[:, 1]

    values, scores = partial_dependence(Line(), data, "a", points=5)
    np.testing.assert_allclose(np.diff(scores) / np.diff(values), 3)
    with refused(ValueError, argument="feature"):
        partial_dependence(Line(), data, "c")
    for wrong in (2, -1, 1.0, True, None):
        with refused(ValueError, argument="feature"):
            partial_dependence(Line(), data, wrong)


@pytest.mark.filterwarnings("default:.*used for training")
def test_importance_by_removal_names_the_queries_of_both_files(planted):
    train, test = planted.take_queries(np.arange(20)), planted.take_queries(np.arange(15, 30))
    with pytest.warns(TruerankWarning, match="5 of 15 queries were used for training"):
        found = removal_importance(RidgeRanker(), train, test)
    assert found.training_queries.recognised == 5


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("data", lambda frame: truerank.permutation_importance(truerank.RidgeRanker(), frame)),
        ("train", lambda frame: truerank.removal_importance(truerank.RidgeRanker(), frame, frame)),
        ("data", lambda frame: truerank.partial_dependence(truerank.RidgeRanker(), frame, "a")),
        ("data", lambda frame: truerank.ranking_stability(truerank.RidgeRanker(), frame)),
        ("data", lambda frame: truerank.distil(frame, [1.0, 2.0])),
        ("data", lambda frame: truerank.vector_features(frame, {})),
    ],
)
def test_an_array_is_answered_with_how_to_make_rows_of_it(argument, call):
    with refused(InvalidInputError, argument=argument):
        call(np.array([[1.0], [2.0]]))
