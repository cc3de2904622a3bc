"""Callbacks, ours and other libraries', what a fit shows of its progress, and what is asked of one fit alone."""

from __future__ import annotations

import json
import re
import time

import numpy as np
import pytest

from support.processes import run
from support.refusals import refused
from truerank import (
    AdaRank,
    CalibratedRanker,
    ListNet,
    MeasureSVM,
    ObliviousBoosting,
    PairwiseDescent,
    RankBoost,
    RankerPipeline,
    RankSVM,
    RidgeRanker,
    load_sample,
)
from truerank.core import rounds
from truerank.core.errors import InvalidInputError

XGBRanker = LGBMRanker = ObliviousBoosting


@pytest.fixture(scope="module")
def sets():
    data = load_sample()
    return [data.take_queries(range(start, start + 15)) for start in (0, 20, 40)]


@pytest.mark.parametrize(
    "ranker",
    [ObliviousBoosting(n_estimators=40, depth=2, learning_rate=0.5, patience=3),
     RankBoost(60, thresholds=10, patience=3), AdaRank(n_estimators=30, patience=2), ListNet(patience=2)],
    ids=lambda ranker: type(ranker).__name__,
)  # fmt: skip
def test_the_best_score_is_that_of_the_model_that_is_kept(ranker, sets):
    train, valid, _ = sets
    ranker.fit(train, eval_set=valid)
    measured = ranker._measure("validation_measure").tie_averaged().mean(valid.judgements(), ranker.predict(valid))
    assert ranker.best_score == pytest.approx(measured, abs=1e-12)
    assert ranker.best_score == ranker.validation_scores_.max()
    assert ranker.best_score_["valid_0"] == {ranker._measure("validation_measure").name: ranker.best_score}


def test_a_choice_of_settings_has_no_best_score_by_rounds(sets):
    chosen = RankSVM(C=[0.1, 1.0]).fit(sets[0], eval_set=sets[1])
    with pytest.raises(AttributeError, match="did not evaluate the rounds"):
        chosen.best_score


@pytest.mark.parametrize("verbose", [np.True_, np.int64(1)])
def test_numbers_of_numpy_say_how_much_is_printed(sets, capsys, verbose):
    ObliviousBoosting(n_estimators=1, verbose=verbose).fit(sets[0])
    AdaRank(n_estimators=1).fit(sets[0], verbose=verbose)
    assert len(capsys.readouterr().err.strip().splitlines()) == 2


@pytest.mark.parametrize(
    "ranker",
    [ObliviousBoosting(n_estimators=6, depth=2), AdaRank(n_estimators=6), RankBoost(n_estimators=6, thresholds=10),
     ListNet(), RankerPipeline("z-score-in-query", ObliviousBoosting(n_estimators=6, depth=2))],
    ids=lambda ranker: type(ranker).__name__,
)  # fmt: skip
def test_a_callback_hears_every_round_and_stops_the_fit(ranker, sets):
    train, valid, _ = sets
    heard = []
    ranker.fit(train, eval_set=valid, callbacks=[heard.append])
    inner = getattr(ranker, "ranker_", ranker)
    assert [info.round for info in heard] == list(range(1, len(heard) + 1))
    assert len(heard) >= 2
    if not isinstance(ranker, RankerPipeline):
        told = [info.measures["valid_0"][str(inner.measure)] for info in heard]
        np.testing.assert_array_equal(told, inner.validation_scores_[: len(told)])
    stopped = []
    ranker.fit(train, callbacks=lambda info: stopped.append(info) or info.round == 2)
    assert [info.round for info in stopped] == [1, 2]
    assert getattr(ranker, "ranker_", ranker).status_ == "stopped by a callback"
    if isinstance(ranker, ObliviousBoosting):
        assert ranker.n_iter_ == 2
        two = ObliviousBoosting(n_estimators=2, depth=2).fit(train)
        np.testing.assert_array_equal(ranker.predict(valid), two.predict(valid))


@pytest.mark.filterwarnings("ignore:.*learned nothing")  # after two rounds
@pytest.mark.parametrize("ranker", [RankSVM(1.0), RankSVM(1.0, loss="hinge"), MeasureSVM(C=10.0)])
def test_solvers_tell_how_far_they_are(ranker, sets):
    heard = []
    ranker.fit(sets[0], callbacks=[heard.append])
    assert heard
    objectives = [info.values["objective"] for info in heard]
    assert min(objectives) >= ranker.objective_ * (1 - 1e-12)
    assert all(gap >= 0 for gap in (info.values["gap"] for info in heard))
    ranker.fit(sets[0], callbacks=[lambda info: info.round == 2])
    assert ranker.n_iter_ == 2


def test_descent_and_calibration_are_heard(sets):
    heard = []
    PairwiseDescent(max_iter=1000).fit(sets[0], callbacks=[heard.append])
    assert heard[-1].round == heard[-1].of == 1000
    heard.clear()
    CalibratedRanker(AdaRank(n_estimators=2), "platt", cv=3).fit(sets[0], callbacks=[heard.append])
    assert [info.round for info in heard] == [1, 2] * 4  # three folds and the last fit


def test_what_a_callback_raises_leaves_the_ranker_as_it_was(sets):
    train, valid, _ = sets
    ranker = AdaRank(n_estimators=3).fit(train)
    before = ranker.predict(valid)

    def fails(info):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        ranker.fit(valid, callbacks=[fails])
    np.testing.assert_array_equal(ranker.predict(valid), before)
    assert rounds.tell(1) is False  # nothing listens any more


def test_scripts_of_other_libraries_run_without_their_callbacks(sets, tmp_path):
    train, valid, _ = sets
    ranker = XGBRanker(objective="rank:ndcg", n_estimators=40, max_depth=3, eta=0.3)
    ranker.fit(
        train.X, train.y, group=train.group_sizes, eval_set=[(train.X, train.y), (valid.X, valid.y)],
        eval_qid=[train.qid, valid.qid], eval_at=[3], eval_metric=["ndcg@1", "ndcg@8"], early_stopping_rounds=5,
    )  # fmt: skip
    results = ranker.evals_result()
    assert list(results) == ["validation_0", "validation_1"]
    assert list(results["validation_1"]) == ["ndcg@8", "ndcg@1", "ndcg@3"]
    watched = results["validation_1"]["ndcg@8"]
    assert int(np.argmax(watched)) == ranker.best_iteration == ranker.best_iteration_ - 1
    assert ranker.patience is None  # for that fit alone
    assert ranker.evals_result_["validation_0"]["ndcg@1"].shape == (ranker.best_iteration_,)
    ranker.save_model(tmp_path / "m.json")
    other = XGBRanker()
    other.load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(other.predict(valid.X), ranker.predict(valid.X))
    with refused(Exception, code="other-class"):
        RidgeRanker().load_model(tmp_path / "m.json")


def test_callbacks_of_other_libraries_say_what_to_write(sets):
    lgb, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    own = type("Own", (xgboost.callback.TrainingCallback,), {})
    for callback, words in (
        (lgb.reset_parameter(bagging_fraction=[0.5]), "learning_rate=…"),
        (own(), "Own: write a function of `truerank.core.rounds.Round`"),
    ):
        with pytest.raises(InvalidInputError, match=words.replace("=…", r"=\[…\]")):
            XGBRanker(n_estimators=2).fit(sets[0], callbacks=[callback])


def test_settings_of_one_fit(sets, capfd):
    train, valid, _ = sets
    ranker = AdaRank(n_estimators=30)
    ranker.fit(train, eval_set=valid, early_stopping_rounds=2, eval_metric="AP", verbose=10)
    assert ranker.get_params()["patience"] == 50
    assert ranker.validation_measure is None
    same = AdaRank(n_estimators=30, patience=2, validation_measure="AP").fit(train, eval_set=valid)
    np.testing.assert_array_equal(ranker.coef_, same.coef_)
    assert "AP" in ranker.evals_result_["valid_0"]
    for bad in (3, ["x"]):
        with refused(InvalidInputError, argument="callbacks"):
            ranker.fit(train, callbacks=bad)
    with pytest.raises(InvalidInputError, match="is empty"):
        ranker.fit(train, eval_set=valid, eval_metric=[])
    with refused(InvalidInputError, argument="eval_set"):
        ranker.fit(train, eval_set=valid, eval_metric=["AP", "RR"])


def test_weights_of_queries_given_as_weights_of_rows_are_explained(sets):
    train = sets[0]
    weight = np.arange(1.0, train.n_queries + 1)
    with refused(InvalidInputError, argument="sample_weight"):
        XGBRanker(n_estimators=1).fit(train.X, train.y, qid=train.qid, sample_weight=weight)
    with refused(InvalidInputError, argument="sample_weight"):
        AdaRank().fit(train.X, train.y, qid=train.qid, sample_weight=weight)


def test_a_fit_of_some_seconds_shows_how_far_it_is(monkeypatch):
    monkeypatch.setattr(rounds, "FIRST", 0.2)
    lines = []
    with rounds.shown_progress(lines.append), rounds.fitting("CalibratedRanker"), rounds.fitting("AdaRank"):
        rounds.tell(7, 10, loss=0.5)
        for _ in range(2_000):
            if any("round" in line for line in lines):  # a busy machine may be told of the round after the first line
                break
            time.sleep(0.05)
    assert lines[-1].startswith("truerank: fitting AdaRank in CalibratedRanker: round 7 of 10, loss 0.5 (")


def test_the_command_line_shows_it(tmp_path):
    """In a process of its own, whose fit waits until how far it is was printed."""
    script = (
        "import sys, threading, truerank.rankers.baselines as b\n"
        "from truerank.cli import main\n"
        "shown, fit, write = threading.Event(), b.SingleFeature._fit, sys.stderr.write\n"
        "sys.stderr.write = lambda text: (write(text), 'fitting' in text and shown.set())[0]\n"
        "b.SingleFeature._fit = lambda *given: (shown.wait(100), fit(*given))[1]\n"
        "main(['sample', sys.argv[1]])\n"
        "main(['train', sys.argv[1] + '/test.txt.gz', '--ranker', 'single-feature', '--model', sys.argv[1] + '/m'])\n"
    )
    done = run(script, str(tmp_path))
    assert re.search(rb"truerank: fitting SingleFeature \(\d+ s\)", done.stderr)
    assert json.loads((tmp_path / "m").read_text())["format"] == "truerank-model"


def test_the_last_round_of_a_stopped_fit_is_printed(sets, capsys):
    ranker = ObliviousBoosting("constant", n_estimators=100)
    ranker.fit(sets[0], callbacks=[lambda info: info.round == 7], verbose=50)
    lines = [line for line in capsys.readouterr().err.splitlines() if "round" in line]
    assert len(lines) == 1
    assert "round 7 of 100" in lines[0]
