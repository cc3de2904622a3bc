"""Team draft lists, their comparison, and confidence sequences against the formulas term by term."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

from support.refusals import refused
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
    with refused(InvalidInputError, argument="values"):
        confidence_sequence([2.0])
    with refused(InvalidInputError, argument="looks"):
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
    assert team_draft({"a": ["x"], "b": ["x", "y"]}, 10, rng) == [("x", ""), ("y", "")]  # a may have none left to pick
    assert team_draft({"a": [], "b": ["x", "y"]}, 10, rng) == [("x", ""), ("y", "")]


class Orders:
    """In place of a generator: the orders of the rounds, as given."""

    def __init__(self, orders):
        self.orders = iter(orders)

    def permutation(self, n):
        return next(self.orders)


@pytest.mark.parametrize("n_rankers", [2, 3])
def test_every_position_goes_to_each_team_equally_often_over_all_orders(n_rankers):
    """By count over all orders of all rounds: rankings of any length, equal and distinct, drawn to any length."""
    rng, names, credited = np.random.default_rng(n_rankers), "abc"[:n_rankers], 0
    for _ in range(60 if n_rankers == 2 else 25):
        lists = {name: rng.permutation(7)[: int(rng.integers(0, 6))].tolist() for name in names}
        length = int(rng.integers(1, 8 if n_rankers == 2 else 7))
        held = Counter()
        for orders in product(list(permutations(range(n_rankers))), repeat=-(-length // n_rankers) + 1):
            mixed = team_draft(lists, length, Orders(list(orders) + [range(n_rankers)] * length))
            teams = [team for _, team in mixed]
            held.update((place, team) for place, team in enumerate(teams) if team)
            n_credited = sum(team != "" for team in teams)
            full = n_credited - n_credited % n_rankers
            assert all(teams[:full].count(name) == full // n_rankers for name in names)
            assert n_credited in (full, length), "only the length cuts a round"
            assert "" not in teams[:n_credited], "no credit after the first round without it"
        for place in range(length):
            assert len({held[place, name] for name in names}) == 1
        credited += sum(held.values())
    assert credited > 0


def test_clicks_that_no_ranker_earned_give_no_credit():
    """Trials: lists of any lengths and overlap; a click at k with probability 1/k, whatever is there."""
    draws, credits = 400, 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        names = "abc"[: int(rng.integers(2, 4))]
        lists = {name: rng.permutation(8)[: int(rng.integers(0, 9))].tolist() for name in names}
        if seed % 3 == 0:
            lists["b"] = lists["a"][: int(rng.integers(0, 9))]  # the same ranking, cut
        length = int(rng.integers(1, 10))
        expected = np.zeros((draws, len(names)))
        for draw in range(draws):
            mixed = team_draft(lists, length, rng)
            teams = [team for _, team in mixed]
            sizes = [teams.count(name) for name in names]
            assert max(sizes) - min(sizes) <= 1
            assert len(mixed) == min(length, len(set().union(*lists.values())))
            expected[draw] = [sum(1 / k for k, team in enumerate(teams, 1) if team == name) for name in names]
        credits += expected.sum()
        for a in range(len(names)):
            for b in range(a):
                difference = expected[:, a] - expected[:, b]
                assert abs(difference.mean()) <= 4.5 * difference.std() / draws**0.5 + 1e-12
    assert credits > 0


def test_team_draft_misses_gains_that_its_lists_cannot_show():
    # Only d3 is relevant: first users of b see it at 2, of a at 3, and each team gets it equally often.
    rng, credit = np.random.default_rng(0), Counter()
    for _ in range(2_000):
        mixed = dict(team_draft({"a": ["d1", "d2", "d3"], "b": ["d2", "d3", "d1"]}, 3, rng))
        credit[mixed["d3"]] += 1
    assert abs(credit["a"] - credit["b"]) < 4 * 2_000**0.5
    assert "does not show equality" in str(compare_interleaved(log_of((1, 1))))


def test_documents_beyond_the_shorter_team_get_no_credit():
    # b has one document, a has four: a click on the last two of a is no credit.
    teams, document = ["a", "b", "a", "a", "a"], list("vwxyz")
    rows = [np.repeat(np.arange(40), 5), ["q"] * 200, document * 40, [1, 2, 3, 4, 5] * 40]
    found = compare_interleaved(ClickLog(*rows, [0, 0, 0, 1, 1] * 40, team=teams * 40))
    assert (found[0].wins, found[0].losses, found.uncredited) == (0, 0, 80)
    assert "80 documents got no credit" in str(found)
    fair = compare_interleaved(ClickLog(*rows, [0, 0, 1, 0, 0] * 40, team=["a", "b", "a", "", ""] * 40))
    assert (fair[0].wins, fair.uncredited) == (40, 0)


def test_interleave_takes_runs_of_several_rankers():
    runs = {
        name: {"q1": {"x": a, "y": 1.0, "z": 0.0}, "q2": {"u": 1.0}} for name, a in (("a", 2), ("b", 0.5), ("c", 3))
    }
    mixed = interleave(runs, length=2, random_state=0)
    assert mixed == interleave(runs, length=2, random_state=0)
    assert {document for document, _ in mixed["q1"]} == {"x", "y"}
    assert [len(own) for own in mixed.values()] == [2, 1]
    with refused(InvalidInputError, argument="rankers"):
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
    with refused(InvalidInputError, argument="outcomes"):
        compare_arms([1.0], ["a"])


def test_refusals():
    with refused(InvalidInputError, code="no-teams"):
        compare_interleaved(ClickLog([1], ["q"], ["d"], [1], [1]))
    with refused(InvalidInputError, code="no-sessions"):
        compare_interleaved(log_of((1, 0)), unit="session")
    with refused(InvalidInputError, code="no-sessions"):
        compare_interleaved(log_of((1, 0), session=[""] * 400))
