"""Learned fusion of runs, and ListNet with weights that are not negative."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import optimize

from rankers.conformance import ranker_checks
from reference import listnet as reference
from support.edited_models import unsealed
from support.made_up_runs import planted, random_qrels, random_runs
from support.refusals import refused
from truerank import ListNet, MeasureSVM, NonnegativeListNet, RidgeRanker, RunFusion, RunPool, load_model, save_model
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.features.run_features import parse_features

# On the checks' random columns no nonnegative weights may be the best ones, which the ranker says.
test_scikit_learn_conformance = pytest.mark.filterwarnings("ignore:NonnegativeListNet learned nothing")(
    ranker_checks([NonnegativeListNet()])
)


def test_nonnegative_weights_are_the_constrained_optimum():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, 4)), rng.integers(0, 3, 60).astype(float), np.repeat(np.arange(6), 10)
    ranker = NonnegativeListNet(0.3, tol=1e-8).fit(X, y, qid=qid)

    def value(w):
        return reference.objective(w, X, y, qid, 0.3)

    slow = optimize.minimize(value, np.full(4, 0.1), bounds=[(0, None)] * 4, method="SLSQP", options={"ftol": 1e-14})
    np.testing.assert_allclose(ranker.coef_, slow.x, atol=1e-4)
    assert (ranker.coef_ >= 0).all()
    assert (ranker.coef_ == 0).any()  # this draw has a direction that only a negative weight would use
    assert ranker.objective_ == pytest.approx(value(ranker.coef_), rel=1e-12)
    free = ListNet(0.3).fit(X, y, qid=qid)
    assert ranker.objective_ >= free.objective_
    positive = np.abs(X) * y[:, None]  # every column is of use: the bound plays no part
    np.testing.assert_allclose(
        NonnegativeListNet(0.3, tol=1e-8).fit(positive, y, qid=qid).coef_,
        ListNet(0.3).fit(positive, y, qid=qid).coef_, atol=1e-4,
    )  # fmt: skip
    with refused(InvalidInputError, argument="eval_set", code="unused"):
        NonnegativeListNet().fit(X, y, qid=qid, eval_set=(X, y, qid))
    with refused(InvalidInputError, argument="alpha"):
        NonnegativeListNet(-1.0).fit(X, y, qid=qid)


def test_fusion_finds_the_planted_worth():
    runs, qrels = planted(0)
    weights = RunFusion(nonnegative=True).fit(runs, qrels).run_weights()
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights["run0"] > 2 * weights["run1"] > 2 * weights["run2"] >= 0
    fusion = RunFusion().fit(runs, qrels)
    with refused(InvalidInputError, code="no-run-weights"):
        fusion.run_weights()


def test_a_fit_is_the_rankers_fit_on_the_features():
    runs, qrels = planted(1, n_topics=8)
    fusion = RunFusion(ListNet(0.5), features="min-max + presence", depth=15).fit(runs, qrels)
    pool = RunPool(runs, qrels)
    rows = np.flatnonzero(pool.within_depth(15))
    assert 0 < len(rows) < pool.n_rows
    X = parse_features("min-max + presence").matrix(pool, rows)
    by_hand = ListNet(0.5).fit(X, np.nan_to_num(pool.grades[rows]), qid=pool.query_of_row[rows])
    np.testing.assert_array_equal(fusion.ranker_.coef_, by_hand.coef_)
    fused = fusion.predict(runs, depth=None)
    scores = by_hand.predict(parse_features("min-max + presence").matrix(pool, np.arange(pool.n_rows)))
    np.testing.assert_array_equal(fused.scores, scores[pool.best(scores)])


def test_order_of_everything_plays_no_part():
    runs, qrels = random_runs(3, n_topics=10, n_documents=30), random_qrels(3, n_topics=10, n_documents=30)
    fusion = RunFusion(features="z-score + reciprocal-rank + agreement").fit(runs, qrels)
    fused = fusion.predict(runs).to_dict()
    turned = {
        name: {topic: dict(reversed(documents.items())) for topic, documents in reversed(run.items())}
        for name, run in reversed(runs.items())
    }
    again = fusion.predict(turned | {"another": {"0": {"d99": 1.0}}}).to_dict()
    assert {topic: list(again[topic].items()) for topic in fused} == {t: list(d.items()) for t, d in fused.items()}
    scaled = {
        name: {t: {d: 100 * s + 7 for d, s in one.items()} for t, one in run.items()} for name, run in runs.items()
    }
    other = fusion.predict(scaled).to_dict()
    for topic, documents in fused.items():
        assert other[topic] == pytest.approx(documents, abs=1e-4)


def test_blocks_of_topics_give_the_same_bits(monkeypatch):
    runs, qrels = planted(2, n_topics=9)
    fusion = RunFusion(features="score-bins(n=8) + agreement").fit(runs, qrels)
    pool = RunPool(runs)
    whole = fusion.pool_scores(pool)
    monkeypatch.setattr("truerank.rankers.run_fusion._BLOCK_VALUES", 700)
    np.testing.assert_array_equal(fusion.pool_scores(pool), whole)
    np.testing.assert_array_equal(fusion.pool_scores(pool.take([5])), whole[pool.offsets[5] : pool.offsets[6]])


@pytest.mark.parametrize(
    "fusion",
    [
        RunFusion(),
        RunFusion(nonnegative=True, features="percentile"),
        RunFusion(MeasureSVM("AP", C=1.0), features="score-bins(n=6)"),
        RunFusion(RidgeRanker(), features="score-bins(n=4) + gap", depth=None),
    ],
    ids=["list-net", "nonnegative", "svm on bins", "ridge"],
)
def test_models_come_back_from_their_file(tmp_path, fusion):
    runs, qrels = planted(3, n_topics=8)
    fused = fusion.fit(runs, qrels).predict(runs)
    save_model(fusion, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    again = loaded.predict(runs)
    np.testing.assert_array_equal(again.scores, fused.scores)
    assert again.doc_ids.tolist() == fused.doc_ids.tolist()
    text = unsealed(json.loads((tmp_path / "m.json").read_text()))
    text["model"]["fitted"]["run_names_"] = ["a", "b"]
    (tmp_path / "m.json").write_text(json.dumps(text))
    with refused(ModelFileError, path=str(tmp_path / "m.json")):
        load_model(tmp_path / "m.json")


def test_runs_that_do_not_fit():
    runs, qrels = planted(4, n_topics=6)
    fusion = RunFusion().fit(runs, qrels)
    with refused(InvalidInputError, code="lost-run"):
        fusion.predict({"run0": runs["run0"], "run1": runs["run1"], "run7": runs["run2"]})
    # A run without the topic, and one with a single document: fused of what there is.
    fused = fusion.predict({"run0": {"new": {"a": 1.0, "b": 0.5}}, "run1": {"new": {"b": 3.0}}, "run2": {}})
    assert sorted(fused.doc_ids.tolist()) == ["a", "b"]
    for arguments in ({"features": "min-max + presence"}, {"features": "presence"}, {"ranker": ListNet()}):
        with refused(InvalidInputError, argument="nonnegative"):
            RunFusion(nonnegative=True, **arguments).fit(runs, qrels)
    with refused(InvalidInputError, argument="qrels"):
        RunFusion().fit(runs)
    nothing = {"run0": {"t00": {"zzz": 1.0}}}
    with refused(InvalidInputError, code="nothing-relevant"):
        RunFusion().fit(nothing, qrels)
