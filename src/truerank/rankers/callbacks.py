"""What `fit` takes beside the data: callbacks, ours and those of LightGBM and XGBoost, and settings for one fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.rounds import Callback, every
from truerank.rankers.other_names import measure_of
from truerank.rankers.xgboost_callback import AfterIteration


@dataclass
class FitHabits:
    """What stands for one fit alone."""

    callbacks: list[Callback] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)  # parameters that are as before after this fit
    records: list[dict[str, Any]] = field(default_factory=list)  # get `evals_result_` (LightGBM's `record_evaluation`)
    measures: list[Any] = field(default_factory=list)  # more for `evals_result_`, beside the one that chooses

    @contextmanager
    def holding(self, ranker: Any) -> Iterator[None]:
        """While the block runs, the ranker has these settings."""
        usual = {name: getattr(ranker, name) for name in self.settings}
        vars(ranker).update(self.settings)
        try:
            yield
        finally:
            vars(ranker).update(usual)

    def record(self, results: Mapping[str, Mapping[str, Any]]) -> None:
        """Fill the records."""
        for record in self.records:
            record.clear()
            record.update({name: {measure: list(v) for measure, v in own.items()} for name, own in results.items()})


def taken_habits(ranker: Any, other: dict[str, Any], watched: bool) -> FitHabits:
    """Take `callbacks`, `verbose`, `eval_metric` and `early_stopping_rounds` out of what `fit` was given.

    An `InvalidInputError` on a callback that cannot be called or does what is not here, and on an `eval_metric` without
    `eval_set` (`watched` says whether there is one).
    """
    name, known = type(ranker).__name__, ranker.get_params(deep=False)
    habits = FitHabits()
    for given in (known.get("callbacks"), other.pop("callbacks", None)):
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
        _take_measures(habits, metric, f"{name}.fit: eval_metric")
    elif isinstance(known.get("validation_measure"), list | tuple):
        _take_measures(habits, known["validation_measure"], f"{name}: validation_measure")
    periods = [period_of(known.get("verbose") or 0)]
    for key in ("verbose", "verbose_eval"):
        if isinstance(other.get(key), bool | int | np.bool_ | np.integer):
            periods.append(period_of(other.pop(key)))
    if any(periods):
        habits.callbacks.append(every(next(filter(None, periods))))
    return habits


def _take_measures(habits: FitHabits, given: Any, name: str) -> None:
    """One measure or several, of which the last chooses, as in XGBoost."""
    listed = list(given) if isinstance(given, list | tuple) else [given]
    if not listed:
        raise InvalidInputError(f"{name} names no measure; such as 'ndcg@10'")
    *habits.measures, habits.settings["validation_measure"] = [measure_of(name, one) for one in listed]


def period_of(verbose: Any) -> int:
    """Rounds from one line to the next, 0 for none: also for False, and below 0 as in LightGBM.

    >>> period_of(True), period_of(-1), period_of(10)
    (1, 0, 10)
    """
    if isinstance(verbose, bool | np.bool_):
        return int(verbose)
    return max(0, check_positive_int(verbose, "verbose", -1))


def _rates_of(one: Any, kind: str, known: Mapping[str, Any]) -> list[float] | None:
    """Learning rates by round of LightGBM's `reset_parameter` and XGBoost's `LearningRateScheduler`, None of others."""
    if "learning_rate" not in known or "n_estimators" not in known:
        return None
    rounds = check_positive_int(known["n_estimators"], "n_estimators")
    if kind == "LearningRateScheduler":
        return [float(one.learning_rates(k)) for k in range(rounds)]
    if kind == "ResetParameter" and list(one.kwargs) == ["learning_rate"]:
        given = one.kwargs["learning_rate"]
        return [float(rate) for rate in (map(given, range(rounds)) if callable(given) else given)]
    return None


def _take_callback(habits: FitHabits, one: Any, name: str, known: Mapping[str, Any]) -> None:
    kind = type(one).__name__.strip("_").removesuffix("Callback")
    origins = [base.__module__.partition(".")[0] for base in type(one).__mro__]
    theirs = origins[0] in ("lightgbm", "xgboost")
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
    elif theirs and (rates := _rates_of(one, kind, known)) is not None:
        habits.settings["learning_rate"] = rates
    elif "xgboost" in origins and not theirs:
        habits.callbacks.append(AfterIteration(one))
    elif theirs or "catboost" in origins:
        raise InvalidInputError(
            f"{name}.fit: the callback {type(one).__name__} works on a model that is not here; a callback is a "
            "function of `truerank.core.rounds.Round` (its round, of, measures, arrays), which stops the fit by "
            "returning True"
        )
    elif callable(one):
        habits.callbacks.append(one)
    else:
        raise InvalidInputError(f"{name}.fit: callbacks must be functions, got {type(one).__name__}")
