"""The loop over folds of queries: settings chosen on validation queries, and fitted rankers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from truerank.core.errors import InvalidInputError
from truerank.core.printing import progress
from truerank.data.splits import Fold
from truerank.measures import Measure
from truerank.rankers.pipeline import fit_ranker, ranker_scores

Tried = list[tuple[dict[str, Any], Any]]
"""The settings of a ranker that are tried, each with the unfitted ranker."""


class FittedFold(NamedTuple):
    """A fold, its fitted rankers with their settings, and the means of all tried settings on validation queries."""

    fold: Fold
    rankers: dict[str, Any]
    settings: dict[str, dict[str, Any]]
    validation: dict[str, list[float]]  # empty if nothing was chosen


def tried_settings(rankers: Mapping[str, Any], grid: Mapping[str, Any]) -> dict[str, Tried]:
    """Return what `fitted_folds` tries: each ranker by name, with every combination of its `grid`."""
    tried: dict[str, Tried] = {}
    for name, ranker in rankers.items():
        values = grid.get(name, {})
        settings = [dict(zip(values, combination)) for combination in product(*values.values())]
        tried[name] = [(one, clone(ranker).set_params(**one) if one else ranker) for one in settings]
    return tried


def listed(grid: Mapping[str, Any], rankers: Sequence[str], seeded: bool) -> dict[str, dict[str, list[Any]]]:
    """Return a grid with lists of values; only `rankers` have settings, and no random_state if they are `seeded`."""
    for name in grid:
        if name not in rankers:
            trained = ", ".join(map(repr, rankers)) or "none"
            raise InvalidInputError(
                f"grid has settings of {name!r}, but the trained rankers are {trained}. Name one of them",
                argument="grid",
            )
        if seeded and any(key.endswith("random_state") for key in grid[name]):
            raise InvalidInputError(
                f"both seeds and the grid of {name!r} set random_state. Omit one of them", argument="grid"
            )
    return {name: {key: _listed(key, values) for key, values in own.items()} for name, own in grid.items()}


def _listed(key: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable) or not (found := list(values)):
        raise InvalidInputError(argument="grid", expected=f"a list of values for {key}", value=values)
    return found


def fitted_folds(
    tried: Mapping[str, Tried], data: Any, folds: Sequence[Fold], select: Measure, *, refit: bool = False
) -> Iterator[FittedFold]:
    """Fit rankers to each fold; the only loop over folds of cross-validation.

    With `refit`, validation queries only choose settings: rankers do not stop early by them, and are then fitted to
    the training and the validation queries.
    """
    for fold in progress(folds, "folds"):
        found = FittedFold(fold, {}, {}, {})
        for name, own in tried.items():
            found.rankers[name], found.settings[name], found.validation[name] = _fitted(own, data, fold, select, refit)
        yield found


def _fitted(
    tried: Tried, data: Any, fold: Fold, select: Measure, refit: bool
) -> tuple[Any, dict[str, Any], list[float]]:
    """Return the fitted ranker of the best settings, these settings, and the means of all settings."""
    stops, best, means = uses_validation(tried) and not refit, 0, list[float]()
    fitted: Any = None
    if len(tried) > 1 and not len(fold.valid):
        what = f"grid requires validation queries, but fold {fold.name} has none. Pass cv=5, or folds that have them"
        raise InvalidInputError(what, argument="grid", code="no-validation")
    if len(fold.valid) and (stops or len(tried) > 1):
        train, valid = data.take_queries(fold.train), data.take_queries(fold.valid)
        for number, (_, ranker) in enumerate(tried):
            one = fit_ranker(ranker, train, valid if stops else None)
            if len(tried) > 1:
                means.append(float(select.mean(valid.judgements(), ranker_scores(one, valid))))
            if number == 0 or select.improves(means[number], means[best]):
                best, fitted = number, one
        if not refit:
            return fitted, tried[best][0], means
    whole = data.take_queries(without_validation(fold).train)
    return fit_ranker(tried[best][1], whole), tried[best][0], means


def uses_validation(tried: Tried) -> bool:
    """Return whether a ranker stops early, or chooses a setting, by validation queries."""
    return bool(getattr(tried[0][1], "chooses_by_eval_set", False))


def without_validation(fold: Fold) -> Fold:
    """Return the fold with its validation queries among the training queries."""
    return fold._replace(train=np.union1d(fold.train, fold.valid), valid=fold.valid[:0])
