"""Keep fitted trees as attributes of the ranker: scores, the model file, and continued training."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from truerank.core.checks import is_sparse
from truerank.core.errors import InvalidInputError
from truerank.core.float32 import numbers_of
from truerank.core.random_streams import seed_of
from truerank.core.schema import check_fields, spelled
from truerank.core.types import Matrix
from truerank.matrices.bundles import add_in_dense_blocks
from truerank.rankers.column_settings import CategoryColumns, monotone_signs
from truerank.trees.boosting import Progress
from truerank.trees.categories import CategoryTables
from truerank.trees.ensemble import Ensemble
from truerank.trees.kept_parts import NAMES, keep, kept, kept_or_none
from truerank.trees.leaves.base import Leaves
from truerank.trees.leaves.places import FlatPlaces, PlaceTable
from truerank.trees.linear_start import LinearStart, Start
from truerank.trees.training_columns import Scaling, TrainingColumns

_MAY_CHANGE = ("n_estimators", "patience", "warm_start", "verbose", "n_jobs", "callbacks")


def begun_progress(ranker: Any, n_features: int) -> Progress:
    """Return the trees that a warm start continues, after a check of their parameters, or no trees."""
    if not (ranker.warm_start and hasattr(ranker, "tree_values_")):
        ranker.seed_ = seed_of(ranker.random_state)
        return Progress()
    have = len(ranker.tree_values_)
    if ranker.n_estimators < have:
        raise InvalidInputError(
            f"warm_start: n_estimators={ranker.n_estimators} is less than the {have} trees of the model. Raise "
            "n_estimators, or set warm_start=False",
            code="fewer-trees",
        )
    now = fit_settings(ranker)
    before = getattr(ranker, "_fitted_with", now)
    _check_same(
        "warm_start",
        *((name, before[name], now[name], "other-parameters") for name in now),
        ("depth", ranker.tree_features_.shape[1], ranker.depth, "other-depth"),
        ("number of features", ranker.tree_gains_.shape[1], n_features, "width"),
    )
    progress = trees_of(ranker)
    progress.valid, progress.change = (
        part.tolist()[:have] for part in (ranker.validation_scores_, ranker.history_["objective"])
    )
    return progress


def check_same_columns(ranker: Any, leaves: Leaves, columns: TrainingColumns, p_swap: float) -> None:
    """Raise an error if X differs from the training rows of the trees of a warm start."""
    same = not leaves.needs_places or (p_swap == ranker.p_swap_ and kept(ranker, FlatPlaces).hold(columns.places))
    if not same or (columns.scaling is not None and not np.array_equal(columns.scaling.mean, ranker.feature_mean_)):
        raise InvalidInputError(
            "warm_start: X has other rows than the fit of the model. Fuzzy and polynomial leaves can only be "
            "continued with the same rows. Set warm_start=False to start a new fit",
            code="other-rows",
        )


def take_model(ranker: Any, begun: Any, n_features: int) -> None:
    """Copy the trees of a fitted model, and the attributes that they need, to the ranker."""
    if not hasattr(begun, "tree_values_"):
        raise InvalidInputError(
            f"init_model must be a fitted ObliviousBoosting, got {begun!r:.80}. Pass a fitted one",
            argument="init_model",
        )
    if ranker.leaves == "auto":
        ranker.leaves_ = begun.kind_of_leaves
    kind, theirs = ranker.kind_of_leaves, begun.kind_of_leaves
    same = type(kind) is type(theirs) and all(getattr(kind, one) == getattr(theirs, one) for one in kind.scored_by)
    names, own = (getattr(one, "feature_names_in_", ()) for one in (begun, ranker))
    _check_same(
        "init_model",
        ("number of features", begun.n_features_in_, n_features, "width"),
        *((f"name of column {k}", a, b, "feature-names") for k, (a, b) in enumerate(zip(names, own))),
        ("leaves", theirs, theirs if same else kind, "other-leaves"),
        ("depth", begun.tree_features_.shape[1], ranker.depth, "other-depth"),
        ("categorical columns", begun.categorical is not None, ranker.categorical is not None, "categories"),
        ("start", begun.start, ranker.start, "other-start"),
    )
    if getattr(ranker, "category_names_", {}) not in ({}, getattr(begun, "category_names_", {})):
        raise InvalidInputError(
            "X and init_model number categories differently. Read the table with categories=init_model.category_names",
            code="categories",
        )
    ranker.seed_ = seed_of(ranker.random_state)
    for name in ("start_", *TREES, "history_", "n_iter_", "category_names_", *OF_SOME):
        ranker.__dict__.pop(name, None)
        if hasattr(begun, name):
            setattr(ranker, name, getattr(begun, name))
    ranker._prepare(kept(ranker, Ensemble))


def _check_same(argument: str, *facts: tuple[str, Any, Any, str]) -> None:
    """Raise an error for the first fact, (name, value in the model, value now, code), whose two values differ."""
    for name, before, now, code in facts:
        if before != now:
            raise InvalidInputError(
                f"{argument}: {name} was {before} in the fit of the model and is {now} now. Pass the former value, or "
                "start a new fit",
                argument=argument,
                code=code,
            )


@dataclass(frozen=True)
class FittedParts:
    """A fitted model whose trees are continued, with what a fit reads of it."""

    ranker: Any
    progress: Progress
    begun: bool  # whether the trees were fitted to other data
    start: Start
    p_swap: float
    places: dict[int, PlaceTable]
    scaling: Scaling | None
    tables: CategoryTables | None

    @classmethod
    def of(cls, ranker: Any, progress: Progress, begun: bool) -> FittedParts:
        """Return the parts of a fitted `FittedTrees`."""
        flat, scaling = kept_or_none(ranker, FlatPlaces), kept_or_none(ranker, Scaling)
        places = {} if flat is None else dict(zip(flat.features.tolist(), flat.tables()))
        tables, p_swap = kept_or_none(ranker, CategoryTables), getattr(ranker, "p_swap_", 0.0)
        return cls(ranker, progress, begun, ranker._start(), p_swap, places, scaling, tables)


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


def _texts(kind: Any) -> dict[str, str]:
    """Return the declarations of a part's arrays (`core/schema.py`) by their names in a ranker."""
    texts = spelled(kind.FIELDS)
    return {name: texts[one.name] for name, one in zip(NAMES[kind], fields(kind))}


# Fitted arrays.
TREES = (*NAMES[Ensemble], "tree_gains_", "validation_scores_")
CATEGORIES = NAMES[CategoryTables]
PROPENSITIES = ("click_propensities_", "skip_propensities_")
# Only with some settings.
OF_SOME = ("p_swap_", *NAMES[FlatPlaces], "start_weights_", "statistic_columns_", *NAMES[Scaling],
           *PROPENSITIES, *CATEGORIES)  # fmt: skip


class FittedTrees(CategoryColumns):
    """Base class of boosters, with scores of fitted trees, also tree by tree, and the model file."""

    model_attributes: ClassVar[dict[str, str]] = {
        "n_iter_": "int in [0, inf]",
        "start_": "float",
        **_texts(Ensemble),
        "tree_gains_": "float[n_iter_, p] unbounded",
        "validation_scores_": "float[] unbounded",
        "history_": "dict of float[] unbounded",
        "seed_": "int?",
        "category_names_": "dict of list[] of any?",
        "p_swap_": "float in (-1, 1)?",
        **{name: f"{text}?" for kind in (FlatPlaces, Scaling, CategoryTables) for name, text in _texts(kind).items()},
        "start_weights_": "float[p]?",
        "statistic_columns_": "list[] of int in [0, p)?",
        **dict.fromkeys(PROPENSITIES, "any?"),
    }

    leaves: Any
    n_jobs: int | None
    start_: float
    p_swap_: float
    n_iter_: int
    tree_gains_: np.ndarray
    tree_features_: np.ndarray
    validation_scores_: np.ndarray
    history_: dict[str, np.ndarray]
    feature_mean_: np.ndarray

    @property
    def kind_of_leaves(self) -> Leaves:
        """Leaves as an object."""
        raise NotImplementedError

    def encoded(self, X: np.ndarray) -> np.ndarray:
        """Return X (n, p) with the statistics of categories instead of their numbers."""
        tables = kept_or_none(self, CategoryTables)
        return X if tables is None else tables.encode(X)

    def category_statistics(self) -> dict[Any, dict[Any, float]]:
        """Return the statistic of each category, by column and category, with names if there are any.

        A category without an entry has the statistic of the entry None, else 0. Missing values stay missing, also in a
        model that reads missing numbers as 0.
        """
        check_is_fitted(self)
        tables, names = kept_or_none(self, CategoryTables), self.category_names
        if tables is None:
            return {}
        columns = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        ends = np.cumsum(tables.sizes)[:-1]
        found = {}
        for k, numbers, own in zip(
            tables.features.tolist(), np.split(tables.values, ends), np.split(tables.statistics, ends)
        ):
            texts = names.get(str(columns[k]))
            kinds = numbers.tolist() if texts is None else [texts[int(n)] if n >= 0 else None for n in numbers]
            found[columns[k]] = dict(zip(kinds, own.tolist()))
        return found

    def over_statistics(self) -> FittedTrees:
        """Return the same trees as a ranker of `encoded` rows, for exports to programs without categories.

        Its scores of `encoded(X)` are those of this model for X, also of rows with missing values.
        """
        check_is_fitted(self)
        plain, tables = copy.copy(self), kept_or_none(self, CategoryTables)
        if tables is None:
            return plain
        for name in ("category_names_", "training_sketch_", *CATEGORIES):  # the sketch is of rows with categories
            plain.__dict__.pop(name, None)
        plain.categorical, plain.statistic_columns_ = None, tables.features.tolist()
        statistics = dict(zip(tables.features.tolist(), np.split(tables.statistics, np.cumsum(tables.sizes)[:-1])))
        plain.close_columns_ = [
            *(k for k in getattr(self, "close_columns_", []) if k not in statistics),
            *(k for k, own in statistics.items() if numbers_of(own[:, None])[1]),
        ]
        plain.inputs_ = "close" if plain.close_columns_ else "float64"  # statistics are any numbers
        return plain

    def _predict(self, X: Any) -> np.ndarray:
        X = self.encoded(X)
        return self._advance(X, self._start().scores(X, self.n_jobs))

    def _advance(self, X: Any, scores: np.ndarray, trees: slice = slice(None)) -> np.ndarray:
        """Add the values of `trees` to the scores (n,) of `encoded` rows."""
        predict, n_jobs = self._predictor().predict, self.n_jobs
        if is_sparse(X):
            return add_in_dense_blocks(X, lambda rows, own: predict(rows, n_jobs, own, trees), scores)
        return np.asarray(predict(X, n_jobs, scores, trees))

    def _feature_shares(self) -> np.ndarray:
        return np.asarray(self.tree_gains_.sum(axis=0))

    def staged_predict(self, X: Matrix) -> Iterator[np.ndarray]:
        """Yield the scores (n,) after each tree, in the caller's row order."""
        check_is_fitted(self)
        rows, restore = self._rows_to_score(X)
        for scores in self._staged(rows):
            yield restore(scores).copy()

    def _staged(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the scores after each tree, always in the same array."""
        X = self.encoded(X)
        scores = self._start().scores(X, self.n_jobs)
        for t in range(self.n_iter_):
            yield self._advance(X, scores, slice(t, t + 1))

    def _keep(self, grown: Any) -> None:
        """Store the trees of a `Grown` and the attributes that they need."""
        progress, start, columns, leaves = grown.progress, grown.start, grown.columns, self.kind_of_leaves
        for name in OF_SOME:
            self.__dict__.pop(name, None)  # of an earlier fit
        self.start_ = start.constant
        if start.linear is not None:
            self.start_weights_ = start.linear.weights
        if columns.scaling is not None:
            keep(self, columns.scaling)
        trees = Ensemble(*map(np.stack, zip(*progress.trees)))
        keep(self, trees)
        self.tree_gains_ = np.stack(progress.gains)
        self.validation_scores_ = np.array(progress.valid, dtype=np.float64)
        change = np.array(progress.change, dtype=np.float64)
        self.history_ = {"objective": change, "validation": self.validation_scores_}
        self.n_iter_ = len(progress.trees)
        if leaves.needs_places:
            used = np.unique(self.tree_features_)
            self.p_swap_ = grown.p_swap
            keep(self, FlatPlaces.of(used, [columns.places[k] for k in used]))
        if grown.tables is not None:
            keep(self, grown.tables)
        for name, values in grown.propensities.items():
            setattr(self, f"{name}_", values)
        self._prepare(trees)
        self._fitted_with = fit_settings(self)

    def model_params(self: Any) -> dict[str, Any]:
        """Return the parameters for a model file, which keeps no functions and no generators."""
        params: dict[str, Any] = {
            name: value for name, value in self.get_params(deep=False).items() if name != "callbacks"
        }
        fitted = hasattr(self, "tree_values_")  # else what a wrapper was given, of which it has fitted clones
        if not isinstance(self.leaves, str) or (fitted and self.leaves == "auto"):
            params["leaves"] = self.kind_of_leaves.as_dict()
        if callable(self.objective):
            named = getattr(self.objective, "__name__", type(self.objective).__name__)
            params["objective"] = f"the function {named}"
        names = list(getattr(self, "feature_names_in_", []))
        if fitted and isinstance(self.monotone, dict):
            params["monotone"] = monotone_signs(self.monotone, self.n_features_in_, names)
        if self.interaction_constraints is not None:
            sets = [[k if isinstance(k, str) else int(k) for k in one] for one in self.interaction_constraints]
            params["interaction_constraints"] = sets
        if self.random_state is not None:  # of a generator, the seed that a fit of a clone draws from it
            params["random_state"] = self.seed_ if fitted else seed_of(copy.deepcopy(self.random_state))
        return params

    def _start(self) -> Start:
        weights = getattr(self, "start_weights_", None)
        return Start(self.start_, None if weights is None else LinearStart(weights, kept(self, Scaling)))

    def _prepare(self, trees: Ensemble) -> None:
        """Make the predictor at the first prediction, with the leaves of now."""
        self._predictor = cache(partial(self.kind_of_leaves.predictor, trees, self))

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "_predictor"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "tree_values_"):
            self._prepare(kept(self, Ensemble))

    def check_model(self) -> None:
        """Check after loading that the arrays of the trees fit together."""
        super().check_model()
        kind, p = self.kind_of_leaves, self.n_features_in_
        trees = kept(self, Ensemble)
        trees.check(p, kind.n_values(trees.depth))
        if isinstance(self.leaves, dict):
            self.leaves = kind
        linear = hasattr(self, "start_weights_") or self.start == "linear"
        if kind.needs_scaling or linear:
            kept(self, Scaling).check(p)
        if linear:
            check_fields(self, {"start_weights_": "float[p]"})
        if hasattr(self, "category_features_") or self.categorical is not None:
            kept(self, CategoryTables).check(p)
        if kind.needs_places:
            check_fields(self, {"p_swap_": "float"})
            kept(self, FlatPlaces).check(p, trees)
        self._prepare(trees)
