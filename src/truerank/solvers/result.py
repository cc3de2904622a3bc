"""The result of a solver."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np


class Status(Enum):
    """The reason why a solver stopped; `value` is a sentence with the argument to change."""

    CONVERGED = "converged: the certificate is within tol"
    MAX_ITERATIONS = "stopped at max_iter before the certificate reached tol; raise max_iter or tol"
    NO_PROGRESS = "stopped because floating point allows no further progress; raise tol"
    NOTHING_TO_LEARN = "no query has documents of different grades, so nothing can be learned; the weights are zero"
    VALIDATION = "stopped early: the validation measure has not improved for `patience` rounds; the best round is kept"
    TRAINING_FLAT = "stopped: the training measure has not improved for `patience` rounds; the best round is kept"
    NO_WEAK_RANKER = "stopped: no weak ranker is better than chance on the weighted queries"
    ALL_FEATURES = "stopped: every feature was selected once; set repeat=True for more rounds"
    PERFECT = "stopped: every query is ranked perfectly; the last weight was limited"
    DIVERGED = (
        "stopped: training diverges, because the objective rises; the best trees so far are kept. Lower "
        "learning_rate, raise alpha, or select another kind of leaves"
    )
    CALLBACK = "stopped by a callback"
    ALL_ROUNDS = "completed all {} rounds"


NEEDS_ACTION = (Status.MAX_ITERATIONS, Status.NO_PROGRESS, Status.DIVERGED)
"""Statuses for which a ranker warns."""


@dataclass(frozen=True)
class SolverResult:
    """The result of a solver, with weights, status, objective and gap."""

    coef: np.ndarray  # float64 (p,)
    status: Status
    n_iter: int
    objective: float  # primal, at `coef`, exactly as the estimator's docstring states it
    dual_objective: float = float("nan")  # lower bound on the optimum; NaN without one
    gap: float = float("nan")  # `objective - dual_objective`, or the gradient norm if the docstring says so
    details: dict[str, Any] = field(default_factory=dict)
