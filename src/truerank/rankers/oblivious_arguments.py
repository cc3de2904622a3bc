"""The arguments of `ObliviousBoosting`, checked: what came, what was expected, what to do."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.trees.boosting import Plan, Progress
from truerank.trees.grower import GrowthRules

MAX_DEPTH = 12
LARGEST = 1e100  # of grades and weights: squares of sums of them stay finite
MAY_CHANGE = {"n_estimators", "patience", "warm_start", "verbose", "n_jobs"}  # between a fit and its continuation


def swap_probability(ranker: Any, n: int) -> float:
    """p_swap for n rows, from `p_swap` or `fuzziness`."""
    check_choice(ranker.ties, "ties", ("near", "average"))
    if ranker.p_swap is not None:
        if ranker.fuzziness is not None:
            raise InvalidInputError("give fuzziness or p_swap, not both: p_swap = 1 - 1 / (fuzziness * n)")
        return check_number(ranker.p_swap, "p_swap", minimum=0.0, maximum=1.0, open_maximum=True)
    width = 0.15 if ranker.fuzziness is None else check_number(ranker.fuzziness, "fuzziness", minimum=0.0)
    if width == 0.0:
        return 0.0
    return min(max(0.0, 1.0 - 1.0 / (width * n)), float(np.nextafter(1.0, 0.0)))


def plan_of(ranker: Any, monotone: np.ndarray | None) -> Plan:
    """The settings of the boosting loop."""
    n_estimators = check_positive_int(ranker.n_estimators, "n_estimators")
    depth = check_positive_int(ranker.depth, "depth")
    if depth > MAX_DEPTH:
        raise InvalidInputError(f"depth must be at most {MAX_DEPTH} (a tree has 2^depth leaves), got {depth}")
    if ranker.bootstrap is not None:
        check_choice(ranker.bootstrap, "bootstrap", ("row", "query"))
    l2 = ranker.l2
    if l2 is None:
        l2 = 0.0 if ranker.objective == "mse" else 1.0
    rules = GrowthRules(
        depth,
        check_number(l2, "l2", minimum=0.0),
        check_number(ranker.small_leaf_penalty, "small_leaf_penalty", minimum=0.0),
        monotone,
    )
    return Plan(
        n_estimators,
        check_number(ranker.learning_rate, "learning_rate", minimum=0.0, open_minimum=True),
        rules,
        ranker.bootstrap or "row",
        ranker.bootstrap is not None and bool(ranker.replace),
        check_number(ranker.subsample, "subsample", minimum=0.0, maximum=1.0, open_minimum=True),
        check_number(ranker.feature_fraction, "feature_fraction", minimum=0.0, maximum=1.0, open_minimum=True),
        None if ranker.patience is None else check_positive_int(ranker.patience, "patience"),
        check_positive_int(ranker.verbose, "verbose", 0),
        ranker.seed_,
    )


def monotone_signs(given: Any, n_features: int, names: list[Any]) -> np.ndarray | None:
    """-1, 0 or 1 for each feature, int8 (p,); None without constraints."""
    if given is None:
        return None
    message = (
        f"monotone must give -1, 0 or 1 for each of the {n_features} features, or a dict of column number or name to "
        f"these; got {given!r}"
    )
    if isinstance(given, dict):
        signs = np.zeros(n_features)
        for key, value in given.items():
            if isinstance(key, str):
                if key not in names:
                    have = "which X does not have" if names else "and X has no names; give column numbers from 0"
                    raise InvalidInputError(f"monotone names the feature {key!r}, {have}")
                key = names.index(key)
            elif not isinstance(key, numbers.Integral) or not 0 <= int(key) < n_features:
                raise InvalidInputError(f"monotone names the column {key!r}; X has the columns 0 … {n_features - 1}")
            if not isinstance(value, numbers.Real):
                raise InvalidInputError(message)
            signs[int(key)] = float(value)
    else:
        try:
            signs = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(message) from error
    if signs.shape != (n_features,) or not np.isin(signs, (-1, 0, 1)).all():
        raise InvalidInputError(message)
    return signs.astype(np.int8) if signs.any() else None


def row_weights(given: Any, data: RankingData) -> np.ndarray | None:
    """Weight of each row (n,) in grouped order: sample weight times query weight."""
    weight = None if data.query_weight is None else np.repeat(data.query_weight, np.diff(data.offsets))
    if given is not None:
        own = np.asarray(given, dtype=np.float64)
        if own.shape != (data.n_rows,):
            raise InvalidInputError(f"sample_weight must have shape ({data.n_rows},), got {own.shape}")
        if not np.isfinite(own).all() or own.min() < 0:
            raise InvalidInputError("sample_weight must be finite and >= 0")
        own = own if data.order is None else own[data.order]
        weight = own if weight is None else own * weight
    if weight is None:
        return None
    largest = float(weight.max())
    if largest <= 0:
        raise InvalidInputError("Sample weights must contain at least one non-zero number")
    if not 1.0 / LARGEST <= largest <= LARGEST:
        raise InvalidInputError(
            f"the largest weight of a row is {largest:g}; it must lie between {1.0 / LARGEST:g} and {LARGEST:g}: "
            "divide all weights by it"
        )
    return weight


def check_grades(y: np.ndarray) -> None:
    """Raise where sums of squared grades would overflow."""
    largest = float(np.abs(y).max(initial=0.0))
    if largest > LARGEST:
        raise InvalidInputError(f"y must lie within ±{LARGEST:g}, got a magnitude of {largest:g}: scale it")


def refuse_categories(X: Any) -> None:
    """An error for a data frame's columns that hold categories, text or dates."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return
    for name, dtype in zip(X.columns, X.dtypes):
        kind = str(dtype).lower()
        if kind.startswith(("category", "categorical", "enum", "object", "str", "date", "time", "duration", "period")):
            raise InvalidInputError(
                f"column {name!r} has the type {dtype}: ObliviousBoosting has no categorical features; encode it as "
                "numbers first, one column for each category or the mean grade of each"
            )


def trees_so_far(ranker: Any, n_features: int) -> Progress:
    """The trees that a warm start continues from, which must be of the same parameters and data."""
    have = len(ranker.tree_values_)
    if check_positive_int(ranker.n_estimators, "n_estimators") < have:
        raise InvalidInputError(
            f"warm_start: n_estimators={ranker.n_estimators} is less than the {have} trees that the model has"
        )
    before = getattr(ranker, "_fitted_with", None)
    if before is not None:
        for name, value in fit_settings(ranker).items():
            if value != before[name]:
                raise InvalidInputError(
                    f"warm_start: {name} was {before[name]} and is {value}; a fit can only be continued with the same "
                    "parameters. Set warm_start=False to start anew"
                )
    if ranker.tree_features_.shape[1] != ranker.depth:
        raise InvalidInputError(
            f"warm_start: the model's trees have depth {ranker.tree_features_.shape[1]}, got depth={ranker.depth}"
        )
    if ranker.tree_gains_.shape[1] != n_features:
        raise InvalidInputError(
            f"warm_start: the model was fitted to {ranker.tree_gains_.shape[1]} features, X has {n_features}"
        )
    trees: list[Any] = list(
        zip(ranker.tree_features_, ranker.tree_borders_, ranker.tree_missing_right_, ranker.tree_values_)
    )
    return Progress(trees, list(ranker.tree_gains_), ranker.valid_scores_.tolist()[:have])


def fit_settings(ranker: Any) -> dict[str, str]:
    """The parameters that must stay for a warm start, in a form that can be compared."""
    return {name: repr(value) for name, value in ranker.get_params(deep=False).items() if name not in MAY_CHANGE}


def file_params(ranker: Any) -> dict[str, Any]:
    """The constructor's arguments as a model file can keep them."""
    params = ranker.get_params(deep=False)
    if callable(ranker.objective):
        params["objective"] = f"the function {getattr(ranker.objective, '__name__', type(ranker.objective).__name__)}"
    if isinstance(ranker.monotone, dict):
        names = list(getattr(ranker, "feature_names_in_", []))
        params["monotone"] = monotone_signs(ranker.monotone, ranker.n_features_in_, names)
    if ranker.random_state is not None:
        params["random_state"] = ranker.seed_
    return params
