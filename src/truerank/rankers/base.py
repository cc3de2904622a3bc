"""The base class of rankers: arguments of `fit` and `predict`, the scikit-learn API, scores by query."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from typing import Any, ClassVar, Unpack

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import RegressorTags, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from truerank.compat.fit_arguments import check_predict_arguments, fit_call, refuse_unknown, weights_by_row
from truerank.compat.other_names import translated
from truerank.core.checks import check_parameters, column_labels
from truerank.core.errors import InvalidInputError, ModelFileError, warn
from truerank.core.fitting import whole_fit
from truerank.core.float32 import INPUTS
from truerank.core.interrupts import Interruptible
from truerank.core.names import resolve
from truerank.core.printing import styled_table
from truerank.core.rounds import fitting
from truerank.core.types import Matrix, NoOthers, PathLike, RandomState
from truerank.data.grouping import Grouping, group_rows, ranks_by_query, refuse_one_long_list
from truerank.data.provenance import SIZE, Score, TrainingSketch
from truerank.data.ranking_data import RankingData, as_grades
from truerank.data.row_source import Rows, elsewhere, rows_elsewhere
from truerank.measures import DEFAULT_CONVENTION, parse_measure
from truerank.rankers.accepted_data import AcceptedData, refuse_again, watched_elsewhere
from truerank.rankers.constructor_names import taking_other_names
from truerank.rankers.own_importance import MOST_FEATURES, own_importance
from truerank.rankers.round_results import RoundResults, values_by_round
from truerank.solvers.result import NEEDS_ACTION, Status

_LOOKED_AT = 20_000  # rows whose scores are looked at after a fit
_ROUNDING = 1e-13  # of the largest score: a spread up to this is rounding


class Ranker(RoundResults, AcceptedData, BaseEstimator):
    """Base class of rankers.

    A subclass implements `_fit(data, valid)`, which sets the fitted attributes, and `_predict(X)`, which scores checked
    rows. `model_attributes` lists what a model file keeps; `allow_nan`, `allow_sparse` and `allow_binned` limit X.

    Attributes
    ----------
    n_features_in_, n_queries_in_ : int
        Number of columns and of queries seen in fit.
    feature_names_in_ : array (n_features_in_,) of str
        Column names, only where the data had names.
    status_ : str
        Reason why training stopped.
    inputs_ : {"float32", "decimal", "float64", "close"}
        Numbers in the training columns: float32, float64 with short decimal texts, any float64, or float64 that
        float32 merges.
    close_columns_ : list of int
        Columns of numbers that float32 merges.
    saw_missing_ : bool
        Whether a training value was missing.
    training_sketch_ : TrainingSketch
        Digests with which `training_queries(ranker, data)` recognises the training queries. A ranker that was fitted
        inside another one has none.
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "n_features_in_": "int in [1, inf]",
        "feature_names_in_": "str[p]?",
        "n_queries_in_": "int in [0, inf]",
        "status_": "str?",
        "inputs_": " | ".join(f"'{name}'" for name in INPUTS) + "?",
        "close_columns_": "list[] of int in [0, p)?",
        "saw_missing_": "bool?",
        "training_sketch_": "TrainingSketch?",
    }
    training_sketch_size: ClassVar[int] = SIZE  # 0 for no sketch; on a class or an object, before fit
    uses_eval_set: ClassVar[bool] = False  # has early stopping, or a choice by validation queries
    chosen_from: ClassVar[str] = ""  # the parameter from whose list they choose, if they do nothing else

    history_: dict[str, np.ndarray]

    # scikit-learn's metadata routing: with it switched on, `params={"qid": qid}` reaches fit and score.
    __metadata_request__fit: ClassVar[dict[str, Any]] = dict.fromkeys(
        ("qid", "query_weight", "eval_X", "eval_y", "eval_qid"), True
    )
    # A Pipeline passes `sample_weight=None` to the score of its last step, which must name it.
    __metadata_request__score: ClassVar[dict[str, Any]] = {"qid": True, "sample_weight": None}
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"qid": False}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):  # that of `parameters` is made later, and decorated then
            taking_other_names(cls)

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Cache scikit-learn's names, since a fit asks for them three times at a millisecond each."""
        names: list[str] = super()._get_param_names()
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.allow_nan
        tags.input_tags.sparse = self.allow_sparse
        tags.target_tags.required = True
        # Scores are numbers: partial_dependence, bagging and other tools accept regressors and classifiers only.
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags(poor_score=True)
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        query_weight: Any = None,
        eval_set: Any = None,
        eval_X: Any = None,
        eval_y: Any = None,
        eval_qid: Any = None,
        **other: Unpack[NoOthers],
    ) -> Any:
        """Learn from judged rankings.

        Parameters
        ----------
        X : array (n, p), sparse matrix if the ranker accepts one, data frame, or RankingData
            Rows in any order. A `RankingData` has its own `y` and `qid`. A column `qid` of a data frame is the query of
            each row, not a feature.
        y : array (n,)
            Relevance grades, higher is better. A measure counts a negative grade as not judged.
        qid : array (n,) of hashables, optional
            Query of each row. None means that all rows are one query; more than 1,000 rows are then an error.
        query_weight : array (m,) or (n,), mapping or Series by query, optional
            Weight of each query, in order of first appearance, by row, or by query id; 2 equals two copies of the
            query. A Series whose index is neither that of the rows nor of queries is an error.
        eval_set : (X, y, qid) or RankingData, or a list or dict by name of these, optional
            Validation queries, for early stopping or the choice among values of a setting. The last of several sets
            chooses; `evals_result_` has all of them.
        eval_X, eval_y, eval_qid : arrays (v, p), (v,), (v,), optional
            The same as `eval_set=(eval_X, eval_y, eval_qid)`. In a scikit-learn Pipeline with
            `transform_input=["eval_X"]`, the earlier steps transform `eval_X`, and never `eval_set`.
        **other
            Arguments of other libraries: `group` (sizes of consecutive queries), `group_id`, and for
            `eval_set=[(X, y)]` either `eval_qid=[qid]` or `eval_group=[sizes]`, with `eval_names`. For this fit alone:
            `callbacks`, functions of a `truerank.core.rounds.Round` that stop the fit if they return True; `verbose`,
            the number of rounds between two lines; `early_stopping_rounds`; `eval_metric`, of which the last chooses.

        Returns
        -------
        self

        Raises
        ------
        InvalidInputError
            If arrays do not match, X has nan or infinity that the ranker does not allow, the ranker has no use for
            `eval_set`, or an argument is unknown.

        Notes
        -----
        After an error or an interrupt the ranker is unchanged and keeps the model of an earlier fit.
        """
        others: dict[str, Any] = {**other, "eval_X": eval_X, "eval_y": eval_y, "eval_qid": eval_qid}
        return self._whole_fit(X, y, qid, query_weight, None, eval_set, others)

    def _whole_fit(
        self,
        X: Any,
        y: Any,
        qid: Any,
        query_weight: Any,
        sample_weight: Any,
        eval_set: Any,
        other: dict[str, Any],
        more: dict[str, Any] | None = None,
    ) -> Any:
        """Fit as `fit` documents; `more` are further arguments of the `_fit` of a subclass, by name."""
        if y is None and hasattr(X, "columns") and "y" in (labels := column_labels(X)):  # as `read_table` reads it
            y, X = X["y"], X[[label for name, label in labels.items() if name not in ("y", "docid")]]
        X, qid, call = fit_call(self, X, qid, eval_set, other)
        there, sets, more = rows_elsewhere(X, y, qid), call.sets, more or {}
        if there is not None:
            own = {"y": y, "qid": qid} if there is X else {}  # else the parts were made of them
            own |= {"query_weight": query_weight, "sample_weight": sample_weight, "eval_at": call.cutoffs or None}
            self._refuse_beside(**own, **other, **more)
            sets, call.measures = watched_elsewhere(sets, call.measures), []
        elif other or call.refused:
            refuse_unknown(self, other, call.refused)
        if sets:
            self._check_sets(len(sets), len(sets) > 1 or call.cutoffs or call.measures)
        told: Any
        data: Any  # rows here, or a RowSource
        with fitting(type(self).__name__, call.callbacks) as told, whole_fit(self) as fresh:
            fresh.__dict__.update(call.settings)
            data = fresh._source(there) if there is not None else fresh._training_data(X, y, qid, query_weight)
            if sample_weight is not None:
                data = data.with_sample_weight(weights_by_row(sample_weight, data))
            watched: list[tuple[str, Any]] = []
            valid: Any = None
            for name, given in sets:
                valid = fresh._source_beside(data, given) if there is not None else fresh._validation_data(given)
                watched.append((name, valid))
            fresh.n_queries_in_ = data.n_queries
            fresh.__dict__.pop("evals_result_", None)  # of an earlier fit
            if watched:
                told.watched = watched[-1][0], fresh._measure("validation_measure").name
            check_parameters(fresh)
            with nullcontext() if there is None else data.fitting(self, valid):
                fresh._fit(data, valid, **more)
                if watched:
                    fresh.evals_result_ = values_by_round(fresh, watched, call.cutoffs, call.measures)
            for record in call.records:
                record.update(getattr(fresh, "evals_result_", {}))
            begun = self if getattr(self, "warm_start", False) else more.get("init_model")
            fresh._keep_sketch(data if told.outermost else None, begun)
            known = fresh.__dict__.pop("_training_scores", None)
            if there is None and type(self)._predict is not Ranker._predict:  # a ranker inside warns in its own fit
                _warn_of_flat_scores(fresh, data, known)
            for name in call.settings:
                setattr(fresh, name, getattr(self, name))
        return self

    @property
    def chooses_by_eval_set(self) -> bool:
        """Whether validation queries can change a fit with these settings, such as several values or a patience."""
        return self.uses_eval_set and (not self.chosen_from or np.size(getattr(self, self.chosen_from)) > 1)

    def _check_sets(self, n_sets: int, several: object) -> None:
        """Raise an error if the ranker has no use for validation queries, or for several sets or measures."""
        if not self.uses_eval_set:
            raise InvalidInputError(
                f"eval_set has no effect: {type(self).__name__} has neither early stopping nor a setting that "
                "validation queries choose",
                argument="eval_set",
                remedies=["leave eval_set out, and choose settings with GridSearchCV or `truerank cross-validate`"],
                code="unused",
            )
        if several and not hasattr(self, "staged_predict"):
            raise InvalidInputError(
                f"{type(self).__name__} evaluates one validation set by one measure, got {n_sets} sets. Pass the set "
                "that chooses the round, and evaluate the other sets after the fit",
                argument="eval_set",
            )

    def _measure(self, parameter: str = "measure") -> Any:
        """Return the measure that a parameter names, or by default `measure`, under the ranker's convention."""
        chosen: Any = getattr(self, parameter, None)
        if chosen is None:
            chosen = getattr(self, "measure", "nDCG@10")
        return parse_measure(chosen, convention=getattr(self, "convention", DEFAULT_CONVENTION))

    def save_model(self, path: Any) -> None:
        """Write the fitted ranker to a file: `truerank.save_model(ranker, path)`."""
        resolve("truerank.models.model_file:save_model")(self, path)

    def load_model(self, path: PathLike) -> None:
        """Load a file into this ranker, of the same class; `truerank.load_model(path)` returns a new ranker."""
        loaded = resolve("truerank.models.model_file:load_model")(path)
        if type(loaded) is not type(self):
            raise ModelFileError(
                f"{path} contains a model of class {type(loaded).__name__}, not {type(self).__name__}. "
                "Use truerank.load_model(path)",
                code="other-class",
            )
        self.__dict__ = loaded.__dict__

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each feature in the model (p,), summing to 1 (0 where nothing was learned).

        The shares are those of the weights, in the units of the training columns (`scale_`), or of the gain of trees.
        """
        check_is_fitted(self)
        shares = np.abs(np.asarray(self._feature_shares(), dtype=np.float64))
        total = shares.sum()
        return shares / total if total > 0 else shares

    def _repr_html_(self) -> str:
        """Return scikit-learn's diagram of the settings and the largest weights or shares, for a notebook."""
        kind, values = own_importance(self) or ("", {})
        rows = [[name, value] for name, value in values.items()][:MOST_FEATURES]
        return estimator_html_repr(self) + (styled_table(rows, ["feature", kind], "html") if rows else "")

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return the text and HTML that IPython shows."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _feature_shares(self) -> Any:
        """Return the numbers (p,) whose shares `feature_importances_` returns."""
        raise AttributeError(
            f"{type(self).__name__} has no feature_importances_. Call permutation_importance(ranker, data)"
        )

    def predict(self, X: Any, *, qid: Any = None, **other: Unpack[NoOthers]) -> np.ndarray:
        """Return scores (n,), float64, in the order of the caller's rows; higher is better.

        A score depends on the row's own features only. `qid` has no effect but is checked. Arguments of other libraries
        (`num_iteration`, `iteration_range`, …) must select all trees.
        """
        check_is_fitted(self)
        if other:
            check_predict_arguments(self, other)
        there = elsewhere(X)
        if there is not None:
            return there.each(answered, self, "predict")
        if not isinstance(X, RankingData):
            X, qid = self._without_query_column(X, qid)
        else:
            refuse_again(None, qid)
        with Interruptible():
            rows, restore = self._rows_to_score(X)
            if qid is not None:
                group_rows(qid, rows.shape[0])  # raises an error unless there is one query id for each row
            return restore(self._predict(rows))

    def rank(self, X: Matrix, *, qid: Any = None) -> np.ndarray:
        """Return the rank of each row within its query (n,), int64; 1 is best, and ties keep the order of the rows.

        Without `qid` all rows are one query; more than 1,000 rows are then an error, as in `fit`.
        """
        X, qid = self._without_query_column(X, qid)
        there = rows_elsewhere(X, None, qid)
        if there is not None:
            return there.each(answered, self, "rank")  # type: ignore[return-value]
        scores = self.predict(X, qid=qid)
        if isinstance(X, RankingData):
            grouping: Grouping = X
        else:
            if qid is None:
                refuse_one_long_list(len(scores), f"{type(self).__name__}.rank", "rank(X, qid=qid)")
            grouping = group_rows(qid, len(scores))
        return grouping.restore(ranks_by_query(grouping.grouped(scores), grouping.offsets))

    def permutation_importance(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        repeats: int = 5,
        random_state: RandomState = None,
    ) -> Any:
        """Return how much the ranker's measure falls when a feature is shuffled within queries.

        X may be a `RankingData`, or rows with `y` and `qid`. The result is an `Importance`, as an array the mean (p,).
        """
        check_is_fitted(self)
        X, qid = self._without_query_column(X, qid)
        if isinstance(X, RankingData):
            refuse_again(y, qid)
            data = X
        else:
            data = RankingData(X, y, qid)
        convention = getattr(self, "convention", None) or DEFAULT_CONVENTION
        measured = resolve("truerank.inspection.importance:permutation_importance")
        return measured(self, data, convention=convention, repeats=repeats, random_state=random_state)

    def contributions(self, X: Matrix, *, reference: Any = None) -> np.ndarray:
        """Return the contributions of the features to the score of each row: exact Shapley values for boosted trees.

        Parameters
        ----------
        X : array-like (n, p), data frame or RankingData
        reference : the same, optional
            Rows that define how frequent each answer is, for boosted trees; by default the rows of X.

        Returns
        -------
        ndarray (n, p)
            The sum of a row is its score less a constant. For linear rankers a contribution is weight times value.

        Raises
        ------
        InvalidInputError
            If the scores of this ranker are not a sum over features.
        """
        check_is_fitted(self)
        rows, restore = self._rows_to_score(X)
        given = rows if reference is None else self._rows_to_score(reference)[0]
        values = resolve("truerank.inspection.explanation:row_contributions")(self, rows, given)
        if values is None:
            raise InvalidInputError(
                f"{type(self).__name__} has no contributions, because its scores are not a sum over features. Use "
                "permutation_importance",
                code="no-contributions",
            )
        return np.asarray(restore(values))

    def score(self, X: Any, y: Any = None, *, qid: Any = None) -> float:
        """Return the mean of the ranker's measure (`measure`, else nDCG@10) over the queries, under its `convention`.

        The float has an attribute `training_queries`, the number of these queries on which the ranker was trained. If
        it is positive, the first call warns.

        Raises
        ------
        InvalidInputError
            Without `qid` when the ranker was fitted with several queries. scikit-learn passes `qid` to `score` only
            after `sklearn.set_config(enable_metadata_routing=True)`.
        """
        check_is_fitted(self)
        X, qid = self._without_query_column(X, qid)
        there = rows_elsewhere(X, y, qid)
        if there is not None and there is not X:
            X, y, qid = there, None, None
        if isinstance(X, Rows):
            refuse_again(y, qid)
        else:
            if qid is None and self.n_queries_in_ > 1:
                raise InvalidInputError(
                    f"score requires qid: this ranker was fitted with {self.n_queries_in_} queries, and without qid "
                    "all rows would count as one. Pass a data frame with a column 'qid'. For arrays: in GridSearchCV "
                    "and cross_validate call sklearn.set_config(enable_metadata_routing=True) and pass "
                    f"params={{'qid': qid}} (GridSearchCV: fit(X, y, qid=qid)). In permutation_importance, pass "
                    "scoring=lambda ranker, X, y: ranker.score(X, y, qid=qid)",
                    argument="qid",
                )
            names = getattr(self, "feature_names_in_", None)
            X = RankingData(self._checked(X, reset=False), as_grades(y, None), qid, feature_names=names)
        return Score.of(float(self._measure().mean(X.judgements(), X.scores(self))), self, X)

    def set_params(self, **params: Any) -> Any:
        """Set parameters as in scikit-learn, also under the names of other libraries."""
        known = self.get_params(deep=True)
        if not all(name in known for name in params) or "objective" in params:
            nested = {name: value for name, value in params.items() if "__" in name}
            own = {name: value for name, value in params.items() if "__" not in name}
            params = nested | translated(type(self), self.get_params(deep=False), own, begun=True)
        return super().set_params(**params)

    # A subclass implements these.

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        raise NotImplementedError

    def _predict(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    # A subclass may call these.

    def _finish(self, status: Status) -> None:
        """Store the reason for the stop, and warn if the user should act."""
        self.status_ = status.value.format(getattr(self, "n_estimators", getattr(self, "max_iter", "")))
        if status in NEEDS_ACTION:
            warn(f"{type(self).__name__} {status.value}", ConvergenceWarning)

    def _keep_sketch(self, data: object, earlier: Any = None) -> None:
        """Store digests of the training queries and of those of the model that this fit continued."""
        before = getattr(earlier, "training_sketch_", None)
        self.__dict__.pop("training_sketch_", None)
        self.__dict__.pop("_warned_of_training_queries", None)
        if data is not None and self.training_sketch_size > 0:
            own = TrainingSketch.of(data, self.training_sketch_size)
            self.training_sketch_ = own if before is None else before | own

    def check_model(self) -> None:
        """Complete a ranker whose checked attributes were loaded from a model file."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)


def _warn_of_flat_scores(ranker: Any, data: RankingData, known: np.ndarray | None) -> None:
    """Warn if training scores cannot rank, because they are not finite, or equal within every query.

    Scores (n,) that the fit itself added up are `known`, and no kernel of prediction is compiled for them.
    """
    last = int(np.searchsorted(data.offsets, _LOOKED_AT, side="right"))  # whole queries, one at least
    offsets = data.offsets[: max(last, 2)]
    if known is None:
        with np.errstate(all="ignore"):
            known = np.asarray(ranker._predict(data.X[: int(offsets[-1])]), dtype=np.float64)
    scores = known[: int(offsets[-1])]
    name = type(ranker).__name__
    if not np.isfinite(scores).all():
        warn(
            f"{name}: {np.count_nonzero(~np.isfinite(scores))} of {len(scores)} training scores are not finite. "
            "Scale the columns of X (`truerank describe` lists huge ones), or raise the regularisation",
            ConvergenceWarning,
        )
        return
    starts = offsets[:-1][np.diff(offsets) > 0]
    if len(starts) == 0:
        return
    spread = np.maximum.reduceat(scores, starts) - np.minimum.reduceat(scores, starts)
    if spread.max() > _ROUNDING * max(float(np.abs(scores).max()), np.finfo(float).tiny):
        return
    warn(
        f"{name} learned nothing: its scores are the same for all documents of a query. Training "
        f"{getattr(ranker, 'status_', 'gave no reason')}. Check that queries have documents of different grades "
        "(`rel` or the convention may leave none) and different features. Otherwise regularise less (a larger C, a "
        "smaller alpha), scale the columns, or train on another measure",
        ConvergenceWarning,
    )


def answered(rows: Matrix, ranker: Ranker, method: str) -> Any:
    """Return the result of a ranker's method for the rows of a part."""
    return getattr(ranker, method)(rows)
