"""The model file of boosted trees: fitted attributes, and parameters without functions."""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import Any, TypeVar

from truerank.core.kernel import kernel_array
from truerank.core.random_streams import seed_of
from truerank.core.types import Scorer
from truerank.rankers.column_settings import monotone_signs
from truerank.trees.categories import CategoryTables
from truerank.trees.ensemble import Ensemble
from truerank.trees.leaves.places import FlatPlaces
from truerank.trees.scaling import Scaling

Part = TypeVar("Part", Ensemble, FlatPlaces, CategoryTables, Scaling)
_PREFIXES: dict[type, str] = {Ensemble: "tree", FlatPlaces: "place", CategoryTables: "category", Scaling: "feature"}


def _names(part: type) -> tuple[str, ...]:
    return tuple(f"{_PREFIXES[part]}_{one.name}_" for one in fields(part))


# Fitted arrays.
TREES = (*_names(Ensemble), "tree_gains_", "validation_scores_")
CATEGORIES = _names(CategoryTables)
PROPENSITIES = ("click_propensities_", "skip_propensities_")
# Only with some settings.
OF_SOME = ("p_swap_", *_names(FlatPlaces), "start_weights_", *_names(Scaling), *PROPENSITIES, *CATEGORIES)


def keep(ranker: Scorer, part: Ensemble | FlatPlaces | CategoryTables | Scaling) -> None:
    """Keep the arrays of a part of the model as attributes of the ranker."""
    for name, one in zip(_names(type(part)), fields(part)):
        setattr(ranker, name, getattr(part, one.name))


def kept(ranker: Scorer, kind: type[Part]) -> Part:
    """Return a part of the model from the ranker's attributes."""
    return kind(*(kernel_array(getattr(ranker, name)) for name in _names(kind)))


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
