"""What `fit` takes beside the data: callbacks, ours and those of LightGBM and XGBoost, and settings for one fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.rounds import Callback, every
from truerank.rankers.other_names import measure_of


@dataclass
class FitHabits:
    """What stands for one fit alone.

    Attributes
    ----------
    callbacks : list of callable
    settings : dict
        Parameters that hold for this fit and are as before after it.
    records : list of dict
        To be filled with `evals_result_` (LightGBM's `record_evaluation`).
    measures : list
        More measures for `evals_result_`, beside the one that chooses.
    """

    callbacks: list[Callback] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    records: list[dict[str, Any]] = field(default_factory=list)
    measures: list[Any] = field(default_factory=list)


def taken_habits(ranker: Any, other: dict[str, Any], watched: bool) -> FitHabits:
    """Take `callbacks`, `verbose`, `eval_metric` and `early_stopping_rounds` out of what `fit` was given.

    Raises
    ------
    InvalidInputError
        On a callback that cannot be called or does what is not here, and on an `eval_metric` without `eval_set`
        (`watched` says whether there is one).
    """
    name, known = type(ranker).__name__, ranker.get_params(deep=False)
    habits = FitHabits()
    given = other.pop("callbacks", None)
    for one in [] if given is None else given if isinstance(given, list | tuple) else [given]:
        _take_callback(habits, one, name, known)
    for key in ("early_stopping_rounds", "early_stopping_round"):
        if other.get(key) is not None and "patience" in known:
            habits.settings["patience"] = other.pop(key)
    metric = other.get("eval_metric")
    if metric is not None and "validation_measure" in known:
        del other["eval_metric"]
        if not watched:
            raise InvalidInputError(f"{name}.fit: eval_metric judges the queries of eval_set, which is missing")
        listed = list(metric) if isinstance(metric, list | tuple) else [metric]
        if not listed:
            raise InvalidInputError(f"{name}.fit: eval_metric names no measure; such as eval_metric='ndcg@10'")
        habits.settings["validation_measure"] = measure_of("eval_metric", listed[-1])
        habits.measures = [measure_of("eval_metric", one) for one in listed[:-1]]
    for key in ("verbose", "verbose_eval"):
        period = other.get(key)
        if isinstance(period, bool | int | np.bool_ | np.integer):
            del other[key]
            if period and not known.get("verbose"):
                habits.callbacks.append(every(max(1, int(period))))
    return habits


def period_of(verbose: Any) -> int:
    """Rounds from one line to the next, 0 for none: also for False, and below 0 as in LightGBM.

    >>> period_of(True), period_of(-1), period_of(10)
    (1, 0, 10)
    """
    if isinstance(verbose, bool | np.bool_):
        return int(verbose)
    return max(0, check_positive_int(verbose, "verbose", -1))


def _take_callback(habits: FitHabits, one: Any, name: str, known: Mapping[str, Any]) -> None:
    kind = type(one).__name__.strip("_").removesuffix("Callback")
    theirs = type(one).__module__.partition(".")[0] in ("lightgbm", "xgboost")
    if theirs and kind == "EarlyStopping":
        if "patience" not in known:
            raise InvalidInputError(f"{name} does not stop early: leave {kind} out")
        rounds = getattr(one, "stopping_rounds", None)
        habits.settings["patience"] = int(getattr(one, "rounds", 0) if rounds is None else rounds)
    elif theirs and kind in ("LogEvaluation", "EvaluationMonitor"):
        if one.period > 0:
            habits.callbacks.append(every(one.period))
    elif theirs and kind == "RecordEvaluation":
        habits.records.append(one.eval_result)
    elif theirs:
        raise InvalidInputError(
            f"{name}.fit: the callback {type(one).__name__} is not here; a callback is a function of "
            "`truerank.core.rounds.Round` (its round, of, measures), which stops the fit by returning True"
        )
    elif callable(one):
        habits.callbacks.append(one)
    else:
        raise InvalidInputError(f"{name}.fit: callbacks must be functions, got {type(one).__name__}")
