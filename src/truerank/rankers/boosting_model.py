"""The model file of boosted trees: fitted attributes and their check, and parameters without functions."""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.kernel import kernel_array
from truerank.core.random_streams import seed_of
from truerank.core.types import Scorer
from truerank.rankers.column_settings import monotone_signs
from truerank.trees.categories import CategoryTables
from truerank.trees.ensemble import Ensemble
from truerank.trees.leaves.places import FlatPlaces
from truerank.trees.scaling import Scaling

# Fitted arrays: kind of their numbers and dimensions.
TREES = {
    "tree_features_": ("i", 2),
    "tree_borders_": ("f", 2),
    "tree_missing_right_": ("b", 2),
    "tree_values_": ("f", 2),
    "tree_gains_": ("f", 2),
    "validation_scores_": ("f", 1),
}
PLACES = {
    "place_features_": ("i", 1),
    "place_sizes_": ("i", 1),
    "place_lower_": ("f", 1),
    "place_upper_": ("f", 1),
    "place_starts_": ("i", 1),
}
SCALING = dict.fromkeys(("feature_mean_", "feature_scale_", "feature_low_", "feature_high_"), ("f", 1))
CATEGORIES = {
    "category_features_": ("i", 1),
    "category_sizes_": ("i", 1),
    "category_values_": ("f", 1),
    "category_statistics_": ("f", 1),
}
PROPENSITIES = ("click_propensities_", "skip_propensities_")
OF_SOME = ("p_swap_", *PLACES, "start_weights_", *SCALING, *PROPENSITIES, *CATEGORIES)  # only with some settings

Part = TypeVar("Part", Ensemble, FlatPlaces, CategoryTables, Scaling)
_PREFIXES: dict[type, str] = {Ensemble: "tree", FlatPlaces: "place", CategoryTables: "category", Scaling: "feature"}


def keep(ranker: Scorer, part: Ensemble | FlatPlaces | CategoryTables | Scaling) -> None:
    """Keep the arrays of a part of the model as attributes of the ranker."""
    for one in fields(part):
        setattr(ranker, f"{_PREFIXES[type(part)]}_{one.name}_", getattr(part, one.name))


def kept(ranker: Scorer, kind: type[Part]) -> Part:
    """Return a part of the model from the ranker's attributes."""
    return kind(*(kernel_array(getattr(ranker, f"{_PREFIXES[kind]}_{one.name}_")) for one in fields(kind)))


def params_for_file(ranker: Any) -> dict[str, Any]:
    """Return the parameters for a model file, which keeps no functions and no generators."""
    params: dict[str, Any] = {
        name: value for name, value in ranker.get_params(deep=False).items() if name != "callbacks"
    }
    fitted = hasattr(ranker, "tree_values_")  # else what a wrapper was given, of which it has fitted clones
    if not isinstance(ranker.leaves, str) or (fitted and ranker.leaves == "auto"):
        params["leaves"] = ranker.kind_of_leaves.as_dict()
    if callable(ranker.objective):
        named = getattr(ranker.objective, "__name__", type(ranker.objective).__name__)
        params["objective"] = f"the function {named}"
    names = list(getattr(ranker, "feature_names_in_", []))
    if fitted and isinstance(ranker.monotone, dict):
        params["monotone"] = monotone_signs(ranker.monotone, ranker.n_features_in_, names)
    if ranker.interaction_constraints is not None:
        sets = [[k if isinstance(k, str) else int(k) for k in one] for one in ranker.interaction_constraints]
        params["interaction_constraints"] = sets
    if ranker.random_state is not None:  # of a generator, the seed that a fit of a clone draws from it
        params["random_state"] = ranker.seed_ if fitted else seed_of(copy.deepcopy(ranker.random_state))
    return params


def check_attributes(ranker: Any) -> None:
    """Raise `ModelFileError` if an attribute from a file is missing or of another kind."""
    try:
        kind_now = ranker.kind_of_leaves
    except InvalidInputError as error:
        raise ModelFileError(f"ObliviousBoosting: {error}") from error
    kinds = dict(TREES)
    if kind_now.needs_places:
        kinds |= PLACES
    linear = hasattr(ranker, "start_weights_")
    if kind_now.needs_scaling or linear or ranker.start == "linear":
        kinds |= SCALING
    if linear or ranker.start == "linear":
        kinds |= {"start_weights_": ("f", 1)}
    if kind_now.n_values(1) is not None:
        kinds["tree_values_"] = ("f", 3)
    if hasattr(ranker, "category_features_") or ranker.categorical is not None:
        kinds |= CATEGORIES
    for name, (kind, dimensions) in kinds.items():
        array = getattr(ranker, name, None)
        if not isinstance(array, np.ndarray) or array.dtype.kind != kind or array.ndim != dimensions:
            raise ModelFileError(f"ObliviousBoosting: {name} is missing or not an array of {dimensions} dimensions")
    trees = len(ranker.tree_features_)
    if getattr(ranker, "n_iter_", None) != trees or ranker.tree_gains_.shape != (trees, ranker.n_features_in_):
        raise ModelFileError("ObliviousBoosting: n_iter_ and tree_gains_ must be of as many trees as there are")
    numbers = {"start_": np.inf} | ({"p_swap_": 1.0} if kind_now.needs_places else {})
    for name, end in numbers.items():
        value = getattr(ranker, name, None)
        if not isinstance(value, int | float) or not -end < value < end:
            raise ModelFileError(f"ObliviousBoosting: {name} must be a number within its range, got {value!r}")
    history = getattr(ranker, "history_", None)
    if not isinstance(history, dict) or not all(isinstance(part, np.ndarray) for part in history.values()):
        raise ModelFileError("ObliviousBoosting: history_ must hold arrays")
