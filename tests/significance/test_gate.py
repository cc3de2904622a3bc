"""The decision of the gate, from values by query."""

import numpy as np
import pytest
from scipy import stats

from truerank.core.errors import InvalidInputError
from truerank.measures import parse_measure
from truerank.significance.gate import Floor, decide_gate, failing_ends, floor_interval, least_margin, least_queries


def values(n, seed=0):
    return np.random.default_rng(seed).random(n)


def test_the_ends_of_one_mean_are_students():
    z = np.random.default_rng(0).normal(0.0, 0.2, (20, 1))
    d = np.concatenate([-0.1 + z, -0.1 - z])  # not skewed
    for level in (0.05, 0.0005):
        low, high = failing_ends(d, level)
        expected = stats.t.interval(1 - level, 39, d.mean(), stats.sem(d[:, 0]))
        assert (low[0], high[0]) == pytest.approx(expected)


def test_with_several_looks_segments_share_the_level_and_the_largest_deviation():
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 0.2, (30, 3))
    d = np.stack([-0.1 + z, -0.1 - z], axis=1).reshape(60, 3)  # not skewed
    d[30:, 1] = np.nan
    d[:, 2] /= 4.0
    deviation = np.nanstd(d, axis=0, ddof=1)
    pooled = np.sqrt((deviation**2).mean())
    for level in (0.0009, 0.0025, 0.025):
        low, high = failing_ends(d, level)
        for k, n in enumerate((60, 30, 60)):
            half = stats.t.ppf(1 - level / 6, n - 1) * max(deviation[k], pooled) / np.sqrt(n)
            expected = np.nanmean(d[:, k]) - half, np.nanmean(d[:, k]) + half
            assert (low[k], high[k]) == pytest.approx(expected)
    d[:, 2] = -0.1
    assert np.isnan(failing_ends(d, 0.0025)[0]).tolist() == [False, False, True]


def test_a_segment_without_the_rare_loss_of_the_others_does_not_fail_at_many_looks():
    """Ten of 200 queries lose 0.9, and none of them is in the first segment, whose small losses are steady."""
    rng = np.random.default_rng(0)
    d = np.where(rng.random(200) < 0.05, -0.9, 0.0) + rng.normal(0.0, 0.001, 200)
    d -= d.mean()
    segment = np.where(np.arange(200) < 20, np.abs(d) * 0.0 - 0.03 + rng.normal(0.0, 0.005, 200), np.nan)
    columns = np.column_stack([d, segment])
    alone = stats.ttest_1samp(segment[:20], 0.0).pvalue
    assert alone < 0.0025 / 100
    assert failing_ends(columns, 0.0025)[1][1] > 0


def test_a_loss_in_one_segment_fails_and_names_it():
    old = 0.2 + 0.6 * values(200)
    rare = np.arange(200) < 40
    found = decide_gate(old - 0.15 * rare, old, 0.05, segments={"rare": rare, "other": ~rare})
    assert found.verdict == "FAIL"
    assert [line.name for line in found.lines if line.verdict == "FAIL"] == ["rare"]
    assert found.exit_code == 1


def test_identical_results_pass_at_any_margin():
    old = values(5)
    assert decide_gate(old, old, 1e-6).verdict == "PASS"


def test_a_small_steady_loss_passes_with_a_remark():
    old = 0.5 + 0.1 * values(400)
    new = old - 0.01 - 0.001 * values(400, 1)
    found = decide_gate(new, old, 0.05)
    assert found.verdict == "PASS"
    assert any("add up" in remark for remark in found.notes)


def test_equal_losses_of_every_query_fail():
    assert decide_gate(np.full(30, 0.5), np.ones(30), 0.02).verdict == "FAIL"
    assert decide_gate(np.full(3, 0.5), np.ones(3), 0.02).verdict == "INCONCLUSIVE"  # 2^(1-3) is not below the level


def test_equal_systems_pass_exactly_above_the_least_margin():
    old = np.r_[np.zeros(30), np.ones(30)]
    least = least_margin(old.mean(), 60)
    new = old.copy()
    new[:2] += 1e-9  # not identical
    for margin, verdict in ((least * 1.001, "PASS"), (least * 0.999, "INCONCLUSIVE")):
        assert decide_gate(new, old, margin).verdict == verdict
    assert least_margin(0.5, least_queries(0.5, 0.02)) < 0.02 <= least_margin(0.5, least_queries(0.5, 0.02) - 1)


def test_the_number_of_queries_that_decide_is_the_least():
    d = np.random.default_rng(3).normal(0.0, 0.1, 40)
    old = np.full(40, 0.5)
    found = decide_gate(old + d, old, 0.02)
    assert found.verdict == "INCONCLUSIVE"
    k = found.needed
    # As many queries with the same mean and deviation: each half of them one deviation above and below.
    deviation, mean = d.std(ddof=1), d.mean()
    for n, passes in ((k + 2 - k % 2, True), (2 * (k // 2) - 2, False)):
        e = mean + deviation * np.sqrt((n - 1) / n) * np.tile([1.0, -1.0], n // 2)
        assert (decide_gate(0.5 + e, np.full(n, 0.5), 0.02).verdict == "PASS") is passes


@pytest.mark.parametrize(
    ("kind", "bound", "verdict"),
    [("least", 0.45, "PASS"), ("least", 0.5, ""), ("least", 0.9, "FAIL")],
)
def test_floors_by_students_interval(kind, bound, verdict):
    new = values(100)
    low, high = floor_interval(new, 0.05)
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 99, new.mean(), stats.sem(new)))
    found = decide_gate(new, new, floors=[Floor("floor", new, bound)])
    assert found.lines[1].verdict == verdict
    assert found.verdict == {"PASS": "PASS", "": "INCONCLUSIVE", "FAIL": "FAIL"}[verdict]


def test_floors_of_equal_values():
    n, ones = 20, np.ones(20)
    for f, verdict in ((0.05 ** (1 / n) - 1e-9, "PASS"), (0.05 ** (1 / n) + 1e-9, "")):
        assert decide_gate(ones, ones, floors=[Floor("f", ones, f)]).lines[1].verdict == verdict
    zeros = np.zeros(n)
    for f, verdict in ((1 - 0.05 ** (1 / n) + 1e-9, "FAIL"), (1 - 0.05 ** (1 / n) - 1e-9, "")):
        assert decide_gate(ones, ones, floors=[Floor("f", zeros, f)]).lines[1].verdict == verdict
    assert decide_gate(ones, ones, floors=[Floor("f", np.full(n, 0.5), 0.1)]).lines[1].verdict == ""


def test_losses_have_the_interval_of_clopper_and_pearson():
    losses = np.r_[np.ones(3), np.zeros(57), np.nan]
    low, high = stats.binomtest(3, 60).proportion_ci(0.95, "exact")
    line = decide_gate(np.ones(61), np.ones(61), floors=[Floor("loss", losses, 0.2, most=True)]).lines[1]
    assert (line.low, line.high) == pytest.approx((low, high))
    assert (line.n, line.verdict) == (60, "PASS")


def test_floors_share_their_level():
    new = values(50)
    floors = [Floor(str(k), new, 0.1) for k in range(4)]
    line = decide_gate(new, new, floors=floors, looks=5).lines[1]
    assert line.low == pytest.approx(stats.t.interval(1 - 0.05 / 20, 49, new.mean(), stats.sem(new))[0])


def test_looks_divide_the_level_and_end():
    old = 0.2 + 0.6 * values(60)
    new = old - 0.04 - np.random.default_rng(1).normal(0, 0.1, 60)
    levels = [decide_gate(new, old, looks=looks).about["level"] for looks in (1, 10)]
    assert levels == [0.05, 0.005]
    found = decide_gate(old - 0.1, old, looks=2, look=3)
    assert found.verdict == "INCONCLUSIVE"
    assert "new gold queries" in found.reason


@pytest.mark.parametrize(("argument", "value"), [("margin", 0), ("margin", -1), ("margin", None), ("looks", 0)])
def test_bad_settings(argument, value):
    with pytest.raises(InvalidInputError):
        decide_gate(values(9), values(9), **{argument: value})


def test_missing_values_and_empty_segments():
    old = values(50)
    old[:10] = np.nan
    found = decide_gate(old, old, segments={"none": np.arange(50) < 5, "some": np.arange(50) > 20})
    assert [line.n for line in found.lines] == [40, 0, 29]
    with pytest.raises(InvalidInputError):
        decide_gate(np.full(5, np.nan), np.ones(5))


def test_few_null_commits_fail():
    """150 commits without a true loss, over the whole set and five segments (`validation/gate.py` has more)."""
    rng, failed = np.random.default_rng(0), 0
    for _ in range(150):
        old = 0.5 + 0.1 * rng.random(40)
        d = rng.laplace(0.0, 0.1, 40)
        segments = {str(k): np.arange(40) % 5 == k for k in range(5)}
        failed += decide_gate(old + d, old, segments=segments, random_state=1).verdict == "FAIL"
    assert failed <= 150 * 0.05 + 3 * np.sqrt(150 * 0.05 * 0.95)


def test_reasons_promise_what_the_interval_shows():
    d = np.random.default_rng(0).normal(0.0, 0.02, 200)
    old, d = np.full(200, 0.5), d - d.mean()
    failed = decide_gate(old + d - 0.0205, old)  # the interval ends above -0.02
    assert failed.verdict == "FAIL"
    assert failed.lines[0].high > -0.02
    assert "worse by more than" not in failed.reason
    assert "estimated above 0.02" in failed.reason
    near = decide_gate(old + 3 * d - 0.0165, old)
    assert near.verdict == "INCONCLUSIVE"
    assert near.lines[0].high < 0
    assert near.reason.startswith("there is a significant loss, but the data do not show whether it is at most 0.02")
    assert decide_gate(old + 12 * d - 0.01, old).reason.startswith("the data do not show whether the loss")


def test_equal_losses_need_six_queries():
    found = decide_gate(np.full(3, 0.5), np.ones(3))
    assert (found.verdict, found.needed) == ("INCONCLUSIVE", 6)
    assert decide_gate(np.full(6, 0.5), np.ones(6)).verdict == "FAIL"


def test_the_number_of_queries_that_decide_counts_the_segments():
    d = np.random.default_rng(4).normal(0.0, 0.2, 60)
    d += -0.04 - d.mean()
    old, own = np.full(60, 0.8), np.arange(60)
    few = decide_gate(old + d, old)
    many = decide_gate(old + d, old, segments={str(k): own % 10 == k for k in range(10)})
    assert few.verdict == many.verdict == "INCONCLUSIVE"
    assert many.needed > 1.8 * few.needed


def test_where_less_is_better_the_reason_has_the_sign_of_the_table():
    rng = np.random.default_rng(1)
    old = 0.2 + 0.2 * rng.random(80)
    new = old - 0.1 * rng.random(80)
    found = decide_gate(new, old, measure=parse_measure("pairs(2, 0)"))
    assert found.verdict == "PASS"
    assert found.lines[0].difference < 0
    assert f"better, {found.lines[0].difference:+.4f} [-" in found.reason
    worse = decide_gate(old + 0.1 * rng.random(80), old, measure=parse_measure("pairs(2, 0)"))
    assert worse.verdict == "FAIL"
    assert all(value > 0 for _, value in worse.lost)


def test_several_floors_show_their_own_level():
    new = values(100)
    one = decide_gate(new, new, floors=[Floor("a", new, 0.4)])
    two = decide_gate(new, new, floors=[Floor("a", new, 0.4), Floor("b", new, 0.3)])
    assert one.lines[1].about == ""
    assert [line.about for line in two.lines] == ["", "97.5 % interval", "97.5 % interval"]
    assert (two.lines[1].low, two.lines[1].high) == pytest.approx(floor_interval(new, 0.025))


@pytest.mark.parametrize("n", [20, 100])
def test_a_floor_of_hits_passes_with_a_true_mean_at_the_floor_in_at_most_5_percent(n):
    ends = [floor_interval(np.r_[np.zeros(k), np.ones(n - k)], 0.05) for k in range(n + 1)]
    for floor in np.linspace(0.5, 0.995, 100):
        chances = stats.binom.pmf(np.arange(n + 1), n, 1 - floor)
        assert chances[[low >= floor for low, _ in ends]].sum() <= 0.05
        assert chances[[high < floor for _, high in ends]].sum() <= 0.05


def test_equal_values_of_measures_beyond_0_and_1_have_no_interval():
    for name in ("tau", "DCG@10"):
        for same in (np.zeros(20), np.ones(20)):
            assert np.isnan(floor_interval(same, 0.05, parse_measure(name))).all()


def test_a_rare_gain_that_the_sample_lacks_is_no_loss():
    """One query in 20 gains 0.57, and the others lose 0.03: samples without a gain do not fail."""
    rng = np.random.default_rng(0)
    for n, noise in ((20, 0.0), (40, 0.0), (20, 0.01), (60, 0.01)):
        failed = 0
        for _ in range(300):
            d = np.where(rng.random(n) < 0.05, 0.57, -0.03) + noise * rng.normal(size=n)
            failed += decide_gate(0.4 + d, np.full(n, 0.4)).verdict == "FAIL"
        assert failed <= 300 * 0.05 + 3 * np.sqrt(300 * 0.05 * 0.95), (n, noise, failed)


def test_losses_of_all_queries_fail_where_one_gain_would_not_hide_them():
    old = np.full(20, 0.5)
    assert decide_gate(old - 0.15, old).verdict == "FAIL"
    few = decide_gate(old - 0.03, old)
    assert few.verdict == "INCONCLUSIVE"
    assert "one more query with a gain of 0.5 would hide the loss" in few.reason
    assert few.needed is not None
    assert decide_gate(np.full(few.needed, 0.47), np.full(few.needed, 0.5)).verdict == "FAIL"
    assert decide_gate(np.full(few.needed - 1, 0.47), np.full(few.needed - 1, 0.5)).verdict == "INCONCLUSIVE"


def test_ends_of_several_looks_are_corrected_for_skewness():
    d = np.random.default_rng(2).gamma(0.5, 0.1, (60, 1)) - 0.1
    low, high = failing_ends(d, 0.0025)
    (mirrored_low, mirrored_high), mean = failing_ends(-d, 0.0025), d.mean()
    assert high - mean > 1.2 * (mean - low)
    assert (mirrored_low, mirrored_high) == (pytest.approx(-high), pytest.approx(-low))
    even = np.concatenate([d, -d])
    low, high = failing_ends(even, 0.0025)
    assert high == pytest.approx(-low)


def test_a_segment_that_loses_the_same_everywhere_fails_only_if_one_gain_cannot_hide_it():
    """Where one query in ten gains much, a segment of ten often has none, and its loss is the same in all queries."""
    old, members = np.full(200, 0.5), np.arange(200) % 20 == 0
    small, large = old - 0.05 * members, old - 0.5 * members
    assert decide_gate(small, old, segments={"a": members}).verdict != "FAIL"
    found = decide_gate(large, old, segments={"a": members})
    assert (found.verdict, found.lines[1].verdict) == ("FAIL", "FAIL")
    rng, failures = np.random.default_rng(0), 0
    of = np.arange(200) % 20
    for _ in range(12):
        gains = np.where(rng.random(200) < 0.1, 0.45, -0.05)  # no loss: the mean is 0
        found = decide_gate(old + gains, old, segments={str(k): of == k for k in range(20)})
        failures += any(line.verdict == "FAIL" for line in found.lines[1:])
    assert failures <= 2
