"""Team draft lists, their comparison, and confidence sequences against the formulas term by term."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from truerank import ClickLog, compare_arms, compare_interleaved, interleave
from truerank.clicks.interleaving import team_draft
from truerank.clicks.sequences import confidence_sequence
from truerank.core.errors import InvalidInputError


def capital(x, m, alpha):
    """The larger half of the gambler's two capitals after each value, term by term."""
    up = down = 1.0
    seen, spread, found = 0.0, 0.25, []
    for i, value in enumerate(x, start=1):
        bet = np.sqrt(2 * np.log(2 / alpha) / ((spread / i) * i * np.log(1 + i)))
        up *= 1 + min(bet, 0.5 / m) * (value - m)
        down *= 1 - min(bet, 0.5 / (1 - m)) * (value - m)
        found.append(max(up, down) / 2)
        seen += value
        spread += (value - (0.5 + seen) / (i + 1)) ** 2
    return np.array(found)


def test_a_sequence_is_the_formula_of_the_paper():
    x = np.random.default_rng(0).beta(2, 3, size=60)
    found = confidence_sequence(x, 0.0, 1.0, null=0.7, level=0.9, looks=np.arange(1, 61))
    expected = np.minimum.accumulate(1.0 / np.maximum(capital(x, 0.7, 0.1), 1.0))
    assert np.allclose(found.p, expected)
    assert ((found.p < 0.1) == (found.high < 0.7)).all()
    for m in (0.2, 0.3, 0.55):
        out = np.maximum.accumulate(capital(x, m, 0.1)) >= 10
        assert not ((found.low > m) | (found.high < m))[~out].any()
    assert (np.diff(found.low) >= 0).all()
    assert (np.diff(found.high) <= 0).all()


def test_the_true_mean_is_rarely_excluded_however_often_one_looks():
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(100):
        found = confidence_sequence(rng.choice([-1.0, 0.0, 1.0], size=400), looks=np.arange(10, 401, 10))
        wrong += found.low[-1] > 0 or found.high[-1] < 0
    assert wrong <= 9  # binomial(100, .05) has more with probability .03


def test_a_scaled_sequence_is_the_same():
    x = np.random.default_rng(2).random(50)
    one, two = confidence_sequence(x, 0.0, 1.0, null=0.5), confidence_sequence(10 * x - 4, -4.0, 6.0, null=1.0)
    assert (10 * one.low[0] - 4, one.p[0]) == pytest.approx((two.low[0], two.p[0]))


def test_sequence_refuses():
    with pytest.raises(InvalidInputError, match=r"in \[-1, 1\]"):
        confidence_sequence([2.0])
    with pytest.raises(InvalidInputError, match="looks must rise"):
        confidence_sequence([0.0, 1.0], looks=[2, 2])


def test_team_draft_picks_by_rounds_and_gives_each_team_its_share():
    rng = np.random.default_rng(0)
    lists = {"a": ["x", "y", "z"], "b": ["y", "x", "w"]}
    first, sizes = Counter(), Counter()
    for _ in range(400):
        mixed = team_draft(lists, 3, rng)
        documents = [document for document, _ in mixed]
        assert len(set(documents)) == 3
        assert set(documents[:2]) == {"x", "y"}
        assert {team for _, team in mixed[:2]} == {"a", "b"}
        first[mixed[0][1]] += 1
        sizes.update(team for _, team in mixed)
    assert abs(first["a"] - 200) < 40
    assert abs(sizes["a"] - 600) < 40
    assert team_draft({"a": ["x"], "b": ["x", "y"]}, 10, rng)[-1] == ("y", "b")


def test_interleave_takes_runs_of_several_rankers():
    runs = {
        name: {"q1": {"x": a, "y": 1.0, "z": 0.0}, "q2": {"u": 1.0}} for name, a in (("a", 2), ("b", 0.5), ("c", 3))
    }
    mixed = interleave(runs, length=2, random_state=0)
    assert mixed == interleave(runs, length=2, random_state=0)
    assert {document for document, _ in mixed["q1"]} == {"x", "y"}
    assert [len(own) for own in mixed.values()] == [2, 1]
    with pytest.raises(InvalidInputError, match="two or more"):
        interleave({"a": {}})


def log_of(first, sessions=200, **more):
    """Lists of two documents, x of ranker a, which is first in every other list; `first` are clicks on x and y."""
    n = 2 * sessions
    document = np.tile(["x", "y", "y", "x"], n // 4)
    team = np.where(document == "x", "a", "b")
    clicked = np.where(document == "x", *first)
    lists = np.repeat(np.arange(sessions), 2)
    return ClickLog(lists, ["q"] * n, document, np.tile([1, 2], sessions), clicked, team=team, **more)


def test_units_are_scored_by_their_clicks():
    both = compare_interleaved(log_of((1, 1)))[0]
    assert (both.mean, both.wins, both.losses, both.p) == (0.0, 0, 0, 1.0)
    better = compare_interleaved(log_of((1, 0)), looks=4)[0]
    assert (better.a, better.b, better.mean, better.wins, better.units) == ("a", "b", 1.0, 200, 200)
    assert better.low > 0.8
    assert better.sequence.n.tolist() == [50, 100, 150, 200]
    assert "a - b" in str(compare_interleaved(log_of((1, 0))))


def test_sessions_are_one_unit_and_come_in_order_of_time():
    sessions = np.repeat(np.arange(40), 10)
    log = log_of((1, 0), session=sessions, time=np.arange(400)[::-1] // 10)
    found = compare_interleaved(log, looks=2)[0]
    assert (found.units, found.wins) == (40, 40)
    assert compare_interleaved(log, unit="impression")[0].units == 200
    assert compare_interleaved(log, unit="query")[0].units == 1


def test_three_teams_share_the_level():
    log = ClickLog(np.repeat(np.arange(60), 3), ["q"] * 180, ["x", "y", "z"] * 60, [1, 2, 3] * 60, [1, 0, 0] * 60,
                   team=["a", "b", "c"] * 60)  # fmt: skip
    found = compare_interleaved(log)
    assert [(one.a, one.b) for one in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    alone = confidence_sequence(np.ones(60), level=1 - 0.05 / 3)
    assert (found[0].low, found[0].p) == pytest.approx((alone.low[0], 3 * alone.p[0]))


def test_arms():
    rng = np.random.default_rng(0)
    arm = np.where(rng.random(4000) < 0.25, "a", "b")
    clicked = rng.random(4000) < np.where(arm == "a", 0.6, 0.3)
    found = compare_arms(clicked.astype(float), arm, share=0.25)
    assert found.mean == pytest.approx(0.3, abs=0.06)
    assert 0 < found.low < 0.3 < found.high
    with pytest.raises(InvalidInputError, match="with two names"):
        compare_arms([1.0], ["a"])


def test_refusals():
    with pytest.raises(InvalidInputError, match="team="):
        compare_interleaved(ClickLog([1], ["q"], ["d"], [1], [1]))
    with pytest.raises(InvalidInputError, match="has no sessions"):
        compare_interleaved(log_of((1, 0)), unit="session")
    with pytest.raises(InvalidInputError, match="has no sessions"):
        compare_interleaved(log_of((1, 0), session=[""] * 400))
