"""A path over the regularisation C with selection on validation queries, for rankers that keep linear weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from truerank.core.checks import check_number
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.solvers.result import SolverResult


def values_of_C(C: Any) -> list[float]:
    """C as a list of numbers > 0: itself, or the list that was given."""
    several = isinstance(C, list | tuple | np.ndarray)
    values = list(C) if several else [C]
    if not values:
        raise InvalidInputError("C must be a number > 0 or a list of such numbers, got an empty list")
    return [check_number(value, "C", minimum=0.0, open_minimum=True) for value in values]


def best_of_path(
    solve: Callable[[float], SolverResult],
    values: Sequence[float],
    valid: RankingData | None,
    scores: Callable[[np.ndarray, Any], np.ndarray],
    measure: Any,
    convention: str,
) -> tuple[float, SolverResult, list[dict[str, Any]]]:
    """Solve for every C in ascending order and keep the best by `measure` on the validation queries.

    Equal values go to the smallest C.

    Returns
    -------
    C, result
        The chosen ones.
    path : list of dict
        For each C: `C`, `objective`, `dual_objective`, `gap`, `n_iter`, `status`, `bound`, and `validation` (None
        without validation queries).

    Raises
    ------
    InvalidInputError
        On several values without validation queries.
    """
    if len(values) > 1 and valid is None:
        raise InvalidInputError(
            f"C is a list of {len(values)} values, from which validation queries must choose: pass "
            "eval_set=(X, y, qid), or give a single C"
        )
    judgements = None if valid is None else valid.judgements()
    parsed: Any = None
    if valid is not None:
        from truerank.measures import parse_measure

        parsed = parse_measure(measure, convention=convention)
    best: tuple[float, SolverResult, float] | None = None
    path: list[dict[str, Any]] = []
    for C in sorted(values):
        result = solve(C)
        value = -np.inf
        if valid is not None:
            value = float(parsed.mean(judgements, scores(result.coef, valid.X)))
        path.append(
            {
                "C": C,
                "objective": result.objective,
                "dual_objective": result.dual_objective,
                "gap": result.gap,
                "n_iter": result.n_iter,
                "status": result.status.name,
                "bound": float(result.details.get("risk", np.nan)),
                "validation": value if valid is not None else None,
            }
        )
        if best is None or value > best[2]:
            best = C, result, value
    assert best is not None
    return best[0], best[1], path
