"""A `random_state` of None is seed 0 in every public function and class."""

from __future__ import annotations

import ast
import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest

import truerank
from support.few_judgements import made
from truerank.data.ranking_data import RankingData
from truerank.features.run_pool import judged_pool
from truerank.io.trec import as_qrels

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 4))
QID = np.repeat(np.arange(24), 10)
Y = np.clip(np.round(X[:, 0] + RNG.normal(size=240)), 0, 3)
DATA = RankingData(X, Y, QID)
CLASSES = (Y > 0).astype(int)
NOISY = CLASSES + RNG.normal(size=240)
RUNS, HUMAN, JUDGE = made(topics=8, documents=20)
BOTH = {"a": X[:, 0], "b": X[:, 1]}


def ranked(name, **settings):
    return lambda seed: getattr(truerank, name)(random_state=seed, **settings).fit(X, Y, qid=QID).predict(X)


def classified(name, **settings):
    return lambda seed: getattr(truerank, name)(random_state=seed, **settings).fit(X, CLASSES).decision_function(X)


def calibrated(model, *rows, **other):
    return model.fit(*rows, **other).predict_proba(rows[0])


def clicked(seed):
    return truerank.simulate(DATA, BOTH, impressions=2_000, random_state=seed)


def retrained(seed):
    first = truerank.RidgeRanker().fit(X[:60], Y[:60], qid=QID[:60])
    return str(truerank.retrain(first, DATA.take_queries(np.arange(6, 24)), random_state=seed))


CALLS = {
    "AdaRank": ranked("AdaRank", n_estimators=5),
    "CalibratedRanker": lambda seed: calibrated(
        truerank.CalibratedRanker(truerank.RidgeRanker(), "platt", random_state=seed), X, Y, qid=QID
    ),
    "Cutoff": lambda seed: truerank.Cutoff(at_most=0.9, confidence=0.9, random_state=seed).fit(NOISY, Y, qid=QID),
    "Examination": lambda seed: truerank.Examination(random_state=seed).fit(clicked(1)),
    "JointPool": lambda seed: calibrated(truerank.JointPool(random_state=seed), X, Y.astype(int)),
    "LinearSVM": classified("LinearSVM", max_iter=5),
    "ObliviousBoosting": ranked("ObliviousBoosting", n_estimators=5, subsample=0.5),
    "PairwiseDescent": ranked("PairwiseDescent"),
    "PointwiseSVM": ranked("PointwiseSVM"),
    "PooledCalibrator": lambda seed: calibrated(
        truerank.PooledCalibrator(["platt", "isotonic"], random_state=seed), NOISY, CLASSES
    ),
    "QueryKFold": lambda seed: list(truerank.QueryKFold(3, random_state=seed).split(X, Y, QID)),
    "RandomRanker": ranked("RandomRanker"),
    "TextClassifier": lambda seed: calibrated(
        truerank.TextClassifier("voted-perceptron", "platt", cv=2, random_state=seed), X, CLASSES
    ),
    "VotedPerceptron": classified("VotedPerceptron"),
    "agreement": lambda seed: truerank.agreement(HUMAN, JUDGE, n_resamples=50, random_state=seed),
    "choose_calibrator": lambda seed: truerank.choose_calibrator(
        NOISY, CLASSES, methods=["platt", "isotonic"], random_state=seed
    ),
    "compare": lambda seed: str(truerank.compare(Y, BOTH, qid=QID, random_state=seed)),
    "cross_validate": lambda seed: truerank.cross_validate(
        {"a": truerank.RidgeRanker(), "b": truerank.RandomRanker(random_state=1)}, DATA, random_state=seed
    ),
    "cross_validate_fusion": lambda seed: str(
        truerank.cross_validate_fusion(judged_pool(RUNS, as_qrels(HUMAN)), cv=2, random_state=seed)
    ),
    "gate": lambda seed: str(
        truerank.gate(HUMAN, *list(RUNS.values())[:2], inconclusive="pass", random_state=seed)
    ),
    "interleave": lambda seed: repr(truerank.interleave(RUNS, random_state=seed)),
    "leaderboard": lambda seed: repr(truerank.leaderboard(
        HUMAN, {"judge": JUDGE}, RUNS, "DCG@5", n_resamples=50, random_state=seed
    ).to_dict()),
    "learning_curve": lambda seed: truerank.learning_curve(truerank.RidgeRanker(), DATA, DATA, random_state=seed),
    "permutation_importance": lambda seed: truerank.permutation_importance(
        truerank.RidgeRanker().fit(DATA), DATA, random_state=seed
    ),
    "plan_judgements": lambda seed: truerank.plan_judgements(RUNS, budget=30, random_state=seed),
    "queries_needed": lambda seed: truerank.queries_needed(DRAWN, 0.05, "randomisation", at=[60], random_state=seed),
    "ranking_stability": lambda seed: truerank.ranking_stability(
        truerank.RidgeRanker().fit(DATA), DATA, random_state=seed
    ),
    "reranking_depth": lambda seed: repr(
        truerank.reranking_depth(*list(RUNS.values())[:2], HUMAN, "DCG@5", depths=[2, 20], random_state=seed).to_dict()
    ),
    "retrain": retrained,
    "simulate": clicked,
    "tune": lambda seed: truerank.tune(
        lambda params: truerank.RidgeRanker(**params), DATA, {"alpha": ("log", 0.1, 10.0)}, trials=3,
        random_state=seed,
    ),
}  # fmt: skip
DRAWN = RNG.normal(size=30) * 0.1


def test_the_calls_are_all_that_take_a_seed():
    taking = set()
    for name in truerank.__all__:
        value = getattr(truerank, name)
        if callable(value) and "random_state" in inspect.signature(value).parameters:
            taking.add(name)
    assert taking == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_no_seed_is_seed_zero(name):
    np.random.seed(1)  # noqa: NPY002  # nothing reads NumPy's global generator
    none = repr_of(CALLS[name](None))
    np.random.seed(2)  # noqa: NPY002
    assert none == repr_of(CALLS[name](0))


def repr_of(value):
    """Return the figures of a result as text, without its own seed."""
    if isinstance(value, np.ndarray | list | tuple):
        return repr([part.tolist() if isinstance(part, np.ndarray) else part for part in value])
    if isinstance(value, str):
        return value
    state = {key: part for key, part in vars(value).items() if key != "random_state"}
    return pickle.dumps(state) if state else str(value)


def test_generators_start_from_a_seed_that_the_one_function_made():
    """NumPy draws a fresh seed for None: outside tests of the package nobody hands it the caller's value."""
    for path in Path(truerank.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = getattr(getattr(node, "func", None), "attr", None)
            if called in ("default_rng", "SeedSequence", "RandomState", "PCG64"):
                assert node.args, f"{path}:{node.lineno}: no seed"
                names = {part.id for part in ast.walk(node.args[0]) if isinstance(part, ast.Name)}
                assert "random_state" not in names or "seed_of" in names, f"{path}:{node.lineno}"
