"""Every validation runs with few replications, and every stored result is of a module that exists."""

from __future__ import annotations

from importlib import import_module

import pytest
from validation.__main__ import SHARED

from validation import harness, page

NAMES = sorted(path.stem for path in (harness.RESULTS.parent).glob("*.py") if path.stem not in SHARED)


@pytest.mark.parametrize("name", NAMES)
def test_a_validation_runs_with_few_replications(name):
    module = import_module(f"validation.{name}")
    rows = module.run(8, 0)
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
