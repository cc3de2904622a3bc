"""Every validation runs with few replications, and every stored result is of a module that exists."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from validation.__main__ import SHARED

from truerank.significance.gate import failing_ends, fails
from validation import gate, harness, page

NAMES = sorted(path.stem for path in (harness.RESULTS.parent).glob("*.py") if path.stem not in SHARED)


@pytest.mark.parametrize("name", NAMES)
def test_a_validation_runs_with_few_replications(name):
    module = import_module(f"validation.{name}")
    rows = module.run(8, 0)
    if not rows and harness.collections() is None:
        pytest.skip("draws from real collections alone; set TRUERANK_DATA to their folder")
    assert len(rows) > 0
    assert module.PROMISE.endswith(".")
    assert all(row.met is None for row in rows), "few replications never meet a bar"


def test_stored_results_are_of_modules_that_exist():
    assert {path.stem for path in harness.RESULTS.glob("*.json")} <= set(NAMES)


def test_a_bar_allows_two_monte_carlo_errors():
    assert harness.Row("", "", 0.0599, 0.005, 5_300, high=0.05).met is True
    assert harness.Row("", "", 0.061, 0.005, 5_300, high=0.05).met is False
    assert harness.Row("", "", 0.01, 0.005, 5_299, high=0.05).met is None


def test_pages_say_what_the_results_say():
    """`python -m validation page` would change no page and no row."""
    found = page.promises()
    text = page.USERS.read_text(encoding="utf-8")
    assert page.for_users(found) in text
    made = text.partition(page.START)[2].partition(page.END)[0]
    assert made.strip() == page.for_users(found)
    assert page.DEVELOPERS.read_text(encoding="utf-8") == page.for_developers(found)
    assert page.ROWS.read_text(encoding="utf-8") == page.all_rows(found)


def test_the_page_of_few_judgements_says_what_the_results_say():
    text = (page.DOCS / "howto" / "evaluate-with-100-judgements.md").read_text(encoding="utf-8").replace("`", "")
    start = "LLMJudge, DCG@10, 100 judgements, "
    rows = [row for row in harness.read(harness.RESULTS / "judging.json")[1] if row.setting.startswith(start)]
    over = {row.quantity: row.value for row in rows if row.setting.startswith(f"{start}all ")}
    single = [
        row.value for row in rows if row.quantity == "coverage of these topics" and start + "all" not in row.setting
    ]
    shares = (over["coverage of these topics"], min(single), max(single), over["wrong decisions"])
    assert [f"{100 * share:.1f}" for share in shares] == ["95.4", "94.8", "95.8", "0.2"]
    for figure in (*(f"{100 * share:.1f}" for share in shares),
                   f"{over['width over that of the uniform sample, mean over judges']:.2f} times",
                   f"{over['judgements saved by the plan, (width without / with)²']:.2f} times",
                   f"{over['judgements saved by the judge, (width without / with)²']:.2f} times",
                   f"{100 * over['decided']:.0f} %", f"{100 * over['decided, uniform sample']:.0f} %"):  # fmt: skip
        assert figure in text


def test_the_page_of_the_gate_says_what_the_results_say(tmp_path, monkeypatch):
    shares = page.verdicts_of_the_gate()
    text = (page.DOCS / "howto" / "gate.md").read_text(encoding="utf-8").replace("\n", " ")
    assert f"{100 * dict(shares['no loss']['PASS'])[200]:.0f} % of commits without a loss pass" in text
    assert f"{100 * dict(shares['a loss of 0.05']['FAIL'])[200]:.0f} % of commits with a loss of `0.05` fail" in text
    for verdicts in shares.values():
        assert all(abs(sum(value for _, value in own) - 1.0) < 1e-9 for own in zip(*verdicts.values()))
    monkeypatch.setattr(page, "GATE", tmp_path / "gate.png")
    page.draw_verdicts(shares)
    assert (tmp_path / "gate.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("n", "segments", "level"), [(20, 0, 0.05), (20, 5, 0.05), (50, 20, 0.05), (60, 5, 0.0025), (50, 5, 0.0004)]
)
def test_draws_decided_together_are_decided_as_by_the_gate(n, segments, level):
    """Draws with and without a loss, with ties, and with equal losses in every query."""
    rng = np.random.default_rng(n + segments)
    own = 0.21 - rng.gamma(0.7, 0.3, (24, n)) - rng.uniform(0.0, 0.15, (24, 1)) * rng.integers(0, 2, (24, 1))
    own[:4] *= rng.random((4, n)) < 0.5
    own[4:6] = [[-0.03], [-0.01]]
    of = np.arange(n) % max(segments, 1)
    expected = []
    for d in own:
        columns = np.column_stack([d, *(np.where(of == k, d, np.nan) for k in range(segments))])
        expected.append(bool(fails(columns, failing_ends(columns, level, 0)[1], gate.MARGIN, level).any()))
    assert gate.failed(own, segments, level).tolist() == expected
    assert 0 < sum(expected) < len(expected)
