"""Settings are chosen by held-out queries, and an interrupted search goes on to the same result."""

from __future__ import annotations

import json

import numpy as np
import pytest

from support.refusals import refused
from truerank import AdaRank, ObliviousBoosting, RankerPipeline, RidgeRanker, load_sample, tune
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.data.splits import query_folds
from truerank.inspection.tuning import Between
from truerank.measures import parse_measure


@pytest.fixture(scope="module")
def data():
    return load_sample().take_queries(range(40))


def test_the_best_mean_over_the_folds_is_kept(data):
    alphas = [1e-3, 10.0, 1e7]
    found = tune(RidgeRanker(), data, {"alpha": alphas}, measure="AP", cv=4, random_state=5)
    measure = parse_measure("AP").tie_averaged()
    means = []
    for alpha in alphas:
        values = []
        for part in query_folds(40, 4, random_state=5, query_ids=data.query_ids):
            ranker = RidgeRanker(alpha=alpha).fit(data.take_queries(np.setdiff1d(np.arange(40), part)))
            held = data.take_queries(part)
            values.append(measure.mean(held.judgements(), ranker.predict(held)))
        means.append(np.mean(values))
    np.testing.assert_allclose([trial["mean"] for trial in found.trials], means, rtol=1e-12)
    assert found.best_params == {"alpha": alphas[int(np.argmax(means))]}
    np.testing.assert_array_equal(found.ranker.predict(data), RidgeRanker(**found.best_params).fit(data).predict(data))


def test_a_measure_of_errors_is_made_small(data):
    found = tune(RidgeRanker(), data, {"alpha": [1.0, 1e9]}, measure="pairs(1,0)", cv=3, refit=False)
    assert found.best_value == min(trial["mean"] for trial in found.trials)


def test_a_search_goes_on_after_an_interrupt(data, tmp_path):
    pytest.importorskip("optuna")
    space = {"alpha": Between(1e-3, 1e5, log=True), "scale": ["auto", "never"]}

    def run(name, watch=None):
        return tune(RidgeRanker, data, space, trials=6, cv=3, state=tmp_path / name, watch=watch, refit=False)

    whole = run("whole.jsonl")

    def stop(trial):
        if trial["number"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run("parts.jsonl", stop)
    with open(tmp_path / "parts.jsonl", "a") as stream:
        stream.write('{"number": 3, "par')  # a kill in the middle of a line
    again = run("parts.jsonl")
    assert again.trials == whole.trials
    assert (tmp_path / "parts.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text()
    seen = []
    run("parts.jsonl", seen.append)
    assert seen == []
    with refused(InvalidInputError, code="other-trials"):
        tune(RidgeRanker, data, space, trials=6, cv=4, state=tmp_path / "parts.jsonl")
    (tmp_path / "other").write_bytes(b"\x1f\x8b\xff")
    with refused(DataFileError, code="other-lines", line=1):
        tune(RidgeRanker, data, space, trials=6, cv=3, state=tmp_path / "other")
    (tmp_path / "other.jsonl").write_text("[1]\n")
    with refused(DataFileError, code="not-trials"):
        run("other.jsonl")


def test_folds_at_once_change_nothing(data):
    one, two = (
        tune(RidgeRanker(), data, {"alpha": [0.1, 100.0]}, cv=4, jobs=jobs, refit=False).trials for jobs in (1, 2)
    )
    assert one == two


def test_rounds_of_early_stopping_are_kept_for_the_last_fit(data):
    ranker = ObliviousBoosting("constant", depth=2, n_estimators=30, patience=3, learning_rate=0.5)
    found = tune(ranker, data, {"depth": [2]}, cv=3)
    assert found.trials[0]["rounds"] == found.best_params["n_estimators"] == found.ranker.n_iter_


def test_settings_that_fail_do_not_win(data):
    found = tune(RidgeRanker(), data, {"alpha": [-1.0, 1.0]}, cv=3, refit=False)
    assert found.best_params == {"alpha": 1.0}
    assert "alpha" in found.trials[0]["error"]
    with refused(InvalidInputError, code="nothing-fitted"):
        tune(RidgeRanker(), data, {"alpha": [-1.0]}, cv=3)
    with refused(InvalidInputError, argument="space"):
        tune(RidgeRanker(), data, {})
    with refused(InvalidInputError, argument="data"):
        tune(RidgeRanker(), [(data.X, data)], {"alpha": [1.0]})


def test_a_tuple_of_names_is_a_list_and_of_numbers_a_range(data):
    assert len(tune(RidgeRanker(), data, {"scale": ("auto", "never")}, cv=3, refit=False).trials) == 2
    pytest.importorskip("optuna")
    found = tune(RidgeRanker(), data, {"alpha": (1.0, 2.0)}, trials=1, cv=3, refit=False)
    assert 1.0 <= found.best_params["alpha"] <= 2.0
    trees = ObliviousBoosting("constant", n_estimators=1, depth=1)
    found = tune(trees, data, {"clip": (False, True)}, cv=2, refit=False)
    assert [trial["params"] for trial in found.trials] == [{"clip": False}, {"clip": True}]


def test_the_data_of_a_search_are_told_apart_when_sparse_too(data, tmp_path):
    from scipy import sparse

    X = sparse.csr_matrix(np.eye(6)[np.arange(data.n_rows) % 6])
    one, other = (data.replaced(X=m, feature_names=None) for m in (X, X[:, ::-1].tocsr()))
    tune(RidgeRanker(), one, {"alpha": [1.0]}, cv=3, state=tmp_path / "s.jsonl", refit=False)
    with refused(InvalidInputError, code="other-trials"):
        tune(RidgeRanker(), other, {"alpha": [1.0]}, cv=3, state=tmp_path / "s.jsonl", refit=False)


def test_a_search_is_of_its_weights_and_of_every_parameter(data, tmp_path):
    def search(data, signs):
        trees = ObliviousBoosting("constant", n_estimators=1, depth=1, monotone=signs)
        tune(trees, data, {"alpha": [1.0]}, cv=2, state=tmp_path / "s.jsonl", refit=False)

    signs = [0] * data.n_features
    search(data, signs)
    search(data, signs)
    weighed = data.replaced(query_weight=np.arange(1.0, 1 + data.n_queries))
    for asked in (
        (weighed, signs),
        (data.with_sample_weight(np.full(data.n_rows, 2.0)), signs),
        (data, [*signs[1:], 1]),
    ):
        with refused(InvalidInputError, code="other-trials"):
            search(*asked)


def test_pipelines_and_rankers_of_others(data):
    found = tune(lambda s: RankerPipeline("z-score-in-query", RidgeRanker(**s)), data, {"alpha": [1.0, 10.0]}, cv=3)
    assert isinstance(found.ranker, RankerPipeline)
    lightgbm = pytest.importorskip("lightgbm")
    theirs = lightgbm.LGBMRanker(n_estimators=3, num_leaves=4, verbose=-1, n_jobs=1)
    assert tune(theirs, data, {"num_leaves": [3, 7]}, cv=3).ranker.n_estimators == 3


def test_command_tunes_and_keeps_the_model(tmp_path, capsys):
    from truerank.cli import main
    from truerank.io.letor.write import write_letor
    from truerank.models.model_file import load_model

    data = load_sample().take_queries(range(30))
    write_letor(data, tmp_path / "all.txt")
    words = ["tune", str(tmp_path / "all.txt"), "--ranker", "ridge", "--space", "alpha=[1,1000]", "--cv", "3",
             "--model", str(tmp_path / "m.json"), "--state", str(tmp_path / "t.jsonl")]  # fmt: skip
    assert main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert load_model(tmp_path / "m.json").alpha == report["params"]["alpha"]
    assert [trial["params"] for trial in report["trials"]] == [{"alpha": 1}, {"alpha": 1000}]
    assert (report["measure"], report["ties"]) == ("nDCG@10", "average")
    assert main([*words, "--measure", "ndcg@10"]) == 0
    said = capsys.readouterr().out
    assert "best of 2 settings" in said
    assert (said.count("ndcg@10"), said.count("average")) == (2, 1)  # as it was typed, and the rule for ties once
    assert main([*words[:4], "--space", "alhpa=[1]", "--model", str(tmp_path / "m.json")]) == 2
    assert "'alpha'" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*were not adjacent")
def test_out_of_fold_scores_are_in_the_order_of_the_file(tmp_path, capsys):
    from truerank.cli import main
    from truerank.io.letor.write import write_letor

    data = load_sample().take_queries(range(12))
    write_letor(data, tmp_path / "all.txt")
    lines = (tmp_path / "all.txt").read_text().splitlines(keepends=True)
    (tmp_path / "mixed.txt").write_text("".join(lines[::2] + lines[1::2]))  # every query in two pieces
    words = ["cross-validate", str(tmp_path / "mixed.txt"), "--ranker", "ridge", "--cv", "3", "--scores"]
    assert main([*words, str(tmp_path / "s.txt"), "--json"]) == 0
    means = json.loads(capsys.readouterr().out)
    assert main(["evaluate", "--data", str(tmp_path / "mixed.txt"), "--scores", str(tmp_path / "s.txt"), "--measures",
                 "AP", "--json"]) == 0  # fmt: skip
    whole = json.loads(capsys.readouterr().out)["measures"]["AP"]["mean"]
    assert whole == pytest.approx(np.mean(means["fold_means"]["ridge"]["AP"]))


def test_adarank_is_tuned_too(data):
    assert tune(AdaRank(n_estimators=5), data, {"update": ["paper", "adaboost"]}, cv=3).ranker.n_iter_ <= 5


def test_of_more_trials_in_the_state_than_asked_for_the_first_count(tmp_path):
    pytest.importorskip("optuna")
    data = load_sample().take_queries(range(20))
    space, state = {"alpha": Between(1e-3, 1e9, log=True)}, tmp_path / "state.jsonl"
    settings = {"cv": 3, "random_state": 0, "refit": False}
    six = tune(RidgeRanker, data, space, trials=6, state=state, **settings)
    two = tune(RidgeRanker, data, space, trials=2, **settings)
    assert six.trials[:2] == two.trials
    kept = state.read_text()
    again = tune(RidgeRanker, data, space, trials=2, state=state, **settings)
    assert (again.trials, again.best_params) == (two.trials, two.best_params)
    assert state.read_text() == kept
