"""ObliviousBoosting: boosted oblivious trees with plain, fuzzy or polynomial leaves (Belous 2015)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from truerank.core.blocked import Workers
from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of
from truerank.data.ranking_data import RankingData
from truerank.measures import parse_measure
from truerank.rankers.base import Ranker
from truerank.rankers.oblivious.boosting import Plan, Progress, Watched, boost
from truerank.rankers.oblivious.borders import MAX_BORDERS, code_rows, find_borders, scan_columns
from truerank.rankers.oblivious.constant import ConstantLeaves
from truerank.rankers.oblivious.ensemble import Ensemble
from truerank.rankers.oblivious.grower import GrowthRules
from truerank.rankers.oblivious.objectives import OBJECTIVES
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
        l2: float = 0.0,
        small_leaf_penalty: float = 0.0,
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
        leaves_kind = check_choice(self.leaves, "leaves", LEAVES)
        progress = self._progress()
        monotone = self._monotone(data.n_features)
        plan = self._plan(monotone)
        weight = self._weights(data)
        objective = self._objective()
        with Workers(self.n_jobs) as workers:
            borders = scan_columns(X, lambda k, values: find_borders(values, parts), self.n_jobs)
            rows = Rows(X, code_rows(X, borders, self.n_jobs))
            leaves = self._leaves(leaves_kind, plan, workers)
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
                    parse_measure(self.measure, convention=self.convention),
                    valid.judgements(),
                )
            elif plan.patience is not None:
                raise InvalidInputError("patience needs eval_set=(X, y, qid), the validation queries")
            status = boost(data, rows, scores, weight, objective, leaves, plan, watched, workers, progress)
        self.start_ = float(start)
        self._keep(progress, plan)
        self._finish(status)

    def _predict(self, X: Any) -> np.ndarray:
        return self._predictor.predict(X, self.n_jobs)

    # Arguments.

    def _plan(self, monotone: np.ndarray | None) -> Plan:
        n_estimators = check_positive_int(self.n_estimators, "n_estimators")
        depth = check_positive_int(self.depth, "depth")
        if depth > MAX_DEPTH:
            raise InvalidInputError(f"depth must be at most {MAX_DEPTH} (a tree has 2^depth leaves), got {depth}")
        if self.bootstrap is not None:
            check_choice(self.bootstrap, "bootstrap", ("row", "query"))
        rules = GrowthRules(
            depth,
            check_number(self.l2, "l2", minimum=0.0),
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

    def _objective(self) -> Any:
        if callable(self.objective):
            return self.objective
        make = OBJECTIVES[check_choice(self.objective, "objective", OBJECTIVES)]
        return make(**(self.objective_params or {}))

    def _leaves(self, kind: str, plan: Plan, workers: Workers) -> Any:
        return ConstantLeaves(plan.rules.l2, plan.rules.monotone, workers)

    # The model.

    def _keep(self, progress: Progress, plan: Plan) -> None:
        names = ("tree_features_", "tree_borders_", "tree_missing_right_", "tree_values_")
        for name, arrays in zip(names, zip(*progress.trees)):
            setattr(self, name, np.stack(arrays))
        self.tree_gains_ = np.stack(progress.gains)
        self.valid_scores_ = np.array(progress.valid)
        self.n_iter_ = len(progress.trees)
        self._prepare()

    def _ensemble(self) -> Ensemble:
        return Ensemble(self.tree_features_, self.tree_borders_, self.tree_missing_right_, self.tree_values_)

    def _prepare(self) -> None:
        self._predictor = ConstantPredictor(self._ensemble(), self.start_)

    def check_model(self) -> None:
        """Called after loading: the arrays of the trees must fit together."""
        super().check_model()
        self._ensemble().check(self.n_features_in_, None)
        self._prepare()
