"""Solve for several strengths of a penalty, and select a strength by validation queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from truerank.core.checks import check_number
from truerank.core.errors import InvalidInputError, Remedy
from truerank.core.types import MeasureLike
from truerank.data.ranking_data import RankingData
from truerank.solvers.early_stopping import EarlyStopping
from truerank.solvers.result import SolverResult


def path_values(value: float | Sequence[float] | np.ndarray, name: str, *, zero: bool = False) -> list[float]:
    """Return the values of the parameter `name`, a number or a list of numbers; `zero` allows 0."""
    values: list[Any] = list(value) if isinstance(value, list | tuple | np.ndarray) else [value]
    if not values:
        raise InvalidInputError(f"{name} must be a number or a list of numbers, got an empty list", argument=name)
    return [check_number(one, name, "[0, inf)" if zero else "(0, inf)") for one in values]


def best_of_path(
    name: str,
    values: Sequence[float],
    solve: Callable[[float], SolverResult | Sequence[SolverResult]],
    valid: RankingData | None,
    scores: Callable[[np.ndarray, Any], np.ndarray],
    measure: MeasureLike,
    convention: str,
    details: Sequence[str] = (),
) -> tuple[float, SolverResult, list[dict[str, Any]]]:
    """Solve for every value, from the strongest penalty to the weakest, and select a value by validation queries.

    A large "C" is a weak penalty, but a large value of any other parameter is a strong penalty. `solve` returns the
    result for a value, or the results of its rounds, which are all candidates. `scores` computes scores from weights
    and a matrix. Ties go to the stronger penalty and the earlier round. Without validation queries, only one value is
    allowed, and its last round is selected.

    Returns the selected value, its result, and a list with a dict for each candidate: the value under `name`, `round`
    (from 0), `objective`, `dual_objective`, `gap`, `n_iter`, `status`, `bound`, the `details` of the results, and
    `validation`.
    """
    if len(values) > 1 and valid is None:
        raise InvalidInputError(
            f"{name} has {len(values)} values, but validation queries, which choose among them, are missing",
            remedies=[Remedy(eval_set=...), f"give a single {name}"],
            argument=name,
        )
    curve = None if valid is None else EarlyStopping(measure, convention, valid=valid)
    chosen: tuple[float, SolverResult] | None = None
    path: list[dict[str, Any]] = []
    for value in sorted(values, reverse=name != "C"):
        results = solve(value)
        for number, result in enumerate([results] if isinstance(results, SolverResult) else results):
            if curve is not None and valid is not None:
                curve.add(scores(result.coef, valid.X))
            path.append(
                {
                    name: value,
                    "round": number,
                    "objective": result.objective,
                    "dual_objective": result.dual_objective,
                    "gap": result.gap,
                    "n_iter": result.n_iter,
                    "status": result.status.name,
                    "bound": float(result.details.get("risk", np.nan)),
                    "validation": None if curve is None else curve.values[-1],
                }
            )
            for one in details:
                path[-1][one] = float(result.details[one])
            if curve is None or curve.is_best:
                chosen = value, result
    assert chosen is not None
    return *chosen, path
