"""Many systems at once: shared resamples against enumeration and SciPy, families, groups, tables."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from support.refusals import refused
from truerank import RunPool, compare, cross_validate, cross_validate_fusion, permutation_importance, retrain
from truerank.core.errors import InvalidInputError
from truerank.core.printing import styled_table
from truerank.data.samples import load_sample
from truerank.io.trec import as_qrels
from truerank.measures import AP, DCG, GMAP, FunctionMeasure, NumRet
from truerank.rankers.baselines import SingleFeature
from truerank.significance import (
    benjamini_hochberg,
    compare_values,
    divided_step_down,
    groups_alike,
    mean_interval,
    measure_interval,
    randomisation,
)
from truerank.significance.comparison import resamples_for
from truerank.significance.paired import TESTS, Signs, paired_tests


def values_of(seed, k=4, m=9, step=0.05):
    return np.random.default_rng(seed).random((k, m)).round(2) + step * np.arange(k)[:, None]


def pairwise_randomisation(values, pairs, n_resamples=10_000):
    first, second = (list(one) for one in zip(*pairs))
    return paired_tests("randomisation", (values[first] - values[second]).T, n_resamples=n_resamples).p


def every_sign(a, b):
    """Exact p of the paired randomisation test, by all 2^m exchanges."""
    difference = a - b
    sums = [abs(np.dot(signs, difference)) for signs in product((1, -1), repeat=len(difference))]
    return np.mean(np.array(sums) >= abs(difference.sum()) - 1e-12)


def test_shared_signs_estimate_the_exact_test_of_each_pair():
    values = values_of(0)
    pairs = list(combinations(range(4), 2))
    p = pairwise_randomisation(values, pairs, n_resamples=40_000)
    for (a, b), found in zip(pairs, p):
        exact = every_sign(values[a], values[b])
        assert found == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 40_000) + 1e-4)
        assert found == pytest.approx(randomisation(values[a], values[b], n_resamples=40_000).p, abs=0.02)
    scipy = stats.permutation_test(
        (values[0] - values[3],), np.mean, permutation_type="samples", vectorized=True, axis=0, n_resamples=np.inf
    )
    assert every_sign(values[0], values[3]) == pytest.approx(scipy.pvalue, abs=1e-12)


@pytest.mark.parametrize("size", [1e-4, 1e-5])
def test_sums_that_differ_by_rounding_alone_are_equal(size):
    # Small differences on few of many queries: most resamples tie with what was observed.
    signs = np.array([1, 1, 1, 1, 1, 1, -1])
    a = np.random.default_rng(0).random(2000)
    b = a.copy()
    b[: len(signs)] -= size * signs
    exact = np.mean([abs(sum(some)) >= signs.sum() for some in product((1, -1), repeat=len(signs))])
    found = pairwise_randomisation(np.stack([a, b]), [(0, 1)], n_resamples=4000)[0], randomisation(a, b).p
    assert found == pytest.approx((exact, exact), abs=0.02)
    assert exact == 0.125


def test_order_of_a_pair_and_blocks_play_no_part(monkeypatch):
    values = values_of(1, k=5)
    pairs = list(combinations(range(5), 2))
    p = pairwise_randomisation(values, pairs)
    np.testing.assert_array_equal(p, pairwise_randomisation(values, [(b, a) for a, b in pairs], n_resamples=10_000))
    alone = [pairwise_randomisation(values, [pair], n_resamples=10_000)[0] for pair in pairs]
    np.testing.assert_array_equal(p, alone)
    same = values.copy()
    same[1] = same[0]
    assert pairwise_randomisation(same, [(0, 1), (0, 2)])[0] == 1.0


def test_the_same_p_with_any_number_of_threads():
    from threadpoolctl import threadpool_limits

    values = np.random.default_rng(2).random((12, 200))
    places = list(combinations(range(12), 2))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(pairwise_randomisation(values, places, n_resamples=2_000))
    np.testing.assert_array_equal(*found)


def test_resamples_grow_with_the_family():
    assert resamples_for(3) == 10_000
    for n in (45, 4_950, 9_000):
        assert n / (resamples_for(n) + 1) <= 0.0251 or n <= 250
    assert resamples_for(10**6) == 400_000
    # Thirty rankers, one far above: Holm over 435 pairs can show it.
    rng = np.random.default_rng(0)
    per_query = {f"r{i}": rng.random(50) + (i == 0) for i in range(30)}
    result = compare_values(per_query, baseline=None, correction="holm")
    assert result.smallest_p < 0.05
    assert sum(pair.p_adjusted < 0.05 for pair in result.pairs) == 29
    assert result.groups[0] == ["r0"]
    assert len(result.groups) == 2


def test_tests_are_calibrated_under_the_null():
    rng = np.random.default_rng(5)
    n, level = 2_000, 0.05
    shown = 0
    for _ in range(n // 4):  # four independent comparisons in each family of eight systems
        values = rng.beta(0.5, 1.0, (8, 30))
        shown += int((pairwise_randomisation(values, [(0, 1), (2, 3), (4, 5), (6, 7)], n_resamples=999) <= level).sum())
    low, high = stats.binom.ppf([0.0005, 0.9995], n, level)
    assert low <= shown <= high


def test_benjamini_hochberg_is_scipys():
    p = np.random.default_rng(0).random(50) ** 3
    np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p), rtol=1e-12)


def test_effect_sizes():
    def effect(a, b):
        return compare_values({"b": np.asarray(b), "a": np.asarray(a)}).pairs[0].effect

    a, b = values_of(4, k=2)
    assert effect(a, b) == pytest.approx(stats.ttest_rel(a, b).statistic / np.sqrt(len(a)), rel=1e-12)
    assert effect(a, a) == 0.0
    assert effect([2.0, 3.0], [1.0, 2.0]) == np.inf
    assert np.isnan(effect([2.0], [1.0]))


@pytest.mark.parametrize("seed", range(6))
def test_two_systems_share_a_group_exactly_if_they_are_alike(seed):
    rng = np.random.default_rng(seed)
    means = rng.random(9)
    different = np.triu(rng.random((9, 9)) < 0.15 * seed, 1)
    different = different | different.T
    groups = groups_alike(means, different)
    for i, j in combinations(range(9), 2):
        assert any(i in group and j in group for group in groups) == (not different[i, j])
    assert {i for group in groups for i in group} == set(range(9))
    assert not any(set(a) < set(b) for a in groups for b in groups)
    for group in groups:
        assert list(means[group]) == sorted(means[group], reverse=True)


def test_groups_of_many_systems_end(monkeypatch):
    monkeypatch.setattr("truerank.significance.ranks.MOST_GROUPS", 3)
    rng = np.random.default_rng(0)
    different = np.triu(rng.random((20, 20)) < 0.5, 1)
    different = different | different.T
    for group in groups_alike(rng.random(20), different):
        assert not any(different[i, j] for i, j in combinations(group, 2))


def test_queries_that_are_skipped():
    rng = np.random.default_rng(0)
    per_query = {name: rng.random(20) for name in "abc"}
    for values in per_query.values():
        values[3] = np.nan  # an empty query, skipped by all: the shared way
    shared = compare_values(per_query, baseline=None, query_ids=[f"q{i}" for i in range(20)])
    assert all(pair.queries == 19 for pair in shared.pairs)
    gains, losses = shared.moved_most("a", "b")
    assert gains[0][1] == np.nanmax(per_query["a"] - per_query["b"])
    assert losses[0][1] == np.nanmin(per_query["a"] - per_query["b"])
    per_query["a"][7] = np.nan  # by one alone: pair by pair
    alone = compare_values(per_query, baseline=None)
    assert [pair.queries for pair in alone.pairs] == [18, 18, 19]
    assert alone.pairs[2].p == pytest.approx(shared.pairs[2].p, abs=0.02)
    with refused(InvalidInputError, argument="correction"):
        compare_values(per_query, baseline=None, test="sign", correction="max-t")


def test_tables_in_every_style():
    rows, header = [["a|b_c & <d>", 0.5], ["x", None]], ["name", "value"]
    assert styled_table(rows, header, "markdown").splitlines() == [
        "| name | value |", "| --- | --: |", "| a\\|b_c & <d> | 0.5000 |", "| x |  |",
    ]  # fmt: skip
    assert r"a\textbar{}b\_c \& $<$d$>$ & 0.5000 \\" in styled_table(rows, header, "latex")
    assert "<td>a|b_c &amp; &lt;d&gt;</td>" in styled_table(rows, header, "html")


@pytest.mark.parametrize(
    ("test", "correction"),
    [("randomisation", "holm"), ("sign", "none"), ("randomisation", "max-t"), ("wilcoxon", None)],
)
def test_few_queries_can_show_nothing(test, correction):
    for n, shown in ((4, False), (7, True)):
        better = {"new": np.linspace(0.5, 0.9, n), "old": np.linspace(0.1, 0.3, n)}
        result = compare_values(better, test=test, correction=correction)
        assert result.pairs[0].p_adjusted >= 0.8 * result.smallest_p
        assert (result.smallest_p < 0.05) == (result.pairs[0].p_adjusted < 0.05) == shown


def test_a_geometric_mean_is_not_compared_as_a_mean():
    with refused(InvalidInputError, code="geometric"):
        compare([1, 0], {"a": [2, 1], "b": [1, 2]}, "GMAP")


def test_a_geometric_mean_is_refused_wherever_means_are_tested():
    data = load_sample().take_queries(range(20))
    ranker = SingleFeature(1).fit(data)
    lists = {"1": {"a": 1.0}, "2": {"b": 1.0}}
    pool = RunPool({"one": lists, "two": lists}, as_qrels({"1": {"a": 1}, "2": {"b": 1}}))
    for call in (
        lambda: retrain(ranker, data, measure="GMAP"),
        lambda: permutation_importance(ranker, data, measure="GMAP"),
        lambda: cross_validate_fusion(pool, measures="GMAP"),
    ):
        with refused(InvalidInputError, code="geometric"):
            call()


def test_cross_validation_has_geometric_means_and_means_of_counts():
    data = load_sample().take_queries(range(20))
    rankers = {"first": SingleFeature(1), "second": SingleFeature(2)}
    found = cross_validate(rankers, data, "GMAP NumRet AP", cv=2)
    per_query = found.per_query["first"]
    assert found.means["first"]["GMAP"] == pytest.approx(np.exp(np.log(np.maximum(per_query["AP"], 1e-5)).mean()))
    assert found.means["first"]["NumRet"] == pytest.approx(data.n_rows / data.n_queries)
    with refused(InvalidInputError, code="geometric"):
        found.compare()
    assert found.compare("AP").measure == "AP"


@pytest.mark.parametrize(("measure", "to", "back"), [(AP, np.asarray, np.asarray), (GMAP, np.log, np.exp)])
def test_an_interval_is_of_what_a_report_shows(measure, to, back):
    values = np.array([0.5, 0.01, np.nan, 0.2, 0.1, 0.9])
    found = measure_interval(measure, values)
    own = to(values[~np.isnan(values)])
    assert found.estimate == pytest.approx(measure.aggregate(values))
    ends = stats.t.interval(0.95, 4, own.mean(), stats.sem(own))
    assert found[1:] == pytest.approx(tuple(np.clip(back(np.array(ends)), 0, 1)))


def test_an_interval_of_a_bounded_measure_ends_at_its_limit():
    values = np.array([1.0, 1.0, 1.0, 1.0, 0.2])
    assert mean_interval(values).high > 1
    assert measure_interval(AP, values).high == 1
    assert measure_interval(AP, 1 - values).low == 0
    assert measure_interval(DCG, values).high == mean_interval(values).high
    assert measure_interval(FunctionMeasure(np.mean), values).high > 1
    assert np.isnan(measure_interval(AP, np.ones(3)).high)


def test_a_count_has_no_interval():
    found = measure_interval(NumRet, np.array([3.0, 4.0, np.nan]))
    assert found.estimate == 7.0
    assert np.isnan(found[1:]).all()


def test_an_interval_contains_0_exactly_where_its_p_is_at_least_the_level():
    rng = np.random.default_rng(12)
    checked = dict.fromkeys(TESTS, 0)
    for k in range(1000):
        n = int(rng.choice([1, 2, 3, 5, 6, 8, 13, 14, 20, 51]))
        d = rng.normal(rng.choice([0.0, 0.4]), 1.0, (n, 2)) * (rng.random((n, 2)) < rng.choice([0.4, 1.0]))
        d = d.round(0) if k % 3 == 0 else d
        for test in TESTS:
            found = paired_tests(test, d, n_resamples=int(rng.choice([199, 400])), random_state=k)
            low, high = found.low, found.high
            known = ~np.isnan(low)
            middle = 0.5 if test == "sign" else 0.0
            inside = (low <= middle) & (middle <= high)
            np.testing.assert_array_equal(inside[known], found.p[known] >= 0.05)
            checked[test] += known.sum()
    assert min(checked.values()) > 500


def test_the_interval_of_the_randomisation_test_holds_the_shifts_that_it_does_not_reject():
    d = np.random.default_rng(3).normal(0.4, 1.0, 10)
    found = paired_tests("randomisation", d)
    low, high = float(found.low[0]), float(found.high[0])
    for shift, rejected in ((low - 1e-6, True), (low + 1e-6, False), (high - 1e-6, False), (high + 1e-6, True)):
        assert (every_sign(d - shift, np.zeros(10)) < 0.05) == rejected


def test_the_default_correction_is_max_t_of_all_pairs():
    values = dict(zip("abcd", values_of(6, m=30)))
    found = compare_values(values, baseline=None)
    assert found.correction == "max-t"
    d = np.stack([values[pair.a] - values[pair.b] for pair in found.pairs], axis=1)
    expected = divided_step_down(d).p_adjusted
    np.testing.assert_allclose([pair.p_adjusted for pair in found.pairs], expected, atol=1e-12)
    assert all(pair.p_adjusted >= pair.p for pair in found.pairs)
    assert (found.n_resamples, compare_values({"a": [0.1, 0.2], "b": [0.3, 0.1]}).n_resamples) == (10_000, 4)
    assert compare_values(values, test="wilcoxon").correction == "holm"


def test_the_mark_stands_at_the_adjusted_p():
    values = {"old": np.linspace(0.1, 0.3, 30), "new": np.linspace(0.1, 0.3, 30) + np.linspace(0.1, 0.2, 30)}
    found = compare_values(values)
    assert found.pairs[0].marked == "0.0001**"
    assert "30/0/0 " in found._table("text")


@pytest.mark.parametrize(
    ("n_rankers", "n_queries", "possible"), [(2, 5, False), (2, 6, True), (3, 6, False), (3, 7, True)]
)
def test_a_table_says_if_no_difference_can_be_significant(n_rankers, n_queries, possible):
    """The least p of n queries is 2 / 2^n, times the comparisons; for 1 and for 3 comparisons both sides of 0.05."""
    per_query = {f"r{i}": np.arange(1.0, n_queries + 1) * i for i in range(n_rankers)}
    result = compare_values(per_query, baseline=None, correction="bonferroni")
    assert result.smallest_p == pytest.approx(2 / 2**n_queries * len(result.pairs))
    assert ("difference can be significant" in str(result)) == (not possible)
    assert possible == (min(pair.p_adjusted for pair in result.pairs) < 0.05)


@pytest.mark.parametrize(("n", "n_resamples"), [(4, 100), (7, 500), (60, 999), (60, 1000), (60, 9_999), (60, 12_345)])
def test_the_fewest_counts_are_those_whose_p_reaches_the_level(n, n_resamples):
    signs = Signs.of(n, n_resamples, 0)
    for level in (0.001, 0.01, 0.04, 0.05, 0.1, 0.5):
        p = signs.p(np.arange(signs.rows + 1))
        assert signs.fewest(level) == np.argmax(p >= level * (1 - 1e-9))
