"""Descent on the ramp bound: it falls from round to round, on made-up and on real data, and learns where it should."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from truerank.data.ranking_data import RankingData
from truerank.losses.ramp import RampOracle
from truerank.matrices.rows import LinearRows
from truerank.measures import parse_measure
from truerank.rankers.measure_svm import MeasureSVM
from truerank.rankers.sums.linear import LinearProblem, RampProblem
from truerank.solvers.concave_convex import descend_ramp
from truerank.solvers.result import Status


def made_up(seed, m=40, p=6):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(m), rng.integers(15, 40, m))
    X = rng.normal(size=(len(qid), p))
    latent = X @ np.linspace(2, -1, p) + rng.normal(size=len(qid))
    return RankingData(X, np.clip(np.floor(latent - 1), 0, 3), qid)


def problem_of(data, cutoff):
    return RampProblem(LinearProblem(data.in_parts(None), "never"), partial(RampOracle, cutoff=cutoff), 1)


@pytest.mark.parametrize("C", [0.5, 20.0])
def test_the_bound_falls_and_each_round_has_its_certificate(C):
    data = made_up(0)
    oracle = RampOracle(data.y, data.offsets, cutoff=5)
    weight = oracle.kept / oracle.kept.sum()
    rows = LinearRows(data.X)
    start = np.random.default_rng(1).normal(size=6)  # far from good, so that there are rounds to go
    rounds = descend_ramp(problem_of(data, cutoff=5), C, start, tol=1e-6, max_iter=10_000)
    assert len(rounds) >= 3
    bounds = []
    for result in rounds:
        risk = weight @ oracle.bounds(rows.scores(result.coef))
        assert result.details["risk"] == pytest.approx(risk)
        assert result.details["ramp"] == pytest.approx(0.5 * result.coef @ result.coef + C * risk)
        bounds.append(result.details["ramp"])
    assert np.all(np.diff(bounds) < 0)
    for before, result in zip(rounds, rounds[1:]):
        assert 0 <= result.gap <= 1e-6 * max(1, result.objective)
        # The round's convex problem lies above the bound and touches it at the anchor.
        assert result.details["ramp"] <= result.objective + 1e-9
        assert result.dual_objective <= before.details["ramp"] + 1e-9
    assert [result.details["round"] for result in rounds] == list(range(len(rounds)))


def test_nothing_to_learn():
    problem = problem_of(RankingData(np.ones((4, 2)), np.zeros(4)), cutoff=2)
    rounds = descend_ramp(problem, 1.0, np.ones(2), tol=1e-4, max_iter=10)
    assert [result.status for result in rounds] == [Status.NOTHING_TO_LEARN]
    assert rounds[0].coef.tolist() == [0, 0]


@pytest.mark.parametrize("cutoff", [1, 5, 10])
def test_ndcg_at_k_learns_on_real_queries(collections, cutoff):
    """On queries of real length the margin bound of nDCG@k has its optimum at zero weights; the ramp bound learns."""
    from reproductions import protocol

    data = protocol.load_collection(collections, "ohsumed").data.take_queries(range(60))
    ranker = MeasureSVM(f"nDCG@{cutoff}").fit(data)
    ramps = [step["ramp"] for step in ranker.path_]
    assert len(ramps) >= 2
    assert np.all(np.diff(ramps) < 0)
    measure = parse_measure(f"nDCG@{cutoff}")(ties="average")
    learned = measure.mean(data.judgements(), ranker.predict(data))
    assert learned > measure.mean(data.judgements(), np.zeros(data.n_rows)) + 0.1
    assert 1 - ranker.score(data) <= ranker.loss_bound_ + 1e-9
