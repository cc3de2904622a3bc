"""The fitted model of boosted trees: what is kept, saved, checked, and how it scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from truerank.core.errors import ModelFileError
from truerank.data.ranking_data import RankingData
from truerank.inspection.importance import permutation_importance
from truerank.rankers.base import Ranker
from truerank.rankers.oblivious_arguments import file_params, refuse_categories
from truerank.trees.boosting import Progress
from truerank.trees.ensemble import Ensemble
from truerank.trees.leaves.fuzzy import FlatPlaces, FuzzyPredictor
from truerank.trees.leaves.places import PlaceTable
from truerank.trees.leaves.polynomial import PolynomialPredictor, monomial_table
from truerank.trees.linear_start import LinearStart, Start
from truerank.trees.predictor import ConstantPredictor, writable
from truerank.trees.scaling import Scaling, check_scaling

LEAVES = ("constant", "fuzzy", "polynomial")
# Fitted arrays: kind of their numbers and dimensions.
_TREES = {
    "tree_features_": ("i", 2),
    "tree_borders_": ("f", 2),
    "tree_missing_right_": ("b", 2),
    "tree_values_": ("f", 2),
    "tree_gains_": ("f", 2),
    "valid_scores_": ("f", 1),
}
_PLACES = {
    "place_features_": ("i", 1),
    "place_sizes_": ("i", 1),
    "place_lower_": ("f", 1),
    "place_upper_": ("f", 1),
    "place_starts_": ("i", 1),
}
_SCALING = dict.fromkeys(("feature_mean_", "feature_scale_", "feature_low_", "feature_high_"), ("f", 1))
_OF_SOME = ("p_swap_", *_PLACES, "start_weights_", *_SCALING)  # only with some leaves or a linear start


class TreesModel(Ranker):
    """What `ObliviousBoosting` does once it is fitted."""

    model_attributes: ClassVar[tuple[str, ...]] = (
        *Ranker.model_attributes,
        "start_",
        *_TREES,
        "n_iter_",
        "seed_",
        *_OF_SOME,
    )
    allow_nan = True

    start_: float
    feature_mean_: np.ndarray

    def _checked(self, X: Any, *, reset: bool) -> Any:
        refuse_categories(X)
        return super()._checked(X, reset=reset)

    def _predict(self, X: Any) -> np.ndarray:
        return self._predictor.predict(X, self.n_jobs, self._start().scores(X, self.n_jobs))

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each feature in the gain of all levels of all trees (p,), summing to 1 (0 without any gain)."""
        check_is_fitted(self)
        gains = self.tree_gains_.sum(axis=0)
        total = gains.sum()
        return gains / total if total > 0 else gains

    def permutation_importance(self, data: RankingData, *, repeats: int = 5, random_state: Any = None) -> np.ndarray:
        """Loss of the ranker's measure when a feature is shuffled within queries (p,): see `importance`."""
        check_is_fitted(self)
        return permutation_importance(
            self, data, measure=self.measure, convention=self.convention, repeats=repeats, random_state=random_state
        )

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Scores (n,) after each tree, in the caller's row order; the last are `predict`'s."""
        check_is_fitted(self)
        restore: Callable[[np.ndarray], np.ndarray]
        if isinstance(X, RankingData):
            self._check_columns(X)
            matrix, restore = X.X, X.restore
        else:
            matrix, restore = self._checked(X, reset=False), lambda values: values
        for scores in self._staged(matrix):
            yield restore(scores).copy()

    def _staged(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Scores after each tree, in one array that is advanced."""
        scores = self._start().scores(X, self.n_jobs)
        for t in range(self.n_iter_):
            yield self._predictor.predict(X, self.n_jobs, scores, slice(t, t + 1))

    # The model.

    def _keep(self, progress: Progress, start: Start, scaling: Scaling | None) -> None:
        """Keep the trees, what they start from, and how features are standardised."""
        self.start_ = start.constant
        for name in _OF_SOME:
            self.__dict__.pop(name, None)  # of an earlier fit
        if start.linear is not None:
            self.start_weights_ = start.linear.weights
        if scaling is not None:
            self.feature_mean_, self.feature_scale_ = scaling.mean, scaling.scale
            self.feature_low_, self.feature_high_ = scaling.low, scaling.high
        names = ("tree_features_", "tree_borders_", "tree_missing_right_", "tree_values_")
        for name, arrays in zip(names, zip(*progress.trees)):
            setattr(self, name, np.stack(arrays))
        self.tree_gains_ = np.stack(progress.gains)
        self.valid_scores_ = np.array(progress.valid)
        self.n_iter_ = len(progress.trees)

    def model_params(self) -> dict[str, Any]:
        """Parameters for a model file, which keeps neither functions nor generators nor dicts by number.

        A loaded model predicts all the same; to go on training it, set `objective` to the function again.
        """
        return file_params(self)

    def _keep_places(self, places: list[PlaceTable], p_swap: float) -> None:
        """Keep the place tables of the features in use."""
        used = np.unique(self.tree_features_)
        flat = FlatPlaces.of(used, [places[k] for k in used])
        self.p_swap_ = p_swap
        for name in ("features", "sizes", "lower", "upper", "starts"):
            setattr(self, f"place_{name}_", getattr(flat, name))

    def _flat_places(self) -> FlatPlaces:
        names = ("features", "sizes", "lower", "upper", "starts")
        return FlatPlaces(*(writable(getattr(self, f"place_{name}_")) for name in names))

    def _ensemble(self) -> Ensemble:
        names = ("tree_features_", "tree_borders_", "tree_missing_right_", "tree_values_")
        return Ensemble(*(writable(getattr(self, name)) for name in names))

    def _scaling(self) -> Scaling:
        return Scaling(self.feature_mean_, self.feature_scale_, self.feature_low_, self.feature_high_)

    def _start(self) -> Start:
        weights = getattr(self, "start_weights_", None)
        return Start(self.start_, None if weights is None else LinearStart(weights, self._scaling()))

    def _make_predictor(self, ensemble: Ensemble) -> Any:
        if self.leaves == "fuzzy":
            return FuzzyPredictor(ensemble, self._flat_places(), self.p_swap_, self.ties)
        if self.leaves == "polynomial":
            return PolynomialPredictor(ensemble, self._scaling(), self.degree)
        return ConstantPredictor(ensemble)

    def _prepare(self) -> None:
        self._predictor = self._make_predictor(self._ensemble())

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "_predictor"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "tree_values_"):
            self._prepare()

    def _check_fitted(self) -> None:
        """Raise `ModelFileError` when an attribute from a file is missing or of another kind."""
        if self.leaves not in LEAVES:
            raise ModelFileError(f"ObliviousBoosting: leaves must be one of {', '.join(LEAVES)}, got {self.leaves!r}")
        kinds = dict(_TREES)
        if self.leaves == "fuzzy":
            kinds |= _PLACES
        linear = hasattr(self, "start_weights_")
        if self.leaves == "polynomial" or linear or self.start == "linear":
            kinds |= _SCALING
        if linear or self.start == "linear":
            kinds |= {"start_weights_": ("f", 1)}
        if self.leaves == "polynomial":
            kinds["tree_values_"] = ("f", 3)
        for name, (kind, dimensions) in kinds.items():
            array = getattr(self, name, None)
            if not isinstance(array, np.ndarray) or array.dtype.kind != kind or array.ndim != dimensions:
                raise ModelFileError(f"ObliviousBoosting: {name} is missing or not an array of {dimensions} dimensions")
        trees = len(self.tree_features_)
        if getattr(self, "n_iter_", None) != trees or self.tree_gains_.shape != (trees, self.n_features_in_):
            raise ModelFileError("ObliviousBoosting: n_iter_ and tree_gains_ must be of as many trees as there are")
        numbers = {"start_": np.inf} | ({"p_swap_": 1.0} if self.leaves == "fuzzy" else {})
        for name, end in numbers.items():
            value = getattr(self, name, None)
            if not isinstance(value, int | float) or not -end < value < end:
                raise ModelFileError(f"ObliviousBoosting: {name} must be a number within its range, got {value!r}")
        if self.leaves == "polynomial" and (type(self.degree) is not int or self.degree < 0):
            raise ModelFileError(f"ObliviousBoosting: degree must be a whole number >= 0, got {self.degree!r}")

    def check_model(self) -> None:
        """Called after loading: the arrays of the trees must fit together."""
        super().check_model()
        self._check_fitted()
        monomials = None
        if self.leaves == "polynomial":
            monomials = len(monomial_table(self._ensemble().depth, self.degree))
        self._ensemble().check(self.n_features_in_, monomials)
        if self.leaves == "polynomial" or hasattr(self, "start_weights_"):
            check_scaling(self._scaling(), self.n_features_in_)
            self._start().check(self.n_features_in_)
        if self.leaves == "fuzzy":
            self._flat_places().check(self.n_features_in_, self._ensemble())
        self._prepare()
