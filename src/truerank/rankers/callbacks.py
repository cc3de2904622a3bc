"""What `fit` takes beside the data: callbacks, and settings for one fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.compat.foreign_objects import refuse_foreign_callback
from truerank.compat.other_names import measure_of
from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.rounds import Callback, every
from truerank.core.types import Scorer


@dataclass
class FitHabits:
    """What stands for one fit alone."""

    callbacks: list[Callback] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)  # parameters that are as before after this fit
    measures: list[Any] = field(default_factory=list)  # more for `evals_result_`, beside the one that chooses

    @contextmanager
    def holding(self, ranker: Scorer) -> Iterator[None]:
        """While the block runs, the ranker has these settings."""
        usual = {name: getattr(ranker, name) for name in self.settings}
        vars(ranker).update(self.settings)
        try:
            yield
        finally:
            vars(ranker).update(usual)


def taken_habits(ranker: Any, other: dict[str, Any], watched: bool) -> FitHabits:
    """Take `callbacks`, `verbose`, `eval_metric` and `early_stopping_rounds` out of what `fit` was given.

    An `InvalidInputError` on a callback that cannot be called or is another library's, and on an `eval_metric` without
    `eval_set` (`watched` says whether there is one).
    """
    name, known = type(ranker).__name__, ranker.get_params(deep=False)
    habits = FitHabits()
    for given in (known.get("callbacks"), other.pop("callbacks", None)):
        for one in [] if given is None else given if isinstance(given, list | tuple) else [given]:
            refuse_foreign_callback(one, name)
            if not callable(one):
                raise InvalidInputError(f"{name}.fit: callbacks must be functions, got {type(one).__name__}")
            habits.callbacks.append(one)
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


def _take_measures(habits: FitHabits, given: object, name: str) -> None:
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
