"""AdaRank: boost single features towards a ranking measure (Xu and Li, SIGIR 2007)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from truerank.core.errors import InvalidInputError, warn
from truerank.core.random_streams import seed_of, stream
from truerank.core.rounds import tell
from truerank.core.types import MeasureLike
from truerank.data.ranking_data import RankingData
from truerank.rankers.constructor_names import estimator
from truerank.rankers.linear import LinearRanker
from truerank.rankers.sums.query_measures import QueryMeasures
from truerank.solvers.early_stopping import EarlyStopping
from truerank.solvers.result import Status

_TIE = 1e-12  # measures closer than this are equal: the lowest feature wins, and a round is no better
_RANGE = 1e-9  # rounding of a measure whose largest value is 1
_LARGEST_PHI = 1.0 - 1e-12  # phi = 1 would make alpha infinite; alpha is at most 14.2
_COLUMNS = ("feature", "sign", "alpha", "phi", "delta", "bound", "train", "train_active", "validation")


@estimator
class AdaRank(LinearRanker):
    """Linear ranker, boosted feature by feature towards a ranking measure (Xu and Li 2007).

    Each round gives more weight to the queries that are ranked badly so far, chooses the feature that ranks best under
    these weights, and adds it to the ranker. With E_i(f) the measure of query i ranked by f:

        P_1(i) = 1/m
        for t = 1 … T:
            h_t = the feature k with the largest Σ_i P_t(i) E_i(x_k)
            φ_t = Σ_i P_t(i) E_i(h_t),    α_t = ½ ln((1 + φ_t) / (1 - φ_t))
            f_t = Σ_{s ≤ t} α_s h_s
            P_{t+1}(i) from `update`

    Use it for a few strong features and a readable model, which often has four to ten weights.

    Parameters
    ----------
    measure : str, Measure or callable, default "AP"
        Training measure: "AP", "nDCG@5", …, or a function (grades in ranked order) -> float with values in [-1, 1].
    convention : str, default "ranklib"
        Evaluation convention: settings that the names of the measures do not contain.
    n_estimators : int, default 500
        Maximum number of rounds T.
    update : {"adaboost", "compound", "paper"}, default "adaboost"
        Weights of the queries in the next round: "paper" is `P_{t+1}(i) ∝ exp(-E_i(f_t))`; "compound" is
        `P_{t+1}(i) ∝ P_t(i) exp(-E_i(f_t))`; "adaboost" is `P_{t+1}(i) ∝ P_t(i) exp(-α_t E_i(h_t))`, which was best on
        validation queries of MQ2008 and OHSUMED.
    signed : bool, default False
        Also consider each feature with the opposite sign, so that small values come first.
    repeat : bool, default True
        Whether a feature may be chosen more than once. Under "paper", all later rounds choose the feature of the first
        round if the second round does.
    query_sample : float, optional
        Choose the feature of each round on a sample of this share of the queries, in (0, 1], drawn with replacement by
        P_t (section 3.2). φ_t uses all queries.
    patience : int, default 50
        Stop after this many rounds without a better training measure, or with `eval_set`, validation measure. The best
        round is kept.
    constant_queries : {"drop", "keep"}, default "drop"
        "drop" ignores queries whose measure is the same for every order, except in `history_`; "keep" is the paper.
    validation_measure : str, Measure or callable, optional
        Measure of the validation queries; None means `measure`.
    random_state : int or generator, optional
        Seed of `query_sample`.
    n_jobs : int, optional
        Threads; None means 1. The result has the same bits for any number of threads.

    Attributes
    ----------
    coef_ : float64 array (p,)
        Weight of each feature: the sum of α over the rounds that chose it, up to the best round.
    history_ : dict of arrays (n_iter_,)
        `feature` (column), `sign`, `alpha`, `phi`, `delta` (δ_t of Theorem 1), `bound` (Theorem 1's lower bound on
        `train_active`), `train` (mean measure of f_t over the training queries), `train_active` (the same without
        constant queries), `validation` (NaN without validation queries; with them also `validation_scores_`).
    best_round_, n_iter_ : int
        Round of `coef_`, from 1 (0 if nothing could be learned), and number of rounds that were run.
    n_constant_queries_ : int
        Training queries whose measure is the same for every order.
    status_ : str
        Reason why training stopped.

    Raises
    ------
    InvalidInputError
        If a parameter is out of range, a measure is outside [-1, 1], or scores exceed the range of float64.

    Warns
    -----
    TruerankWarning
        If all training queries are constant (all weights are 0), or all validation queries (the training measure then
        chooses the round).

    Notes
    -----
    *Measures whose lower values are better* are trained as 1 minus their value; `history_` has the values.

    *Bound* (Theorem 1), with E_i(f_0) := 0 and means weighted by P_1:

        mean_i E_i(f_T) ≥ 1 - Π_t e^{-δ_t} sqrt(1 - φ_t²)
        δ_t = min_i [ E_i(f_{t-1} + α_t h_t) - E_i(f_{t-1}) - α_t E_i(h_t) ]

    The proof holds for `update="paper"`. From the second round on the bound is usually negative.

    *Ties*: equal scores count with the average over their orders (`Measure.tie_averaged`), unless the measure has a
    rule, such as `AP(ties="stable")`. Among equal features the lowest column is chosen; with `signed`, descending
    features come first.

    *Training stops* after `patience` rounds without gain, if φ_t ≤ 0 (no feature is better than chance), if no feature
    is left (`repeat=False`), or if φ_t = 1 (every query is ranked perfectly; α is at most 14.2).

    *Query weights* multiply P_1 and, under "paper", every P_t; all means are weighted. A weight of 2 equals two copies
    of the query.

    *Differences from the paper*: `constant_queries="drop"`, `update`, `signed`, and validation.

    *Cost*: O(p n log n) for the measures of all features, then O(m p + n log n) for each round. Memory: X, the m × p
    measures, and blocks of 16 MB.

    References
    ----------
    Xu and Li (2007), "AdaRank: a boosting algorithm for information retrieval", SIGIR: Figure 1 (algorithm), Theorem 1
    (bound), Section 3.6 (features as weak rankers).

    Examples
    --------
    >>> X = [[0.9, 0.1], [0.1, 0.2], [0.5, 0.9], [0.2, 0.8], [0.8, 0.3], [0.7, 0.1]]
    >>> ranker = AdaRank(measure="AP").fit(X, [1, 0, 0, 0, 1, 0], qid=["a", "a", "a", "b", "b", "b"])
    >>> ranker.feature_weights()["feature 1"] > 0
    True
    >>> ranker.rank(X, qid=["a", "a", "a", "b", "b", "b"]).tolist()
    [1, 3, 2, 3, 1, 2]
    """

    learns_elsewhere = True
    uses_eval_set = True
    model_attributes: ClassVar[dict[str, str]] = {
        "n_iter_": "int in [0, inf]",
        "history_": "dict of array[n_iter_] unbounded",
        **{f"history_.{column}": "array[n_iter_] unbounded" for column in _COLUMNS},
        "best_round_ n_constant_queries_": "int??",
    }

    allowed: ClassVar[dict[str, str]] = {
        "n_estimators patience": "int in [1, inf)",
        "update": "'paper' | 'compound' | 'adaboost'",
        "constant_queries": "'drop' | 'keep'",
        "signed repeat": "bool",
        "query_sample": "float in (0, 1]?",
    }

    measure: Any = "AP"
    _: KW_ONLY
    convention: str = "ranklib"
    n_estimators: int = 500
    update: str = "adaboost"
    signed: bool = False
    repeat: bool = True
    query_sample: float | None = None
    patience: int = 50
    constant_queries: str = "drop"
    validation_measure: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        rounds = int(self.n_estimators)
        measure = self._measure().tie_averaged()
        stopping, validation = self._watch(valid)
        state = _Boosting(self, data, measure, validation)
        self.n_constant_queries_ = state.n_constant
        self.coef_ = np.zeros(data.n_features)
        self.best_round_ = 0
        status = Status.ALL_ROUNDS
        if not state.active.any():
            status = Status.NOTHING_TO_LEARN
            warn(f"AdaRank: {status.value}")
            rounds = 0
        for t in range(1, rounds + 1):
            stop = state.step()
            if stop in (Status.NO_WEAK_RANKER, Status.ALL_FEATURES):
                status = stop
                break
            stopping.add_value(state.history["train" if validation is None else "validation"][-1])
            if stopping.is_best:
                self.best_round_, self.coef_ = t, state.coef.copy()
            if stop is not None:
                status = stop
                break
            if stopping.exhausted:
                status = Status.TRAINING_FLAT if validation is None else Status.VALIDATION
                break
            measured = None if validation is None else state.history["validation"][-1]
            if tell(t, rounds, validation=measured, train=state.history["train"][-1]):
                status = Status.CALLBACK
                break
        self.n_iter_ = len(state.history["train"])
        self.history_ = {
            name: np.array(column, dtype=np.int64 if name in ("feature", "sign") else np.float64)
            for name, column in state.history.items()
        }
        self.__dict__.pop("validation_scores_", None)
        if valid is not None:
            self.validation_scores_ = self.history_["validation"]
        self._finish(status)

    def _watch(self, valid: RankingData | None) -> tuple[EarlyStopping, Any]:
        """Return the measure and the queries that choose the round; None if the training queries choose."""
        # Made in any case, so that eval_metric is checked.
        stopping = EarlyStopping(self._measure("validation_measure"), self.convention, self.patience, tolerance=_TIE)
        if valid is not None:
            validation = QueryMeasures(valid.in_parts(self.n_jobs), stopping.measure)
            if validation.offers_choice():
                return stopping, validation
            warn(
                "AdaRank: the best round was chosen on the training queries, because each validation query has only "
                "one grade or one document"
            )
        return EarlyStopping(self.measure, self.convention, self.patience, tolerance=_TIE), None


class _Boosting:
    """The state of a fit: the matrix of measures, the weights of the queries, the ranker so far and its history."""

    def __init__(self, ranker: AdaRank, data: RankingData, measure: MeasureLike, valid: QueryMeasures | None) -> None:
        self.ranker, self.seed = ranker, seed_of(ranker.random_state)
        self.train = QueryMeasures(data.in_parts(ranker.n_jobs), measure)
        self.query_ids = data.query_ids
        self.valid = valid
        matrix = self.train.of_columns()
        if ranker.signed:
            ascending = self.train.of_columns(descending=False)
            matrix = np.concatenate([matrix, ascending], axis=1)
        self._check_range(matrix)
        constant = self._constant_queries(matrix)
        self.n_constant = int(constant.sum())
        weight = data.weight_by_query
        self.active = (weight > 0) & ~np.isnan(matrix[:, 0])  # a measure skips a query in every order
        if ranker.constant_queries == "drop":
            self.active &= ~constant
        self.left = np.ones(matrix.shape[1], dtype=bool)  # columns that may still be chosen
        self.matrix = matrix if self.active.all() else matrix[self.active]
        self.weight = weight[self.active] / max(weight[self.active].sum(), np.finfo(float).tiny)
        self.P = self.weight
        self.before = np.zeros(len(self.P))
        self.log_product = 0.0
        self.coef = np.zeros(data.n_features)
        self.history: dict[str, list[float]] = {name: [] for name in _COLUMNS}

    def step(self) -> Status | None:
        """Run one round; return a status if no feature can be added or every query is ranked perfectly."""
        if not self.left.any():
            return Status.ALL_FEATURES
        column, phi = self._choose()
        if phi <= 0:
            return Status.NO_WEAK_RANKER
        capped = min(phi, _LARGEST_PHI)
        alpha = 0.5 * float(np.log((1.0 + capped) / (1.0 - capped)))
        h = self.matrix[:, column]
        side, feature = divmod(column, len(self.coef))  # ascending columns follow the descending ones
        sign = -1 if side else 1
        self.coef[feature] += sign * alpha
        if not self.ranker.repeat:
            self.left[feature :: len(self.coef)] = False
        values = self.train.evaluate(self.coef)
        self._check_range(values)
        after = values[self.active]
        change = after - self.before
        change -= alpha * h
        delta = float(change.min())
        self.log_product += 0.5 * float(np.log1p(-capped * capped)) - delta
        record = {
            "feature": feature,
            "sign": sign,
            "alpha": alpha,
            "phi": phi,
            "delta": delta,
            "bound": 1.0 - float(np.exp(min(self.log_product, 700.0))),
            "train": self.train.mean(values),
            "train_active": self.train.reported(float(np.sum(self.weight * after))),
            "validation": np.nan if self.valid is None else self.valid.mean(self.valid.evaluate(self.coef)),
        }
        exponent = alpha * h if self.ranker.update == "adaboost" else after
        P = (self.weight if self.ranker.update == "paper" else self.P) * np.exp(-exponent)
        self.P, self.before = P / P.sum(), after
        for name, value in record.items():
            self.history[name].append(value)
        return Status.PERFECT if phi >= _LARGEST_PHI else None

    def _choose(self) -> tuple[int, float]:
        """Return the column of the matrix with the largest weighted mean, and this mean."""
        # einsum adds the queries in order, with the same bits for any number of BLAS threads.
        sums = np.einsum("i,ij->j", self.P, self.matrix)
        chosen_by = sums
        if self.ranker.query_sample is not None:
            generator = stream(self.seed, "adarank", len(self.history["phi"]))
            counts = generator.multinomial(math.ceil(self.ranker.query_sample * len(self.P)), self.P).astype(np.float64)
            chosen_by = np.einsum("i,ij->j", counts / counts.sum(), self.matrix)
        chosen_by = np.where(self.left, chosen_by, -np.inf)
        column = int(np.argmax(chosen_by >= chosen_by.max() - _TIE))
        return column, float(sums[column])

    def _check_range(self, values: np.ndarray) -> None:
        """Raise an error if a value (m, …) is outside [-1, 1], where α is not defined; NaN marks a skipped query."""
        # fmin and fmax pass over NaN, and need no array of the matrix's size as |values| > 1 would.
        if np.fmax.reduce(values, axis=None) > 1.0 + _RANGE or np.fmin.reduce(values, axis=None) < -1.0 - _RANGE:
            place = tuple(np.argwhere(np.abs(values) > 1.0 + _RANGE)[0])
            raise InvalidInputError(
                f"{self.train.measure!r} is {values[place]:g} for query {self.query_ids[place[0]]}, and AdaRank "
                "requires values in [-1, 1]. Use another measure, or rescale it",
                code="measure-range",
            )

    def _constant_queries(self, matrix: np.ndarray) -> np.ndarray:
        """Return a mask (m,) of queries whose measure is the same for the best and worst order and for all features."""
        best, worst = self.train.extremes()
        constant = np.abs(best - worst) <= _TIE
        rows = np.flatnonzero(constant)
        constant[rows] = (np.abs(matrix[rows] - best[rows, None]) <= _TIE).all(axis=1)
        return constant
