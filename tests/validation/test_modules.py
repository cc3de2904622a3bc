"""Every validation runs with few replications, and every stored result is of a module that exists."""

from __future__ import annotations

from importlib import import_module

import pytest
from validation.__main__ import SHARED

from validation import harness

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
    assert harness.Row("", "", 0.06, 0.005, 2_000, high=0.05).met is True
    assert harness.Row("", "", 0.061, 0.005, 2_000, high=0.05).met is False
    assert harness.Row("", "", 0.01, 0.005, 1_999, high=0.05).met is None
