"""Models that go on learning from other data, and the test that decides whether they replace the one in production."""

from __future__ import annotations

import json

import numpy as np
import pytest

from support.refusals import refused
from truerank import (
    AdaRank,
    CalibratedRanker,
    FuzzyLeaves,
    ObliviousBoosting,
    PolynomialLeaves,
    RankerPipeline,
    RankSVM,
    RidgeRanker,
    SingleFeature,
    compare,
    load_model,
    load_sample,
    save_model,
    write_letor,
)
from truerank.cli import main
from truerank.cli import retrain as commands
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.inspection.retraining import can_continue, decide, digest, retrain, trained_again
from truerank.significance.comparison_text import CHOSEN
from truerank.significance.history import History, level_of

LEAVES = {
    "constant": "constant",
    "fuzzy": "fuzzy",
    "fuzzy search": FuzzyLeaves(search=True, ties="near"),
    "polynomial": PolynomialLeaves(smoothing=50.0),
}


@pytest.fixture(scope="module")
def weeks():
    sample = load_sample()
    return [sample.take_queries(range(start, stop)) for start, stop in ((0, 50), (50, 120), (120, 180))]


def squared_error(ranker, data):
    return float(np.mean((data.y - ranker.predict(data)) ** 2))


@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
@pytest.mark.parametrize("start", ["constant", "linear"])
def test_a_continued_model_keeps_its_trees_and_fits_the_new_data_better(weeks, leaves, start, tmp_path):
    old, new, later = weeks
    model = ObliviousBoosting(leaves, n_estimators=15, depth=3, start=start).fit(old)
    before = model.predict(later)
    more = ObliviousBoosting(leaves, n_estimators=10, depth=3, start=start).fit(new, init_model=model)
    assert more.n_iter_ == 25
    for name in ("tree_features_", "tree_borders_", "tree_values_"):
        np.testing.assert_array_equal(getattr(more, name)[:15], getattr(model, name))
    stages = list(more.staged_predict(later))
    np.testing.assert_allclose(stages[14], before, rtol=0, atol=1e-12)  # the old trees score as they did
    np.testing.assert_array_equal(model.predict(later), before)
    assert squared_error(more, new) < squared_error(model, new)
    change = more.history_["objective"]
    assert np.isnan(change[:14]).all()
    assert change[-1] < 0
    save_model(more, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(later), more.predict(later))


def test_what_is_kept_of_the_objective_is_what_the_trees_gained_on_the_new_data(weeks):
    """Fuzzy borders of new trees stand where the old tables know a place: training and prediction agree."""
    old, new, _ = weeks
    model = ObliviousBoosting(n_estimators=15, depth=3).fit(old)
    more = ObliviousBoosting(n_estimators=10, depth=3).fit(new, init_model=model)
    start = 0.5 * np.sum((new.y - model.predict(new)) ** 2)
    end = 0.5 * np.sum((new.y - more.predict(new)) ** 2)
    assert more.history_["objective"][-1] == pytest.approx(end - start, rel=1e-9)


def test_the_data_may_be_of_another_size_and_range(weeks):
    old, new, later = weeks
    wide = RankingData.from_grouped(
        np.concatenate([new.X * 3.0 - 1.0, new.X]), np.concatenate([new.y, new.y]),
        np.concatenate([new.offsets, new.offsets[1:] + new.n_rows]), feature_names=new.feature_names,
    )  # fmt: skip
    for data in (wide, new.take_queries(range(3))):
        for leaves in ("constant", "fuzzy", FuzzyLeaves(search=True)):
            model = ObliviousBoosting(leaves, n_estimators=5, depth=3, feature_fraction=0.3).fit(old)
            more = ObliviousBoosting(leaves, n_estimators=5, depth=3).fit(data, init_model=model)
            assert np.isfinite(more.predict(later)).all()
            assert squared_error(more, data) < squared_error(model, data)


def test_validation_queries_stop_a_continued_fit(weeks):
    old, new, later = weeks
    model = ObliviousBoosting("constant", n_estimators=5, depth=3).fit(old)
    more = ObliviousBoosting("constant", n_estimators=60, depth=3, patience=3).fit(new, eval_set=later, xgb_model=model)
    watched = more.validation_scores_
    assert len(watched) < 65
    assert more.n_iter_ == int(np.argmax(watched)) + 1
    np.testing.assert_allclose(watched[4], model.set_params(measure="nDCG@10").score(later), atol=0.02)


def test_categories_keep_their_meaning(weeks):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 400
    brand = rng.choice(["a", "b", "c", "d"], n)
    y = (np.isin(brand, ["a", "c"]) & (rng.random(n) < 0.8)).astype(float)
    qid = np.repeat(np.arange(40), 10)
    frame = pandas.DataFrame({"brand": brand, "noise": rng.random(n)})
    model = ObliviousBoosting("constant", n_estimators=5, categorical=["brand"]).fit(frame, y, qid=qid)
    fewer = frame.assign(brand=np.where(brand == "a", "zz", brand))[["brand", "noise"]]  # other names, other numbers
    more = ObliviousBoosting("constant", n_estimators=3, categorical=["brand"]).fit(fewer, y, qid=qid, init_model=model)
    assert more.category_names_ == model.category_names_
    np.testing.assert_array_equal(more.category_statistics_, model.category_statistics_)
    assert np.isfinite(more.predict(frame)).all()
    np.testing.assert_array_equal(list(more.staged_predict(frame))[4], model.predict(frame))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"depth": 4}, {"code": "other-depth"}),
        ({"leaves": "fuzzy"}, {"code": "other-leaves"}),
        ({"start": "linear"}, {"code": "other-start"}),
        ({"categorical": [0]}, {"code": "categories"}),
    ],
)
def test_what_does_not_go_on_from_a_model_is_said(weeks, given, words):
    model = ObliviousBoosting("constant", n_estimators=2, depth=3).fit(weeks[0])
    with refused(InvalidInputError, **words):
        ObliviousBoosting(**({"leaves": "constant", "depth": 3} | given)).fit(weeks[1], init_model=model)


def test_init_model_must_be_a_fitted_model_of_these_columns(weeks):
    for wrong in (3, RidgeRanker(), ObliviousBoosting()):
        with refused(InvalidInputError, argument="init_model"):
            ObliviousBoosting().fit(weeks[1], init_model=wrong)
    with pytest.raises(FileNotFoundError):
        ObliviousBoosting().fit(weeks[1], init_model="absent.json")
    model = ObliviousBoosting(n_estimators=2).fit(weeks[0])
    other = RankingData(weeks[1].X[:, ::-1], weeks[1].y, weeks[1].qid, feature_names=weeks[1].feature_names[::-1])
    with refused(InvalidInputError, code="feature-names"):
        ObliviousBoosting().fit(other, init_model=model)
    with refused(InvalidInputError, argument="init_model"):
        RidgeRanker().fit(weeks[1], init_model=model)


def test_a_better_model_is_promoted_and_a_worse_one_is_not(weeks):
    old, new, later = weeks
    weak = SingleFeature(5).fit(old)
    found = retrain(ObliviousBoosting(n_estimators=1, learning_rate=1e-9).fit(old), new, later, more=40,
                    params={"learning_rate": 0.1})  # fmt: skip
    assert found.promoted
    assert found.how == "continued"
    assert found.candidate.get_params()["n_estimators"] == found.candidate.n_iter_ == 41
    assert found.p < 0.05
    assert found.comparison.pairs[0].difference > 0
    again = retrain(weak, new, later)
    assert not again.promoted
    assert again.how == "refitted"
    assert again.p == 1.0  # the same column, the same ranking
    close = retrain(weak, new, later, margin=0.02)
    assert close.promoted
    assert close.comparison.pairs[0].difference == 0.0
    assert not retrain(found.candidate, new, later, params={"n_estimators": 1}, how="refit").promoted


def test_a_measure_that_is_better_when_lower_is_respected(weeks):
    old, new, later = weeks
    good = RidgeRanker(alpha=1.0).fit(old)
    found = retrain(good, new, later, measure="pairs(2,0)", params={"alpha": 1e9})
    values = found.comparison.per_query
    gain = values["production"] - values["candidate"]
    assert np.sign(found.comparison.pairs[0].difference) == np.sign(np.nanmean(gain))
    assert found.promoted == (np.nanmean(gain) > 0 and found.p < 0.05)


def test_every_kind_of_model_is_trained_again(weeks):
    old, new, later = weeks
    models = {
        RankSVM(): True,
        RankerPipeline("z-score-in-query", ObliviousBoosting(n_estimators=3)): True,
        RankerPipeline("z-score-in-query", RidgeRanker()): False,
        CalibratedRanker(RidgeRanker(), "platt"): False,
        CalibratedRanker(RidgeRanker().fit(old), "platt", cv="prefit"): False,
        AdaRank(n_estimators=5): False,
    }
    for model, continues in models.items():
        model.fit(old)
        before = model.predict(later)
        assert can_continue(model) == continues
        again, continued = trained_again(model, new, more=4)
        assert continued == continues
        assert again.n_queries_in_ == new.n_queries
        np.testing.assert_array_equal(model.predict(later), before)
        assert np.isfinite(again.predict(later)).all()
        if not continues:
            with refused(InvalidInputError, argument="how"):
                trained_again(model, new, how="continue")
    svm, _ = trained_again(RankSVM(tol=1e-10).fit(old), new)
    np.testing.assert_allclose(svm.coef_, RankSVM(tol=1e-10).fit(new).coef_, rtol=1e-4, atol=2e-5)


def test_queries_of_one_name_stay_on_one_side(weeks):
    twice = RankingData.concatenate([weeks[0], weeks[0]])
    model = RidgeRanker().fit(weeks[1])
    found = retrain(model, twice, share=0.4, random_state=3)
    assert (found.n_train, found.n_held_out) == (60, 40)
    with refused(InvalidInputError, code="too-few-queries"):
        retrain(model, weeks[0], weeks[1].take_queries([0]))


def test_training_queries_are_settled_as_in_an_experiment(weeks, files, capsys, monkeypatch):
    """The held-out queries are those of `compare`; kept training queries forbid a promotion."""
    old, new, later = weeks
    weak = ObliviousBoosting(n_estimators=1, learning_rate=1e-9).fit(old)
    mixed = RankingData.concatenate([old.take_queries(range(9)), later])
    settings = {"more": 40, "params": {"learning_rate": 0.1}}
    found = retrain(weak, new, mixed, **settings)
    compared = compare(mixed, {"candidate": found.candidate, "production": weak}, baseline="production")
    assert found.promoted
    assert [(one.code, one.text) for one in found.remarks] == [(one.code, one.text) for one in compared.remarks]
    assert [one.code for one in found.remarks] == ["training-queries-left-out"]
    assert found.comparison.pairs[0].p == compared.pairs[0].p
    assert found.to_dict()["queries"] == {"train": 70, "held_out": 60, "training_queries": 9}
    assert found.to_dict()["training_queries"]["production"]["left_out"] == 9
    kept = retrain(weak, new, mixed, training_queries="keep", **settings)
    assert (kept.decision.verdict, kept.promoted, kept.n_held_out) == ("better", False, 69)
    assert [one.code for one in kept.remarks] == ["training-queries-kept"]
    assert "no verdict" in kept.reason
    for held_out, rule in ((mixed, "refuse"), (old, "leave out"), (new, "leave out")):
        with refused(InvalidInputError, code="training-queries"):
            retrain(weak, new, held_out, training_queries=rule)
    one = RankingData.concatenate([old.take_queries([0]), later.take_queries([0])])
    with refused(InvalidInputError, code="too-few-queries"):
        retrain(weak, new, one)
    monkeypatch.chdir(files)
    write_letor(mixed, files / "mixed.txt")
    save_model(weak, files / "weak.json")
    words = ["retrain", "weak.json", "new.txt", "--held-out", "mixed.txt", "--more", "40", "--set", "learning_rate=0.1"]
    assert main([*words, "--training-queries", "keep", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["remarks"][0]["code"] == "training-queries-kept"
    assert main([*words, "--training-queries", "refuse"]) == 1
    assert main([*words, "--history", "other.json", "--json"]) == 0  # the first look of this history


@pytest.fixture
def files(weeks, tmp_path):
    for name, data in zip(("old", "new", "later"), weeks):
        write_letor(data, tmp_path / f"{name}.txt")
    upside_down = RankingData.from_grouped(weeks[0].X, weeks[0].y.max() - weeks[0].y, weeks[0].offsets)
    save_model(ObliviousBoosting(n_estimators=1, depth=3).fit(upside_down), tmp_path / "model.json")
    return tmp_path


def test_the_command_promotes_and_keeps(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    before = (files / "model.json").read_bytes()
    words = ["retrain", "model.json", "new.txt", "--held-out", "later.txt", "--json"]
    assert main([*words, "--more", "30", "--set", "learning_rate=0.1", "--previous", "last.json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["decision"] == "promoted"
    assert report["queries"] == {"train": 70, "held_out": 60, "in_both": 0, "training_queries": 0}
    assert (report["verdict"], report["look"], report["level_spent"]) == ("better", 1, 0.05)
    assert (files / "last.json").read_bytes() == before
    promoted = (files / "model.json").read_bytes()
    assert load_model(files / "model.json").n_iter_ == 31
    capsys.readouterr()
    less = ["--more", "1", "--set", "learning_rate=1e-6", "--candidate", "candidate.json"]
    assert main([*words, *less]) == 3
    report = json.loads(capsys.readouterr().out)
    assert report["decision"] == "kept"
    assert report["model"] == "model.json"
    assert (report["look"], report["level_spent"]) == (2, 0.025)
    assert (files / "model.json").read_bytes() == promoted
    assert load_model(files / "candidate.json").n_iter_ == 32
    assert main([*words[:-1], *less]) == 3
    assert capsys.readouterr().out.count(CHOSEN) == 1


def test_the_command_keeps_production_on_every_error(files, weeks, capsys, monkeypatch):
    monkeypatch.chdir(files)
    before = (files / "model.json").read_bytes()
    (files / "bad.txt").write_text("0 qid:1 1:x\n")
    assert main(["retrain", "model.json", "bad.txt"]) == 1
    assert main(["retrain", "model.json", "new.txt", "--previous", "model.json"]) == 2
    assert main(["retrain", "model.json", "new.txt", "--candidate", "new.txt"]) == 2
    assert main(["retrain", "model.json", "new.txt", "--level", "2"]) == 1
    assert main(["retrain", "model.json", "new.txt", "new.txt"]) == 2
    assert "new.txt is named twice" in capsys.readouterr().err
    assert main(["retrain", "model.json", "new.txt", "--held-out", "later.txt", "--share", "0.5"]) == 2
    assert (files / "model.json").read_bytes() == before
    capsys.readouterr()
    assert main(["retrain", "model.json", "new.txt", "--held-out", "old.txt"]) == 1  # what the model was trained on
    assert "50 of 50 queries were used for training" in capsys.readouterr().err
    few = ["retrain", "model.json", "new.txt", "--held-out", "mixed.txt"]
    write_letor(RankingData.concatenate([weeks[0].take_queries([0]), weeks[2]]), files / "mixed.txt")
    assert main([*few, "--json"]) in (0, 3)
    assert json.loads(capsys.readouterr().out)["queries"]["training_queries"] == 1


def large_wins_small_losses():
    rng = np.random.default_rng(0)
    production = rng.uniform(0.3, 0.5, 100)
    return production + np.where(
        np.arange(100) < 15, rng.uniform(0.4, 0.5, 100), -rng.uniform(0.001, 0.02, 100)
    ), production


@pytest.mark.parametrize("test", ["sign", "wilcoxon"])
def test_promotion_requires_the_direction_of_its_own_test(test):
    candidate, production = large_wins_small_losses()
    assert (candidate - production).mean() > 0
    found = decide(candidate, production, test=test)
    assert found.p < 0.001
    assert not found.promoted
    # The wins of 85 small gains are no gain where the mean falls.
    assert not decide(production, candidate, test=test).promoted
    better = production + 0.01 + np.arange(100) * 1e-5
    assert decide(better, production, test=test).verdict == "better"
    with refused(InvalidInputError, argument="margin"):
        decide(candidate, production, test=test, margin=0.1)


@pytest.mark.parametrize("test", ["randomisation", "t"])
def test_a_margin_speaks_of_what_it_shows(test):
    rng = np.random.default_rng(1)
    production = rng.uniform(0.25, 0.9, 60)
    worse = production - 0.08 + 0.05 * rng.standard_normal(60)
    assert decide(worse, production, test=test).verdict == "worse"
    assert decide(worse, production, test=test, margin=0.15).verdict == "not worse"
    shown_worse = decide(worse, production, test=test, margin=0.01)
    assert shown_worse.verdict == "worse"
    assert shown_worse.p == decide(worse, production, test=test).p  # not that of the margin
    assert decide(production[:2] + 0.1, production[:2], test=test).verdict == "undecided"  # two queries show nothing


def test_the_level_is_spent_over_looks_at_the_same_queries():
    levels = [level_of(k, 0.05) for k in range(1, 2000)]
    assert levels[0] == 0.05
    assert sum(levels) / 2 <= 0.05  # of the direction that would be an error
    history, queries = History(), np.arange(5, dtype=np.uint64)
    assert history.look(queries) == 1
    history.count(queries)
    assert history.look(queries[4:]) == 2
    assert history.look(queries + np.uint64(5)) == 1


def test_comparisons_and_retrainings_are_looks_at_the_same_queries(weeks, tmp_path):
    """Three comparisons, by rows and by qrels, and two retrainings, with one file."""
    held_out, rng, path = weeks[2], np.random.default_rng(0), tmp_path / "looks.json"
    rows = [(str(query), f"d{row}", grade) for row, (query, grade) in enumerate(zip(held_out.qid, held_out.y))]
    qrels: dict[str, dict[str, int]] = {}
    for query, document, grade in rows:
        qrels.setdefault(query, {})[document] = int(grade)
    production = RidgeRanker().fit(weeks[0])
    for number in range(5):
        history = History.read(path)
        if number % 2:
            found = retrain(production, weeks[1], held_out, params={"alpha": 10.0**number}, history=history)
        elif number == 2:
            runs = {name: {query: {d: rng.random() for d in own} for query, own in qrels.items()} for name in "ab"}
            found = compare(qrels, runs, "RR", history=history)
        else:
            scores = {name: rng.random(held_out.n_rows) for name in "ab"}
            found = compare(held_out.y, scores, "RR", qid=held_out.qid, history=history)
        assert found.look == number + 1
        history.write(path)
    looks = History.read(path).looks
    assert set(looks.values()) == {5}
    assert len(looks) == held_out.n_queries


def test_a_history_is_kept_and_what_is_none_is_refused(tmp_path):
    history = History({"00": 3}, {"a": {"digest": "b", "path": "c"}})
    history.write(tmp_path / "h.json")
    assert History.read(tmp_path / "h.json") == history
    assert History.read(tmp_path / "none.json") == History()
    (tmp_path / "h.json").write_text("[]")
    with refused(InvalidInputError, code="not-a-history"):
        History.read(tmp_path / "h.json")


def test_losses_within_the_margin_do_not_add_up(files, capsys, monkeypatch):
    """A model promoted by its margin is compared with the last better one the next time, or not at all."""
    monkeypatch.chdir(files)
    words = ["retrain", "model.json", "new.txt", "--json", "--more", "1", "--set", "learning_rate=1e-9"]
    assert main([*words, "--held-out", "later.txt", "--margin", "0.05"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "not worse"
    first = json.loads((files / "model.json.history.json").read_text())
    ((promoted, of),) = first["references"].items()
    assert promoted == digest((files / "model.json").read_bytes())
    assert of["digest"] == digest((files / "model.json.reference.json").read_bytes())
    assert main([*words, "--held-out", "later.txt", "--margin", "0.05"]) == 0
    assert "the last model that was promoted as better" in json.loads(capsys.readouterr().out)["reason"]
    second = History.read(files / "model.json.history.json")
    assert second.references[digest((files / "model.json").read_bytes())] == of
    (files / "model.json.reference.json").unlink()
    before = (files / "model.json").read_bytes()
    assert main([*words, "--held-out", "later.txt", "--margin", "0.05"]) == 1
    assert "no longer contains" in capsys.readouterr().err
    assert (files / "model.json").read_bytes() == before


def test_an_interruption_before_the_model_is_replaced_keeps_its_reference(files, monkeypatch):
    monkeypatch.chdir(files)
    before = (files / "model.json").read_bytes()
    words = ["retrain", "model.json", "new.txt", "--held-out", "later.txt", "--margin", "0.05", "--more", "1"]

    def interrupted(path, *mode):
        if path == "model.json":
            raise KeyboardInterrupt
        return write(path, *mode)

    with monkeypatch.context() as patch:
        write = commands.atomic_write
        patch.setattr(commands, "atomic_write", interrupted)
        assert main([*words, "--set", "learning_rate=1e-9"]) == 130
    assert (files / "model.json").read_bytes() == before
    assert not (files / "model.json.history.json").exists()  # the files are replaced together
    assert main([*words, "--set", "learning_rate=1e-9"]) == 0
    (named,) = History.read(files / "model.json.history.json").references
    assert named == digest((files / "model.json").read_bytes())
    assert sorted(path.name for path in files.glob(".*")) == []


def test_26_null_retrainings_promote_nothing_on_the_same_queries():
    """The grades are noise, so no ridge ranker is better than another, whatever it was fitted to."""
    rng = np.random.default_rng(5)

    def week(queries):
        return RankingData(
            rng.standard_normal((queries * 8, 5)), rng.integers(0, 3, queries * 8), np.repeat(np.arange(queries), 8)
        )

    held_out, production, history, promoted = week(60), RidgeRanker().fit(week(40)), History(), []
    for number in range(26):
        found = retrain(production, week(40), held_out, history=history, random_state=number)
        assert (found.look, found.decision.level) == (number + 1, level_of(number + 1, 0.05))
        promoted.append(found.promoted)
        production = found.candidate if found.promoted else production
    assert not any(promoted)
