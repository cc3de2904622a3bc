"""Rows to train on, and the check-up of a log."""

from __future__ import annotations

import numpy as np
import pytest

from support.refusals import refused
from truerank import ClickLog, Examination, RankingData, load_sample, simulate, training_data
from truerank.clicks.checkup import examine_log
from truerank.clicks.simulation import relevance_of
from truerank.core.errors import InvalidInputError


@pytest.fixture(scope="module")
def data():
    return load_sample()


def test_grades_are_the_planted_relevances(data):
    log = simulate(data, {"a": data.X[:, 0], "b": data.X[:, 5]}, impressions=100_000, random_state=0)
    seen = Examination(n_draws=10).fit(log)
    found = training_data(log, data, seen, least=50, weights="documents")
    truth = dict(zip(zip(data.qid.tolist(), data.doc_ids.tolist()), relevance_of(data).tolist()))
    expected = np.array([truth[key] for key in zip(found.data.qid.tolist(), found.data.doc_ids.tolist())])
    often = found.data.sample_weight > found.data.sample_weight.min()  # 50 examined impressions or more
    assert 100 < often.sum() < found.data.n_rows - found.never_shown
    assert np.corrcoef(found.data.y[often], expected[often])[0, 1] > 0.9
    assert abs(np.mean((found.data.y - expected)[often])) < 0.02
    assert 0 < found.cut_weight < 0.2
    assert found.data.sample_weight.mean() == pytest.approx(1.0)
    assert np.array_equal(found.data.feature_names, data.feature_names)
    assert training_data(log, data, seen).data.query_weight is not None


def test_a_row_by_hand():
    log = ClickLog(
        [1, 1, 2, 2], ["q"] * 4, ["a", "b", "b", "a"], [1, 2, 1, 2], [1, 0, 1, 1], ranker=["x", "x", "y", "y"]
    )
    seen = Examination(max_position=2).fit(log)
    seen.propensities_ = np.array([1.0, 0.5])
    features = RankingData([[1.0], [2.0], [3.0], [4.0]], None, ["q"] * 3 + ["r"], doc_ids=["c", "b", "a", "a"])
    found = training_data(log, features, seen)
    assert found.data.X[:, 0].tolist() == [1.0, 2.0, 3.0]
    assert found.data.y.tolist() == pytest.approx([0.0, 1 / 1.5, 1.0])  # c was never shown; a: 2 / 1.5, cut to 1
    assert found[1:] == (1, 0.5, 0, 1)
    clipped = training_data(log, features, seen, least=4.0, weights="documents").data
    assert clipped.y.tolist() == pytest.approx([0.0, 1 / 4, 2 / 4])
    assert clipped.sample_weight.tolist() == [1.0, 1.0, 1.0]
    with refused(InvalidInputError, code="no-features"):
        training_data(log, RankingData([[1.0]], None, ["q"], doc_ids=["z"]), seen)
    with refused(InvalidInputError, code="no-ids"):
        training_data(log, RankingData([[1.0]]), seen)


def test_the_check_up_finds_what_is_odd():
    n = 4_000
    shown = ([k for k in range(n) for _ in range(2)], ["q"] * 2 * n, ["a", "b"] * n, [1, 2] * n)
    clicked = np.tile([1, 0], n) * (np.arange(2 * n) > n)
    session = np.repeat(np.arange(n) % 2_000, 2)
    session[: 2 * 300] = 0
    findings = " | ".join(examine_log(ClickLog(*shown, clicked, session=session, time=np.arange(2 * n))))
    assert "position 2 has no clicks in 4000 impressions" in findings
    assert "the click rate changes over time" in findings
    clicked = np.ones(2 * n)
    findings = " | ".join(examine_log(ClickLog(*shown, clicked, session=session, ranker=["x", "x"] * n)))
    assert "1 sessions look like bots" in findings
