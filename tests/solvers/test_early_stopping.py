"""Early stopping: the best round whichever way a measure goes, patience, and no say for the order of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from truerank import AdaRank, ListNet, RankBoost, RankingData
from truerank.measures import AP, MEASURES, parse_measure
from truerank.rankers.baselines import SingleFeature
from truerank.solvers.early_stopping import EarlyStopping
from truerank.solvers.path import best_of_path
from truerank.solvers.result import SolverResult, Status


def judged(seed, m=30, p=4):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(m), 12)
    X = rng.normal(size=(len(qid), p))
    y = np.clip(np.round(X[:, 0] + X[:, 1] + rng.normal(size=len(qid))), 0, 2)
    return RankingData(X, y, qid)


def test_the_best_round_and_patience_by_hand():
    stopping = EarlyStopping("AP", "ranklib", patience=2)
    assert [stopping.add_value(value) for value in (0.1, 0.3, 0.3, 0.2)] == [False, False, False, True]
    assert (stopping.best_round, stopping.is_best) == (2, False)
    endless = EarlyStopping("AP", "ranklib")
    assert not any(endless.add_value(-k) for k in range(100))
    assert endless.best_round == 1
    close = EarlyStopping("AP", "ranklib", tolerance=0.1)
    assert [close.add_value(value) or close.best_round for value in (0.1, 0.15, 0.25)] == [1, 1, 3]


def test_one_measure_alone_says_that_less_is_better():
    assert [name for name, measure in MEASURES.items() if not measure.higher_is_better] == ["pairs"]
    lower = parse_measure("pairs(2,0)")
    assert lower.improves(0.1, 0.2)
    assert not lower.improves(0.2, 0.1)
    assert AP.improves(0.2, 0.1)


def test_a_lower_is_better_measure_is_trained_and_chosen_downwards():
    train, valid = judged(0), judged(1)
    judgements = valid.judgements()
    wrong = parse_measure("pairs(2,0)").tie_averaged()

    def error(ranker):
        return wrong.mean(judgements, ranker.predict(valid))

    chance = error(SingleFeature(3).fit(train))
    boosted = AdaRank("pairs(2,0)", n_estimators=30).fit(train, eval_set=valid)
    assert error(boosted) < 0.3 < chance
    assert boosted.best_round_ - 1 == np.argmin(boosted.history_["validation"])
    assert boosted.history_["train"][boosted.best_round_ - 1] < 0.3
    assert error(SingleFeature(measure="pairs(2,0)").fit(train)) < 0.35 < chance
    for ranker in (RankBoost(40, measure="pairs(2,0)"), ListNet(validation_measure="pairs(2,0)")):
        ranker.fit(train, eval_set=valid)
        assert ranker.n_iter_ - 1 == np.argmin(ranker.validation_scores_)
        assert error(ranker) == pytest.approx(ranker.validation_scores_.min())


def test_a_path_takes_the_setting_with_fewest_wrong_pairs():
    valid = judged(2)
    weights = {1.0: np.array([1.0, 1.0, 0, 0]), 10.0: np.array([0.0, 0, 1.0, 0]), 100.0: np.array([-1.0, -1, 0, 0])}

    def solve(C):
        return SolverResult(weights[C], Status.CONVERGED, 1, 0.0, gap=0.0)

    for name, best in (("AP", 1.0), ("pairs(2,0)", 1.0)):
        assert best_of_path("C", list(weights), solve, valid, lambda w, X: X @ w, name, "ranklib")[0] == best


def test_constant_scores_gain_nothing_from_relevant_documents_that_come_first():
    y = np.tile([2.0, 1, 0, 0, 0, 0], 10)
    qid = np.repeat(np.arange(10), 6)
    first, last = RankingData(np.zeros((60, 1)), y, qid), RankingData(np.zeros((60, 1)), y[::-1].copy(), qid)
    for convention in ("ranklib", "letor3", "trec", "lightgbm"):
        for name in ("AP", "nDCG@3", "RR", "ERR", "P@2"):
            values = [EarlyStopping(name, convention, valid=data).value_of(np.zeros(60)) for data in (first, last)]
            assert values[0] == pytest.approx(values[1], rel=1e-12)
    assert EarlyStopping("AP(ties='stable')", "letor3", valid=first).value_of(np.zeros(60)) == 1.0


def test_query_weights_count_in_the_choice():
    data = judged(3)
    weighted = judged(3)
    weighted.query_weight = np.arange(30) % 3 + 1.0
    copies = data.take_queries(np.repeat(np.arange(30), np.arange(30) % 3 + 1))
    one = EarlyStopping("AP", "ranklib", valid=weighted).value_of(weighted.X[:, 0])
    assert one == pytest.approx(EarlyStopping("AP", "ranklib", valid=copies).value_of(copies.X[:, 0]), rel=1e-12)
