"""Power by number of queries: against the noncentral t, and at the command line."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from scipy.stats import nct, t

from support.refusals import refused
from truerank import queries_needed
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.significance import compare_values
from truerank.significance.power import detectable_differences, deviation_interval


def test_power_of_normal_differences_is_that_of_the_noncentral_t():
    d = np.random.default_rng(1).normal(0.0, 0.2, 5_000)
    found = queries_needed(d, 0.05, at=[40, 150])
    for n in (40, 150):
        shift = 0.05 * np.sqrt(n) / d.std(ddof=1)
        expected = nct.sf(t.isf(0.025, n - 1), n - 1, shift)
        assert found.power_by_n[n][0] == pytest.approx(expected, abs=0.035)
    shift = 0.05 / d.std(ddof=1)
    exact = next(n for n in range(5, 1_000) if nct.sf(t.isf(0.025, n - 1), n - 1, shift * np.sqrt(n)) >= 0.8)
    assert found.n == pytest.approx(exact, rel=0.08)
    assert found.low < found.n < found.high


def test_the_order_of_the_rankers_does_not_matter():
    d = np.random.default_rng(5).gamma(0.5, 0.2, 60)
    assert queries_needed(-d, 0.03) == queries_needed(d, 0.03)


def test_few_queries_have_no_power_where_no_p_is_below_the_level():
    d = np.random.default_rng(6).normal(0.0, 0.1, 60)
    found = queries_needed(d, 5.0, "randomisation", at=[5, 6])
    assert (found.power_by_n[5][0], found.power_by_n[6][0]) == (0.0, 1.0)
    assert queries_needed(d, 5.0, "randomisation", comparisons=20).n == 10  # 2^-9 is below 0.0025
    with refused(InvalidInputError, argument="test"):
        queries_needed(d, test="sign")


def test_corrected_levels_need_more_queries_and_the_same_seed_gives_the_same():
    d = np.random.default_rng(2).gamma(0.5, 0.2, 60)
    one, nine = queries_needed(d, 0.03), queries_needed(d, 0.03, comparisons=9)
    assert nine.n > one.n
    assert queries_needed(d, 0.03) == one
    assert queries_needed(d, -0.03) == one  # a loss of this size is as hard to find


@pytest.mark.parametrize(("n", "kind"), [(7, "skewed"), (25, "skewed"), (16, "ties"), (25, "zeros"), (50, "zeros")])
def test_pilots_have_intervals_that_hold_the_true_deviation(n, kind):
    rng, held, many = np.random.default_rng(8), 0, 0
    # Normal numbers with deviation 1/4, rounded to halves, have the deviation 0.2852.
    truth = {"skewed": 1.0, "ties": 0.2852, "zeros": np.sqrt(0.15)}[kind]
    for _ in range(600):
        d = {
            "skewed": rng.exponential(size=n),
            "ties": np.round(rng.normal(0.0, 0.25, n) * 2.0) / 2.0,
            "zeros": np.where(rng.random(n) < 0.85, 0.0, rng.normal(size=n)),
        }[kind]
        if np.count_nonzero(d) < 5:
            continue
        low, high = deviation_interval(d)
        held, many = held + (low <= truth <= high), many + 1
    assert many > 60
    assert held / many > 0.9


def test_the_detectable_difference_of_a_table_is_that_of_queries_needed():
    rng = np.random.default_rng(4)
    d = np.where(rng.random((60, 3)) < 0.3, 0.0, rng.gamma(0.7, 0.1, (60, 3)))
    d[:4, 2] = np.nan
    found = detectable_differences(d, 0.05 / 3)
    for own, effect in zip(d.T, found):
        n = int((~np.isnan(own)).sum())
        power = queries_needed(own, effect, comparisons=3, at=[n]).power_by_n[n][0]
        assert power == pytest.approx(0.8, abs=0.04)
    values = {"base": np.zeros(60), "x": d[:, 0], "y": d[:, 1], "z": d[:, 2]}
    by_holm = compare_values(values, test="t", correction="holm").pairs
    assert [pair.detectable for pair in by_holm] == pytest.approx(found.tolist())
    alone = compare_values(values, test="t", correction="none").pairs
    assert [pair.detectable for pair in alone] == pytest.approx(detectable_differences(d, 0.05).tolist())
    many = np.tile(d[:, :1] - d[:, 0].mean(), (50, 1))
    many_found = detectable_differences(many, 0.05)[0]
    assert many_found == pytest.approx((t.isf(0.025, 2999) + t.isf(0.2, 2999)) * many.std(ddof=1) / np.sqrt(3000))
    few = np.zeros((30, 2))
    few[:4, 0], few[:, 1] = 0.5, 0.25
    assert np.isnan(detectable_differences(few, 0.05)).all()


@pytest.mark.parametrize("noise", [(0.006, 0.2, 0.2), (0.1, 0.1, 0.1), (0.1, 0.15, 0.2)])
def test_the_detectable_difference_is_that_of_the_printed_correction(noise):
    rng, found = np.random.default_rng(5), []
    names = ("new", "x", "y")

    def pair_of(d):
        return compare_values({"base": np.zeros(60)} | dict(zip(names, d.T))).pairs[0]

    for _ in range(12):  # pilots
        effect = pair_of(rng.normal(0, noise, (60, 3))).detectable
        planted = np.array([effect, 0.0, 0.0])
        found += [pair_of(rng.normal(0, noise, (60, 3)) + planted).p_adjusted < 0.05 for _ in range(12)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.13)


@pytest.mark.parametrize("differences", [[0.1] * 10, [0.1, 0.2], [0.0] * 30, [0.0] * 20 + [0.1, -0.2, 0.3, 0.1]])
def test_pilots_without_a_deviation_are_refused(differences):
    with refused(InvalidInputError, code="pilot"):
        queries_needed(differences)


def test_a_refused_pilot_says_which_pilot_would_do():
    rng = np.random.default_rng(0)
    for n, differ in ((20, 3), (12, 2), (60, 1)):
        with refused(InvalidInputError, code="pilot") as raised:
            queries_needed(np.r_[np.zeros(n - differ), rng.normal(size=differ)])
        needed = int(re.search(r"pilot of about ([\d,]+) queries", str(raised.value))[1].replace(",", ""))
        enough = [(rng.binomial(m, differ / n, 20_000) >= 5).mean() for m in (needed, int(0.9 * needed))]
        assert enough[0] > 0.89 > enough[1]
    with refused(InvalidInputError, code="pilot"):
        queries_needed(np.zeros(30))
    with refused(InvalidInputError, code="pilot"):
        queries_needed(rng.normal(size=30), 0.0)


def test_a_tiny_effect_needs_more_queries_than_are_tried():
    found = queries_needed(np.random.default_rng(3).normal(size=30), 1e-5, n_resamples=50)
    assert found.n is None
    assert "more than 100,000 queries" in str(found)


def test_the_command(tmp_path, capsys):
    assert main(["sample", str(tmp_path)]) == 0
    capsys.readouterr()
    files = [str(tmp_path / name) for name in ("bm25.run", "latent.run")]
    arguments = ["power", *files, "--qrels", str(tmp_path / "qrels.txt"), "--measure", "AP", "--effect", "0.02"]
    assert main([*arguments, "--comparisons", "3", "--queries", "60"]) == 0
    printed = capsys.readouterr().out
    assert "80 % power to find a true difference of 0.02 by a randomisation test" in printed
    assert "divided by 3 comparisons" in printed
    assert "convention trec" in printed
    assert main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["low"] <= report["n"] <= report["high"]
    assert main([*arguments[:-2]]) == 0
    assert "observed difference, which is uncertain" in capsys.readouterr().out
    assert main(["power", files[0], "--qrels", str(tmp_path / "qrels.txt")]) == 2
