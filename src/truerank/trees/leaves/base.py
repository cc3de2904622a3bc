"""Protocol of a kind of leaves, for boosting, model files, exports and explanations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.threads import Workers
from truerank.core.types import Scorer
from truerank.trees.ensemble import ConstantPredictor, Ensemble
from truerank.trees.grower import GrowthRules, TreeStructure
from truerank.trees.rows import TrainingRows
from truerank.trees.training_columns import TrainingColumns


class LeafFitter(Protocol):
    """An object that fits the leaves of each tree, and adds their values to scores.

    A fitter with `needs_sample` also has `sums(tree, rows, sample)`, arrays that can be summed over parts of the rows,
    and `values(tree, *sums, unit)`, the leaf values (2^d,) or (2^d, n_values) from the total sums and the mean hessian
    of a row. Any other fitter has `fit(tree)`, the leaf values from the sums in the tree.
    """

    needs_sample: bool

    def add(self, tree: TreeStructure, rows: TrainingRows, values: np.ndarray, scores: np.ndarray) -> None:
        """Add the values of a tree to the scores (n,) of rows."""


class LeafPredictor(Protocol):
    """An object that scores rows with the trees of a fitted model."""

    def predict(self, X: np.ndarray, n_jobs: int | None, scores: np.ndarray, trees: slice = ...) -> np.ndarray:
        """Add the values of `trees` for the rows of X to `scores` (n,), and return the scores."""


@dataclass(frozen=True)
class TreesForm:
    """Fitted trees as exports and explanations read them. A leaf is a sum of monomials, by default one constant.

    Exports write the forms `Oblivious`, `leaves.fuzzy.Fuzzy` and `leaves.polynomial.Polynomial`.
    """

    trees: Ensemble
    kind: ClassVar[str]  # by which a format finds how to write it
    is_shared: ClassVar[bool] = False  # whether a row belongs to several leaves of a tree

    def monomials(self) -> np.ndarray:
        """Return the monomials of a leaf as in `monomial_table`, int64 (M, 2)."""
        return np.zeros((1, 2), dtype=np.int64)

    def variables(self, columns: np.ndarray, features: np.ndarray) -> np.ndarray | None:
        """Return the variables of the monomials from the columns (u, n) of features, (n, u), or None without any."""
        return None

    def answers(self) -> Callable[[int, np.ndarray], np.ndarray]:
        """Return a function of (tree, columns (p, n)) that returns P(right) at each level (d, n); bool if plain."""
        trees = self.trees

        def answers(tree: int, columns: np.ndarray) -> np.ndarray:
            x, border = columns[trees.features[tree]], trees.borders[tree][:, None]
            return np.where(trees.missing_right[tree][:, None], ~(x <= border), x > border)

        return answers


@dataclass(frozen=True)
class Oblivious(TreesForm):
    """Oblivious trees of constant leaves."""

    kind = "oblivious"


@dataclass(frozen=True)
class Leaves:
    """A kind of leaves, whose fields are its parameters and are stored in a model file.

    A subclass implements `fitter`. All other defaults suit kinds with one value for each leaf: such leaves can be
    saved, exported, explained and trained on a cluster. Other kinds also implement `predictor`, `n_values` and `form`,
    and may set `needs_places` or `needs_scaling`, whose arrays a model then stores.
    """

    name: ClassVar[str]  # in `ObliviousBoosting(leaves=…)` and in model files
    needs_places: ClassVar[bool] = False  # the places of values among the training values
    needs_scaling: ClassVar[bool] = False  # standardised features
    keeps_monotone: ClassVar[bool] = True
    scored_by: ClassVar[tuple[str, ...]] = ()  # parameters that cannot change when a model is continued

    @property
    def most_places(self) -> int:
        """Maximum number of places of a feature, with `needs_places`."""
        return 4096

    @property
    def searches_places(self) -> bool:
        """Whether the level search needs the places of all features."""
        return False

    def check(self) -> None:
        """Raise `InvalidInputError` if a parameter is out of range."""

    def swap_probability(self, n: float, places: float | None = None) -> float:
        """Return the probability that neighbours among n rows swap places, or 0 without places."""
        return 0.0

    def search_rules(self, rules: GrowthRules, columns: TrainingColumns, p_swap: float) -> GrowthRules:
        """Return the rules of the level search."""
        return rules

    def fitter(self, rules: GrowthRules, columns: TrainingColumns, p_swap: float, workers: Workers) -> LeafFitter:
        """Return the fitter of the leaves of each tree."""
        raise NotImplementedError

    def predictor(self, ensemble: Ensemble, model: Scorer) -> LeafPredictor:
        """Return the predictor of rows with the trees of a fitted model."""
        return ConstantPredictor(ensemble)

    def form(self, ensemble: Ensemble, model: Scorer) -> TreesForm:
        """Return the trees of a fitted model in the form that exports and explanations read.

        Raises
        ------
        InvalidInputError
            If the kind has a predictor of its own but not this method.
        """
        own = type(self)
        if own.predictor is not Leaves.predictor:
            raise InvalidInputError(
                f"{self.name} leaves cannot be exported or explained, because {own.__name__} defines predictor "
                "without form",
                remedies=[f"implement {own.__name__}.form", "use other leaves"],
                code="no-form",
            )
        return Oblivious(ensemble)

    def n_values(self, depth: int) -> int | None:
        """Return the number of coefficients in a leaf of a tree of this depth, or None if a leaf has one value."""
        return None

    def as_dict(self) -> dict[str, Any]:
        """Return the dict that `parse_leaves` accepts."""
        return {"kind": self.name, **asdict(self)}
