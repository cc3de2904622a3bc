"""ObliviousBoosting: boosted oblivious trees with plain, fuzzy or polynomial leaves (Belous 2015)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from truerank.core.blocked import Workers
from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of
from truerank.data.ranking_data import RankingData
from truerank.measures import parse_measure
from truerank.rankers.base import Ranker
from truerank.rankers.oblivious.boosting import Plan, Progress, Watched, boost
from truerank.rankers.oblivious.borders import BLOCK, MAX_BORDERS, code_rows, find_borders, scan_columns
from truerank.rankers.oblivious.constant import ConstantLeaves
from truerank.rankers.oblivious.ensemble import Ensemble
from truerank.rankers.oblivious.fuzzy import FlatPlaces, FuzzyLeaves, FuzzyPredictor
from truerank.rankers.oblivious.grower import GrowthRules
from truerank.rankers.oblivious.objectives import make_objective
from truerank.rankers.oblivious.places import PlaceTable, make_places, make_smoothing
from truerank.rankers.oblivious.polynomial import (
    PolynomialLeaves,
    PolynomialPredictor,
    Scaling,
    check_scaling,
    column_scaling,
    monomial_table,
)
from truerank.rankers.oblivious.predictor import ConstantPredictor
from truerank.rankers.oblivious.rows import Rows

LEAVES = ("constant", "fuzzy", "polynomial")
MAX_DEPTH = 12


class ObliviousBoosting(Ranker):
    """Boosted oblivious trees."""

    model_attributes: ClassVar[tuple[str, ...]] = (
        *Ranker.model_attributes,
        "start_",
        "tree_features_",
        "tree_borders_",
        "tree_missing_right_",
        "tree_values_",
        "tree_gains_",
        "n_iter_",
        "valid_scores_",
        "seed_",
        "p_swap_",
        "place_features_",
        "place_sizes_",
        "place_lower_",
        "place_upper_",
        "place_starts_",
        "feature_mean_",
        "feature_scale_",
        "feature_low_",
        "feature_high_",
    )
    allow_nan = True

    start_: float

    def __init__(
        self,
        leaves: str = "constant",
        *,
        objective: Any = "mse",
        objective_params: dict[str, Any] | None = None,
        measure: Any = "nDCG@10",
        convention: str = "ranklib",
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        depth: int = 6,
        borders: int = 64,
        l2: float | None = None,
        small_leaf_penalty: float = 0.0,
        fuzziness: float | None = None,
        p_swap: float | None = None,
        ties: str = "near",
        fuzzy_search: bool = False,
        places: int = 4096,
        degree: int = 1,
        neighbour_penalty: float = 1.0,
        clip: bool = True,
        bootstrap: str | None = None,
        replace: bool = True,
        subsample: float = 1.0,
        feature_fraction: float = 1.0,
        monotone: Any = None,
        patience: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.leaves = leaves
        self.objective = objective
        self.objective_params = objective_params
        self.measure = measure
        self.convention = convention
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.depth = depth
        self.borders = borders
        self.l2 = l2
        self.small_leaf_penalty = small_leaf_penalty
        self.fuzziness = fuzziness
        self.p_swap = p_swap
        self.ties = ties
        self.fuzzy_search = fuzzy_search
        self.places = places
        self.degree = degree
        self.neighbour_penalty = neighbour_penalty
        self.clip = clip
        self.bootstrap = bootstrap
        self.replace = replace
        self.subsample = subsample
        self.feature_fraction = feature_fraction
        self.monotone = monotone
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        query_weight: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
    ) -> ObliviousBoosting:
        """Learn from judged rankings; as `Ranker.fit`, and `sample_weight` (n,) >= 0 weighs single rows."""
        self._row_weight = sample_weight
        try:
            return super().fit(X, y, qid=qid, query_weight=query_weight, eval_set=eval_set)
        finally:
            del self._row_weight

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        X, y = data.X, data.y
        assert y is not None
        parts = check_positive_int(self.borders, "borders")
        if parts > MAX_BORDERS + 1:
            raise InvalidInputError(f"borders must be at most {MAX_BORDERS + 1}, got {parts}: a code is one byte")
        kind = check_choice(self.leaves, "leaves", LEAVES)
        progress = self._progress()
        monotone = self._monotone(data.n_features)
        if monotone is not None and kind == "polynomial":
            raise InvalidInputError("polynomial leaves cannot keep monotone constraints; use constant or fuzzy leaves")
        p_swap = self._swap(data.n_rows)
        degree = check_positive_int(self.degree, "degree", 0)
        penalty = self.neighbour_penalty
        if penalty != np.inf:
            penalty = check_number(penalty, "neighbour_penalty", minimum=0.0)
        limit = check_positive_int(self.places, "places", 2)
        weight = self._weights(data)
        measure = parse_measure(self.measure, convention=self.convention)
        objective = make_objective(self.objective, self.objective_params, measure, self.n_jobs)
        with Workers(self.n_jobs) as workers:

            def look(k: int, values: np.ndarray) -> tuple[np.ndarray, Any]:
                found = find_borders(values, parts)
                if kind == "fuzzy":
                    return found, make_places(values, found, limit)
                return found, column_scaling(values) if kind == "polynomial" else None

            looked = scan_columns(X, look, self.n_jobs)
            borders = [found for found, _ in looked]
            rows = Rows(X, code_rows(X, borders, self.n_jobs), training=True)
            plan = self._plan(monotone)
            leaves: Any
            if kind == "fuzzy":
                places = [table for _, table in looked]
                if self.fuzzy_search:
                    plan = replace(plan, rules=replace(plan.rules, smoothing=smoothing_of(borders, places, p_swap)))
                leaves = FuzzyLeaves(plan.rules.l2, monotone, places, p_swap, self.ties, workers)
            elif kind == "polynomial":
                scaling = Scaling.of([found for _, found in looked], bool(self.clip))
                leaves = PolynomialLeaves(plan.rules.l2, degree, penalty, plan.rules.depth, scaling, workers)
            else:
                leaves = ConstantLeaves(plan.rules.l2, monotone, workers)
            if progress.trees:
                scores, start = self._predict(X), self.start_
            else:
                begin = getattr(objective, "start", None)
                start = 0.0 if begin is None else begin(y, weight)
                scores = np.full(len(y), start)
            watched = None
            if valid is not None:
                assert valid.y is not None
                watched = Watched(
                    Rows(valid.X, code_rows(valid.X, borders, self.n_jobs)),
                    self._predict(valid.X) if progress.trees else np.full(len(valid.y), start),
                    measure,
                    valid.judgements(),
                )
            elif plan.patience is not None:
                raise InvalidInputError("patience needs eval_set=(X, y, qid), the validation queries")
            status = boost(data, rows, scores, weight, objective, leaves, plan, watched, workers, progress)
        self.start_ = float(start)
        self._keep(progress)
        if kind == "fuzzy":
            self._keep_places(places, p_swap)
        elif kind == "polynomial":
            self.feature_mean_, self.feature_scale_ = scaling.mean, scaling.scale
            self.feature_low_, self.feature_high_ = scaling.low, scaling.high
        self._prepare()
        self._finish(status)

    def _predict(self, X: Any) -> np.ndarray:
        return self._predictor.predict(X, self.n_jobs, np.full(X.shape[0], self.start_))

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Scores (n,) after each tree, in the caller's row order; the last are `predict`'s."""
        check_is_fitted(self)
        restore: Callable[[np.ndarray], np.ndarray]
        if isinstance(X, RankingData):
            self._check_columns(X)
            matrix, restore = X.X, X.restore
        else:
            matrix, restore = self._checked(X, reset=False), lambda values: values
        scores = np.full(matrix.shape[0], self.start_)
        ensemble = self._ensemble()
        for t in range(ensemble.n_trees):
            scores = self._make_predictor(ensemble.only(t)).predict(matrix, self.n_jobs, scores)
            yield restore(scores).copy()

    # Arguments.

    def _swap(self, n: int) -> float:
        """p_swap for n rows."""
        check_choice(self.ties, "ties", ("near", "average"))
        if self.p_swap is not None:
            if self.fuzziness is not None:
                raise InvalidInputError("give fuzziness or p_swap, not both: p_swap = 1 - 1 / (fuzziness * n)")
            return check_number(self.p_swap, "p_swap", minimum=0.0, maximum=1.0, open_maximum=True)
        width = 0.15 if self.fuzziness is None else check_number(self.fuzziness, "fuzziness", minimum=0.0)
        return max(0.0, 1.0 - 1.0 / (width * n)) if width > 0 else 0.0

    def _plan(self, monotone: np.ndarray | None) -> Plan:
        n_estimators = check_positive_int(self.n_estimators, "n_estimators")
        depth = check_positive_int(self.depth, "depth")
        if depth > MAX_DEPTH:
            raise InvalidInputError(f"depth must be at most {MAX_DEPTH} (a tree has 2^depth leaves), got {depth}")
        if self.bootstrap is not None:
            check_choice(self.bootstrap, "bootstrap", ("row", "query"))
        rules = GrowthRules(
            depth,
            self._l2(),
            check_number(self.small_leaf_penalty, "small_leaf_penalty", minimum=0.0),
            monotone,
        )
        return Plan(
            n_estimators,
            check_number(self.learning_rate, "learning_rate", minimum=0.0, open_minimum=True),
            rules,
            self.bootstrap or "row",
            self.bootstrap is not None and bool(self.replace),
            check_number(self.subsample, "subsample", minimum=0.0, maximum=1.0, open_minimum=True),
            check_number(self.feature_fraction, "feature_fraction", minimum=0.0, maximum=1.0, open_minimum=True),
            None if self.patience is None else check_positive_int(self.patience, "patience"),
            check_positive_int(self.verbose, "verbose", 0),
            self.seed_,
        )

    def _l2(self) -> float:
        if self.l2 is None:
            return 0.0 if self.objective == "mse" else 1.0
        return check_number(self.l2, "l2", minimum=0.0)

    def _progress(self) -> Progress:
        """The trees to continue from: none, unless `warm_start`."""
        if not self.warm_start or not hasattr(self, "tree_values_"):
            self.seed_ = seed_of(self.random_state)
            return Progress()
        have = len(self.tree_values_)
        if check_positive_int(self.n_estimators, "n_estimators") < have:
            raise InvalidInputError(
                f"warm_start: n_estimators={self.n_estimators} is less than the {have} trees that the model has"
            )
        if self.tree_features_.shape[1] != self.depth:
            raise InvalidInputError(
                f"warm_start: the model's trees have depth {self.tree_features_.shape[1]}, got depth={self.depth}"
            )
        trees: list[Any] = list(
            zip(self.tree_features_, self.tree_borders_, self.tree_missing_right_, self.tree_values_)
        )
        return Progress(trees, list(self.tree_gains_), self.valid_scores_.tolist()[:have])

    def _monotone(self, n_features: int) -> np.ndarray | None:
        if self.monotone is None:
            return None
        if isinstance(self.monotone, dict):
            names = list(getattr(self, "feature_names_in_", []))
            signs = np.zeros(n_features)
            for key, value in self.monotone.items():
                if isinstance(key, str) and key not in names:
                    raise InvalidInputError(f"monotone names the feature {key!r}, which X does not have")
                signs[names.index(key) if isinstance(key, str) else int(key)] = value
        else:
            signs = np.asarray(self.monotone, dtype=np.float64)
        if signs.shape != (n_features,) or not np.isin(signs, (-1, 0, 1)).all():
            raise InvalidInputError(
                f"monotone must give -1, 0 or 1 for each of the {n_features} features, or a dict of feature to these; "
                f"got {self.monotone!r}"
            )
        return signs.astype(np.int8) if signs.any() else None

    def _weights(self, data: RankingData) -> np.ndarray | None:
        """Weight of each row (n,) in grouped order: sample weight times query weight."""
        weight = None if data.query_weight is None else np.repeat(data.query_weight, np.diff(data.offsets))
        if self._row_weight is None:
            return weight
        own = np.asarray(self._row_weight, dtype=np.float64)
        if own.shape != (data.n_rows,):
            raise InvalidInputError(f"sample_weight must have shape ({data.n_rows},), got {own.shape}")
        if not np.isfinite(own).all() or own.min() < 0:
            raise InvalidInputError("sample_weight must be finite and >= 0")
        if own.max() <= 0:
            raise InvalidInputError("Sample weights must contain at least one non-zero number")
        own = own if data.order is None else own[data.order]
        return own if weight is None else own * weight

    # The model.

    def _keep(self, progress: Progress) -> None:
        names = ("tree_features_", "tree_borders_", "tree_missing_right_", "tree_values_")
        for name, arrays in zip(names, zip(*progress.trees)):
            setattr(self, name, np.stack(arrays))
        self.tree_gains_ = np.stack(progress.gains)
        self.valid_scores_ = np.array(progress.valid)
        self.n_iter_ = len(progress.trees)

    def _keep_places(self, places: list[PlaceTable], p_swap: float) -> None:
        used = np.unique(self.tree_features_)
        flat = FlatPlaces.of(used, [places[k] for k in used])
        self.p_swap_ = p_swap
        for name in ("features", "sizes", "lower", "upper", "starts"):
            setattr(self, f"place_{name}_", getattr(flat, name))

    def _flat_places(self) -> FlatPlaces:
        return FlatPlaces(
            self.place_features_, self.place_sizes_, self.place_lower_, self.place_upper_, self.place_starts_
        )

    def _ensemble(self) -> Ensemble:
        return Ensemble(self.tree_features_, self.tree_borders_, self.tree_missing_right_, self.tree_values_)

    def _scaling(self) -> Scaling:
        return Scaling(self.feature_mean_, self.feature_scale_, self.feature_low_, self.feature_high_)

    def _make_predictor(self, ensemble: Ensemble) -> Any:
        if self.leaves == "fuzzy":
            return FuzzyPredictor(ensemble, self._flat_places(), self.p_swap_, self.ties)
        if self.leaves == "polynomial":
            return PolynomialPredictor(ensemble, self._scaling(), self.degree)
        return ConstantPredictor(ensemble)

    def _prepare(self) -> None:
        self._predictor = self._make_predictor(self._ensemble())

    def check_model(self) -> None:
        """Called after loading: the arrays of the trees must fit together."""
        super().check_model()
        monomials = None
        if self.leaves == "polynomial":
            check_scaling(self._scaling(), self.n_features_in_)
            monomials = len(monomial_table(self._ensemble().depth, self.degree))
        self._ensemble().check(self.n_features_in_, monomials)
        if self.leaves == "fuzzy":
            self._flat_places().check(self.n_features_in_, self._ensemble())
        self._prepare()


def smoothing_of(borders: list[np.ndarray], places: list[PlaceTable], p: float) -> np.ndarray:
    """The level search's smoothing of every feature's histogram, padded to whole blocks of features."""
    result = np.zeros((-(-len(borders) // BLOCK) * BLOCK, 4, 256))
    for k, (own, table) in enumerate(zip(borders, places)):
        result[k] = make_smoothing(table, own, p)
    return result
