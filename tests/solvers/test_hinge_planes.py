"""HingePlanes: the optimum of plain cutting planes in fewer rounds, and an exact line search."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from support.planes import PlanesOfRows
from truerank.losses.graded_pairs import HingeOracle
from truerank.matrices.rows import LinearRows
from truerank.solvers.hinge_planes import HingePlanes, minimum_on_line
from truerank.solvers.result import Status


def problem(seed, n=400, p=12):
    rng = np.random.default_rng(seed)
    X = (rng.random((n, p)) < 0.3).astype(float)
    signs = np.where(X @ rng.normal(size=p) + rng.normal(size=n) > 1.0, 1.0, -1.0)
    return LinearRows(X, intercept=1.0), HingeOracle(signs, rng.choice([0.5, 1.0, 3.0], n))


@pytest.mark.parametrize("seed", range(4))
def test_a_path_reaches_the_optima_of_cutting_planes_in_fewer_rounds(seed):
    rows, hinge = problem(seed)
    ours, plain, rounds = HingePlanes(rows, hinge), PlanesOfRows(rows, hinge), np.zeros(2, dtype=int)
    for C in (1e-4, 1e-2, 1.0, 100.0):
        found, expected = ours.solve(C, tol=1e-7), plain.solve(C, tol=1e-7)
        rounds += found.n_iter, expected.n_iter
        assert found.status is Status.CONVERGED
        margins = hinge.signs * rows.scores(found.coef)
        primal = 0.5 * found.coef @ found.coef + C * hinge.weight @ np.maximum(0.0, 1.0 - margins)
        assert found.objective == pytest.approx(primal, rel=1e-12)
        assert found.gap <= 1e-7 * max(found.objective, min(1.0, C))
        assert found.objective >= expected.dual_objective * (1 - 1e-12)
        assert expected.objective >= found.dual_objective * (1 - 1e-12)
    assert rounds[0] < rounds[1]


def test_the_line_search_finds_the_minimum_of_random_lines():
    rng = np.random.default_rng(5)
    for _ in range(300):
        n = int(rng.integers(1, 30))
        weight, change = rng.random(n), rng.normal(size=n) * rng.integers(0, 2, n)
        margins = rng.choice([0.5, 1.0, 1.5, 0.0], n) + rng.normal(size=n) * rng.integers(0, 2)
        slope, curvature = rng.normal(), rng.random() + 0.01

        def objective(t, weight=weight, margins=margins, change=change, slope=slope, curvature=curvature):
            return slope * t + 0.5 * curvature * t * t + weight @ np.maximum(0.0, 1.0 - margins - t * change)

        t = minimum_on_line(slope, curvature, weight, margins, change)
        best = minimize_scalar(objective, bounds=(0.0, 2000.0), method="bounded", options={"xatol": 1e-10})
        assert t >= 0.0
        assert objective(t) <= min(best.fun, objective(0.0)) + 1e-9 * (1.0 + abs(best.fun))
    assert minimum_on_line(-1.0, 0.0, np.zeros(0), np.zeros(0), np.zeros(0)) == 0.0
