"""The diabetes example runs, and descent orders the patients as well as the article says."""

from __future__ import annotations

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "diabetes.py"


def test_descent_beats_the_default_regression():
    taus = runpy.run_path(str(EXAMPLE))["taus"](seeds=20)
    # The article has .4996 for one draw of the first and .4651 for the regression.
    assert 0.503 <= taus["pairwise descent, 100,000 pairs"] <= 0.515
    assert abs(taus["linear SVR at its defaults"] - 0.4651) < 0.003
    assert taus["the same, averaged over the last half"] > 0.505
    assert taus["RankSVM (all 44,676 pairs, exact)"] > 0.505


def test_it_prints_a_line_for_each_learner(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) == 4
