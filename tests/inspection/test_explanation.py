"""`explain`: contributions that add up, for every ranker; changes that do what they say; the command."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from support.refusals import refused
from truerank import RankingData, load_sample, save_model, write_letor
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.inspection.explanation import _exchange_game, explain, row_contributions
from truerank.inspection.importance import permutation_importance, removal_importance
from truerank.models.registry import RANKERS, ranker_class

SMALL = {
    "oblivious-boosting": {"n_estimators": 5, "depth": 3},
    "rank-boost": {"n_estimators": 8},
    "adarank": {"n_estimators": 8},
    "measure-svm": {"rel": 1, "C": 0.01},
    "pointwise-svm": {"rel": 1},
    "pairwise-descent": {"n_steps": 2000},
}


@pytest.fixture(scope="module")
def data():
    return load_sample().take_queries(np.arange(12))


def make(name):
    cls = ranker_class(name)
    known = cls().get_params()
    return cls(**{key: value for key, value in SMALL.get(name, {}).items() if key in known})


@pytest.mark.parametrize("name", list(RANKERS))
@pytest.mark.filterwarnings("ignore")
def test_contributions_add_up(data, name):
    ranker = make(name).fit(data)
    rng = np.random.default_rng(0)
    for query in range(3):
        size = int(np.diff(data.offsets)[query])
        i, j = rng.choice(size, 2, replace=False) + int(data.offsets[query])
        result = explain(ranker, data, above=int(i), below=int(j), reference=data.X[:300])
        assert abs(result.contributions.sum() - result.difference) < 1e-9
        assert len(result.contributions) == data.n_features


def test_the_steps_of_rank_boost_add_up_by_document_and_by_pair(data):
    X = data.X.astype(np.float64)
    X[::7, 2] = np.nan
    data = RankingData.from_grouped(X, data.y, data.offsets, data.query_ids)
    ranker = make("rank-boost").fit(data)
    stop = int(data.offsets[2])
    parts = row_contributions(ranker, X[:stop], X)
    np.testing.assert_allclose(parts.sum(axis=1), ranker.predict(data)[:stop], atol=1e-12)
    result = explain(ranker, data, above=0, below=1)
    np.testing.assert_allclose(result.contributions, parts[0] - parts[1], atol=1e-12)
    assert "steps" in result.method
    # The same as the exchange of values, which knows nothing of steps.
    differing = np.flatnonzero((X[0] != X[1]) & ~(np.isnan(X[0]) & np.isnan(X[1])))
    np.testing.assert_allclose(
        _exchange_game(ranker.predict, False, X[:2], 0, 1, differing), result.contributions[differing], atol=1e-9
    )


def test_defaults_and_names(data):
    ranker = make("ridge").fit(data)
    query = data.query_ids[1]
    result = explain(ranker, data, query=query)
    assert result.ranks[0] == 1
    assert result.ranks[1] > 1
    same = explain(ranker, data, query=str(query), above=result.above, below=result.below)
    assert same.difference == result.difference
    assert result.query == str(query)
    assert "difference" in str(result)
    assert result._repr_html_().count("<table") == 2


def test_a_change_is_enough(data):
    ranker = make("rank-svm").fit(data)
    result = explain(ranker, data, query=data.query_ids[0])
    assert result.changes
    for change in result.changes:
        assert change.score > result.scores[0]
    shares = [change.share for change in result.changes]
    assert shares == sorted(shares)


def test_what_belongs_to_the_query_is_no_change_of_a_document():
    class Sum:
        def predict(self, X):
            return X.sum(axis=1)

    X = np.array([[3.0, 1.0, 0.0], [1.0, 1.0, 0.0], [2.0, 9.0, 0.0], [4.0, 9.0, 5.0]])
    data = RankingData(X, [1, 0, 0, 1], [1, 1, 2, 2], feature_names=["own", "of the query", "rare"])
    changes = explain(Sum(), data, query=1, above=0, below=1).changes
    assert [(change.feature, change.needed) for change in changes] == [("rare", 5.0), ("own", 4.0)]


def test_the_exchange_of_two_documents_in_the_measure():
    data = RankingData([[3.0], [2.0], [1.0]], [0, 0, 1], doc_ids=["a", "b", "c"])
    ranker = ranker_class("single-feature")().fit(RankingData([[2.0], [1.0]], [1, 0]))
    result = explain(ranker, data, query=0, above="a", below="c", measure="RR")
    assert (result.measure_now, result.measure_swapped) == (pytest.approx(1 / 3), 1.0)


def test_drawn_orders_agree_with_enumeration():
    class Product:
        def predict(self, X):
            return X[:, 0] * X[:, 1] + X[:, 2] ** 2 + X.sum(axis=1)

    X = np.vstack([np.arange(1.0, 12.0), np.arange(12.0)[1:][::-1]])
    few = _exchange_game(Product().predict, False, X, 0, 1, np.arange(4))
    mixed = X[1].copy()
    mixed[:4] = X[0, :4]
    assert few.sum() == pytest.approx(Product().predict(mixed[None])[0] - Product().predict(X[1:])[0])
    many = _exchange_game(Product().predict, False, X, 0, 1, np.arange(11))
    score = Product().predict(X)
    assert many.sum() == pytest.approx(score[0] - score[1])
    # The product of features 0 and 1 is the only interaction: each of the others has its own difference.
    own = (X[0] - X[1])[3:]
    np.testing.assert_allclose(many[3:], own, atol=1e-9)


def test_pipelines_that_look_at_the_query(data):
    import sklearn
    from sklearn.pipeline import make_pipeline

    from truerank import RidgeRanker, ZScoreInQuery

    pipeline = make_pipeline(ZScoreInQuery(), RidgeRanker())
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline.fit(data.X[:, :4], data.y, qid=data.qid)
        few = RankingData.from_grouped(data.X[:, :4].copy(), data.y, data.offsets, data.query_ids)
        result = explain(pipeline, few, query=few.query_ids[0], above=0, below=1)
    assert abs(result.contributions.sum() - result.difference) < 1e-9


def test_what_is_refused(data):
    ranker = make("ridge").fit(data)
    with refused(InvalidInputError, argument="query"):
        explain(ranker, data, query="no such query")
    with refused(InvalidInputError, code="different-queries"):
        explain(ranker, data, above=0, below=data.n_rows - 1)
    with refused(InvalidInputError, argument="query"):
        explain(ranker, data)
    with refused(InvalidInputError, argument="above"):
        explain(ranker, data, above=0, below=0)
    with refused(InvalidInputError, code="no-row"):
        explain(ranker, data, above=-1)


def test_a_document_that_stands_twice_is_not_guessed():
    twice = RankingData([[1.0], [2.0], [3.0]], [1, 0, 2], [1, 1, 1], doc_ids=["x", "x", "y"])
    ranker = ranker_class("single-feature")(0).fit(twice)
    with refused(InvalidInputError, argument="document"):
        explain(ranker, twice, query=1, above="y", below="x")
    np.testing.assert_allclose(explain(ranker, twice, above=2, below=0).contributions, [2.0])


def test_the_command(data, tmp_path, capsys):
    ranker = make("ridge").fit(data)
    save_model(ranker, tmp_path / "model.json")
    write_letor(data, tmp_path / "data.txt")
    query = str(data.query_ids[0])
    assert main(["explain", str(tmp_path / "model.json"), str(tmp_path / "data.txt"), "--query", query, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    total = sum(item["contribution"] for item in found["contributions"])
    assert total == pytest.approx(found["difference"], abs=1e-9)
    above, below = found["above"]["document"], found["below"]["document"]
    arguments = ["--query", query, "--above", above, "--below", below]
    assert main(["explain", str(tmp_path / "model.json"), str(tmp_path / "data.txt"), *arguments]) == 0
    assert "difference" in capsys.readouterr().out
    assert main(["explain", str(tmp_path / "model.json"), str(tmp_path / "data.txt"), "--query", "nothing"]) == 1


def test_rows_of_the_command_count_from_one(data, tmp_path, capsys):
    save_model(make("ridge").fit(data), tmp_path / "model.json")
    write_letor(data.replaced(doc_ids=None), tmp_path / "data.txt")
    command = ["explain", str(tmp_path / "model.json"), str(tmp_path / "data.txt"), "--query", str(data.query_ids[0])]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = [found[one]["document"].removeprefix("row ") for one in ("above", "below")]
    assert main([*command, "--json", "--above", rows[0], "--below", rows[1]]) == 0
    assert json.loads(capsys.readouterr().out) == found


@pytest.mark.filterwarnings("ignore:.*used for training")
def test_queries_that_train_without_a_feature_are_left_out(data, tmp_path, capsys):
    model, train, rows = (str(tmp_path / name) for name in ("model.json", "train.txt", "test.txt"))
    parts = np.array_split(np.arange(data.n_queries), 3)
    save_model(make("ridge").fit(data.take_queries(parts[0])), model)
    write_letor(data.take_queries(np.append(parts[1], parts[2][:2])), train)
    write_letor(data.take_queries(parts[2]), rows)
    assert main(["explain", model, rows, "--measure", "AP", "--train", train]) == 0
    count = len(parts[2])
    text = capsys.readouterr().out
    assert f"{train}: 2 of {count} queries were used for training" in text
    assert "these queries are left out" in text
    assert f"AP (ranklib) on {count - 2} queries; p by random signs" in text
    assert main(["explain", model, rows, "--measure", "AP", "--train", rows]) == 1
    assert f"{count} of {count} queries were used for training" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*used for training")
def test_the_command_says_which_features_matter(data, tmp_path, capsys):
    ranker, model, rows = make("ridge").fit(data), str(tmp_path / "model.json"), str(tmp_path / "data.txt")
    save_model(ranker, model)
    write_letor(data, rows)
    assert (
        main(["explain", model, rows, "--measure", "AP", "--train", rows, "--training-queries", "keep", "--json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert (found["measure"], found["own"], len(found["features"])) == (
        "AP (ranklib)",
        "weight",
        data.n_features,
    )
    losses = [one["shuffled"]["loss"] for one in found["features"]]
    assert losses == sorted(losses, reverse=True)
    expected = permutation_importance(ranker, data, measure="AP", random_state=0).to_rows()
    assert losses == [row[1] for row in expected]
    assert [one["shuffled"]["p_adjusted"] for one in found["features"]] == [row[4] for row in expected]
    gone = {name: losses for name, *losses, _ in removal_importance(ranker, data, data, measure="AP").to_rows()}
    assert {one["feature"]: list(one["gone"].values()) for one in found["features"]} == gone
    assert main(["explain", model, rows, "--most", "2", "--training-queries", "keep"]) == 0
    text = capsys.readouterr().out
    assert f"and {data.n_features - 2} more" in text
    assert "loss, shuffled" in text
    assert re.search(r"  0\.\d{4}  \[-?0\.\d{4}, 0\.\d{4}\]  ", text)
    assert f"corrected over {data.n_features} features (step-down max-T)" in text


def test_options_of_one_query_and_of_all_do_not_mix(data, tmp_path):
    ranker, model, rows = make("ridge").fit(data), str(tmp_path / "model.json"), str(tmp_path / "data.txt")
    save_model(ranker, model)
    write_letor(data, rows)
    for wrong in (["--above", "1"], ["--query", "1", "--train", rows]):
        assert main(["explain", model, rows, *wrong]) == 2
