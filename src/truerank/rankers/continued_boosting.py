"""Continue boosting from existing trees: the ranker's own (`warm_start`), or those of another model (`init_model`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of
from truerank.rankers.boosting_model import OF_SOME, TREES
from truerank.trees.boosting import Progress
from truerank.trees.leaves.base import Leaves
from truerank.trees.training_columns import TrainingColumns

_MAY_CHANGE = ("n_estimators", "patience", "warm_start", "verbose", "n_jobs", "callbacks")


def begun_progress(ranker: Any, n_features: int) -> Progress:
    """Return the trees that a warm start continues, after a check of their parameters, or no trees."""
    if not (ranker.warm_start and hasattr(ranker, "tree_values_")):
        ranker.seed_ = seed_of(ranker.random_state)
        return Progress()
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
                    f"warm_start: {name} was {before[name]} and is {value}; a fit can only be continued with the "
                    "same parameters. Set warm_start=False to start anew"
                )
    if ranker.tree_features_.shape[1] != ranker.depth:
        raise InvalidInputError(
            f"warm_start: the model's trees have depth {ranker.tree_features_.shape[1]}, got depth={ranker.depth}"
        )
    if ranker.tree_gains_.shape[1] != n_features:
        raise InvalidInputError(
            f"warm_start: the model was fitted to {ranker.tree_gains_.shape[1]} features, X has {n_features}"
        )
    progress = trees_of(ranker)
    progress.valid, progress.change = (
        part.tolist()[:have] for part in (ranker.validation_scores_, ranker.history_["objective"])
    )
    return progress


def check_same_columns(ranker: Any, leaves: Leaves, columns: TrainingColumns, p_swap: float) -> None:
    """Raise an error if X differs from the training rows of the trees of a warm start."""
    same = not leaves.needs_places or (p_swap == ranker.p_swap_ and ranker._flat_places().hold(columns.places))
    if not same or (columns.scaling is not None and not np.array_equal(columns.scaling.mean, ranker.feature_mean_)):
        raise InvalidInputError(
            "warm_start: X is not what the model's trees were fitted to; fuzzy and polynomial leaves can only be "
            "continued with the same rows. Set warm_start=False to start anew"
        )


def take_model(ranker: Any, begun: Any, n_features: int) -> None:
    """Copy the trees of a fitted model, and the attributes that they need, to the ranker."""
    if begun.n_features_in_ != n_features:
        raise InvalidInputError(f"init_model was fitted to {begun.n_features_in_} features, X has {n_features}")
    names = getattr(begun, "feature_names_in_", None)
    own = getattr(ranker, "feature_names_in_", None)
    if names is not None and own is not None and list(names) != list(own):
        wrong = next(place for place, (a, b) in enumerate(zip(names, own)) if a != b)
        raise InvalidInputError(
            f"init_model: its column {wrong} was {names[wrong]!r} and is {own[wrong]!r}; name the columns as then"
        )
    if isinstance(ranker.leaves, str) and ranker.leaves == "auto":
        ranker.leaves_ = begun.kind_of_leaves
    kind, theirs = ranker.kind_of_leaves, begun.kind_of_leaves
    scored_by = kind.scored_by
    if type(kind) is not type(theirs) or any(getattr(kind, name) != getattr(theirs, name) for name in scored_by):
        raise InvalidInputError(f"init_model has leaves {theirs}, this ranker {kind}: they must be the same")
    if begun.tree_features_.shape[1] != ranker.depth:
        raise InvalidInputError(
            f"init_model has trees of depth {begun.tree_features_.shape[1]}, this ranker depth={ranker.depth}"
        )
    if (ranker.categorical is not None) != hasattr(begun, "category_features_"):
        raise InvalidInputError("init_model: `categorical` must name the columns that it named then")
    coded = getattr(ranker, "category_names_", None)
    if coded is not None and coded != getattr(begun, "category_names_", {}):
        raise InvalidInputError(
            "init_model: its categories have other numbers; read the table with categories=init_model.category_names"
        )
    if (ranker.start == "linear") != hasattr(begun, "start_weights_"):
        raise InvalidInputError(f"init_model starts from {begun.start!r}, this ranker from {ranker.start!r}")
    ranker.seed_ = seed_of(ranker.random_state)
    for name in ("start_", *TREES, "history_", "n_iter_", "category_names_", *OF_SOME):
        ranker.__dict__.pop(name, None)
        if hasattr(begun, name):
            setattr(ranker, name, getattr(begun, name))
    ranker._prepare()


def trees_of(ranker: Any) -> Progress:
    """Return the trees of a fitted ranker without a history, since they may have been fitted to other data."""
    arrays = (ranker.tree_features_, ranker.tree_borders_, ranker.tree_missing_right_, ranker.tree_values_)
    return Progress(list(zip(*arrays)), list(ranker.tree_gains_))


def fit_settings(ranker: Any) -> dict[str, str]:
    """Return the parameters that a warm start must not change, as texts that can be compared."""
    settings = ranker.get_params(deep=False)
    for name in _MAY_CHANGE:
        settings.pop(name, None)
    return dict(zip(settings, map(repr, settings.values())))
