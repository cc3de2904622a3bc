"""The Bayesian paired comparison: against a grid, limits, and in tables."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reference.posterior import probabilities
from truerank import compare
from truerank.cli import main
from truerank.significance import compare_values, posterior
from truerank.significance.bayes import cautious
from truerank.significance.paper_table import paper_table


@pytest.mark.parametrize("seed", range(12))
def test_probabilities_are_those_of_a_fine_grid(seed):
    rng = np.random.default_rng(seed)
    n, scale, rope = int(rng.integers(3, 60)), float(rng.uniform(0.1, 2)), float(rng.uniform(0, 0.05))
    d = rng.normal(rng.normal(0, 0.05), 0.1, n)
    found = posterior(d, rope, scale=scale)
    expected = probabilities(d, rope, scale)
    np.testing.assert_allclose([found.worse[0], found.equivalent[0], found.better[0]], expected, atol=2e-4)


def test_ends_hold_the_central_95_percent():
    d = np.random.default_rng(1).normal(0.03, 0.1, (40, 3))
    found, turned = posterior(d, 0.0), posterior(-d, 0.0)
    np.testing.assert_allclose(found.low, -turned.high, atol=1e-9)
    for k in range(3):
        assert posterior(d[:, k], found.high[k]).better[0] == pytest.approx(0.025, abs=1e-6)


def test_a_wide_prior_gives_students_distribution_and_a_narrow_one_shrinks():
    from scipy import stats

    d = np.random.default_rng(2).normal(0.05, 0.1, 30)
    t = d.mean() / (d.std(ddof=1) / np.sqrt(30))
    assert posterior(d, 0.0, scale=1e4).better[0] == pytest.approx(stats.t.cdf(t, 29), abs=2e-3)
    by_scale = [posterior(d, 0.0, scale=c).better[0] for c in (0.02, 0.1, 0.35, 10)]
    assert by_scale == sorted(by_scale)
    turned = posterior(-d, 0.01)
    assert turned.worse[0] == pytest.approx(posterior(d, 0.01).better[0])


def test_equal_differences_and_units():
    found = posterior(np.column_stack([np.full(6, 0.02), np.zeros(6)]), 0.01)
    assert found.better.tolist() == [1, 0]
    assert found.equivalent.tolist() == [0, 1]
    d = np.random.default_rng(3).normal(0.02, 0.1, 25)
    a, b = posterior(d, 0.01), posterior(1e-6 * d, 1e-8)
    np.testing.assert_allclose(a[:3], b[:3], rtol=1e-9)


@pytest.fixture(scope="module")
def values():
    rng = np.random.default_rng(4)
    old = rng.random(240)
    return {"old": old, "new": old + rng.normal(0.06, 0.05, 240), "copy": old + rng.normal(0, 0.004, 240),
            "bad": old - rng.normal(0.06, 0.05, 240)}  # fmt: skip


def test_a_comparison_says_better_equivalent_and_worse(values):
    found = compare_values(values, measure="AP").practical(0.01)
    assert {pair.a: pair.verdict for pair in found.pairs} == {"new": "better", "copy": "equivalent", "bad": "worse"}
    assert found.to_dict()["schema"] == "practical/1"
    errors = compare_values(values, measure="AP", higher_is_better=False).practical(0.01)
    assert {pair.a: pair.verdict for pair in errors.pairs} == {"new": "worse", "copy": "equivalent", "bad": "better"}


def test_the_table_of_a_paper_has_marks_of_the_posterior(values):
    text = compare_values(values, measure="AP").to_latex(rope=0.01)
    assert r"new & \textbf{" in text
    rows = {line.split(" & ")[0]: line for line in text.splitlines() if " & " in line}
    assert r"\textsuperscript{$+$}" in rows["new"]
    assert r"\textsuperscript{$=$}" in rows["copy"]
    assert r"\textsuperscript{$-$}" in rows["bad"]
    assert "posterior" in text
    assert "=" not in compare_values(values, measure="AP").to_latex().partition("toprule")[2]


def test_the_command_prints_the_probabilities(tmp_path, capsys):
    (tmp_path / "q").write_text("".join(f"{t} 0 d{k} {int(k == 0)}\n" for t in range(9) for k in range(3)))
    for name, order in (("a", (2, 1, 0)), ("b", (0, 2, 1))):
        lines = [f"{t} Q0 d{k} {place} {-place} {name}\n" for t in range(9) for place, k in enumerate(order)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    runs = [str(tmp_path / "a.run"), str(tmp_path / "b.run")]
    command = ["compare", "--qrels", str(tmp_path / "q"), *runs, "--measure", "RR", "--rope", "0.02"]
    assert main([*command, "--json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)["practical"]["RR"]["pairs"]
    assert (pair["better"], pair["verdict"]) == (1.0, "better")
    assert main(command) == 0
    assert "P(equivalent)" in capsys.readouterr().out
    for measures in (["RR"], ["RR", "P@1"]):
        assert main([*command[:-3], *measures, "--rope", "0.02", "--cite", "--json"]) == 0
        found = compare(tmp_path / "q", runs, " ".join(measures), rope=0.02, cite=True)
        assert found.to_dict() == json.loads(capsys.readouterr().out)
        assert list(found.to_dict()["practical"]) == measures
        assert found.to_dict()["methods"] == found.methods_text()
        assert found.to_latex() == found.to_latex(rope=0.02) != found.to_latex(rope=0.5)


def test_few_equal_differences_decide_nothing():
    for own, n in ((0.5, 1), (0.5, 5), (0.0, 3)):
        old = np.linspace(0.1, 0.4, n)
        found = compare_values({"old": old, "new": old + own}).practical(0.01)
        assert found.pairs[0].verdict == "undecided"
        assert "too few, or equal differences" in found.summary
        assert "nan" not in str(found)
        assert found.to_dict()["pairs"][0]["better"] is None
    assert compare_values({"old": np.zeros(6), "new": np.ones(6)}).practical(0.01).pairs[0].verdict == "better"


def test_no_pair_has_no_posterior():
    assert all(len(own) == 0 for own in cautious(np.zeros((5, 0)), 0.01, 0.1))


def test_queries_without_a_value_are_not_counted(values):
    missing = {name: np.r_[own, np.full(40, np.nan)] for name, own in values.items()}
    found = compare_values(missing, measure="AP").practical(0.01)
    assert found.queries == 240
    assert str(found) == str(compare_values(values, measure="AP").practical(0.01))


def test_marks_of_the_posterior_have_no_p(values):
    found = {"AP": compare_values(values, measure="AP")}
    assert "(p < 0.05)" in paper_table(found, "markdown")
    assert "(p < 0.05)" not in paper_table(found, "markdown", rope=0.01)


@pytest.mark.parametrize("seed", range(6))
def test_one_more_query_must_not_undo_equivalence(seed):
    rng = np.random.default_rng(seed)
    d, loss = rng.normal(0, 0.01, (int(rng.integers(50, 90)), 3)), rng.random(3)
    plain, found = posterior(d, 0.01), cautious(d, 0.01, loss)
    for k in range(3):
        x = max(2 * np.abs(d[:, k]).max(), loss[k])
        more = [posterior(np.append(d[:, k], one), 0.01).equivalent[0] for one in (x, -x)]
        assert found.equivalent[k] == pytest.approx(min(plain.equivalent[k], *more))
    assert found.better.tolist() == plain.better.tolist()


def test_losses_that_the_sample_lacks_are_not_equivalent():
    """A ranker that loses 0.5 on 2 % of queries is seldom equivalent within 0.005; the model alone says so often."""
    rng, wrong = np.random.default_rng(0), np.zeros(2)
    for _ in range(100):
        old = rng.random(60)
        d = rng.normal(0, 0.002, 60) - 0.5 * (rng.random(60) < 0.02)
        wrong += (
            posterior(d, 0.005, ends=False).equivalent[0] >= 0.95,
            cautious(d, 0.005, old.mean()).equivalent[0] >= 0.95,
        )
    assert wrong[0] > 20
    assert wrong[1] == 0


@pytest.mark.parametrize(("queries", "lowest", "verdict"), [(49, 0.0, "undecided"), (50, 0.0, "equivalent"),
                                                           (50, -0.1, "undecided")])  # fmt: skip
def test_equivalence_needs_50_queries_and_values_that_tell_what_a_failure_loses(queries, lowest, verdict):
    rng = np.random.default_rng(5)
    old = rng.random(queries) / 10 + lowest
    found = compare_values({"old": old, "new": old + rng.uniform(0, 0.001, queries)}).practical(0.02)
    assert found.pairs[0].verdict == verdict
    assert (found.to_dict()["pairs"][0]["equivalent"] is None) == (verdict == "undecided")
    assert "nan" not in f"{found} {found.summary} {found.to_markdown()}"
    gained = compare_values({"old": old, "new": old + 0.1 + rng.uniform(0, 0.001, queries)}).practical(0.02)
    assert gained.pairs[0].verdict == "better"
