"""Names of LightGBM, XGBoost and CatBoost, for scripts in which only the import changes.

    from truerank.compat import port as lgb  # or as xgb; or: from truerank.compat.port import CatBoostRanker, Pool

The rankers are `ObliviousBoosting` with the default objective of the library. `Dataset`, `DMatrix` and
`Pool` hold the rows, `train` fits a ranker to the rows, and callbacks have the effects of the library's callbacks.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from truerank.core.errors import InvalidInputError
from truerank.core.names import resolve
from truerank.core.rounds import Round
from truerank.data.grouping import queries_of_sizes

_HARMLESS = (
    "params", "free_raw_data", "nthread", "thread_count", "silent", "max_bin", "ref", "reference", "missing",
    "feature_name", "feature_names", "feature_types", "enable_categorical", "column_description",
)  # fmt: skip


def _ranker(objective: str) -> Any:
    def ranker(params: Mapping[str, Any] | None = None, **settings: Any) -> Any:
        """Return an `ObliviousBoosting` from parameters under the names of another library."""
        given = {**(params or {}), **settings}
        default = {} if {"objective", "loss_function"} & given.keys() else {"objective": objective}
        return resolve("truerank.rankers.oblivious_boosting:ObliviousBoosting")(**default, **given)

    return ranker


LGBMRanker, XGBRanker, XGBRFRanker = _ranker("lambdarank"), _ranker("lambdarank"), _ranker("lambdarank")
CatBoostRanker, CatBoost = _ranker("yetirank"), _ranker("mse")
LGBMRegressor, XGBRegressor, CatBoostRegressor = CatBoost, CatBoost, CatBoost


class Dataset:
    """Rows, grades and queries in one object, as in `Dataset`, `DMatrix` and `Pool`."""

    def __init__(
        self,
        data: Any,
        label: Any = None,
        *,
        group: Any = None,
        qid: Any = None,
        group_id: Any = None,
        weight: Any = None,
        group_weight: Any = None,
        cat_features: Any = None,
        categorical_feature: Any = None,
        **other: Any,
    ) -> None:
        unknown = [name for name, value in other.items() if value is not None and name not in _HARMLESS]
        if unknown:
            raise InvalidInputError(
                f"truerank has no counterpart of {', '.join(unknown)}. Write ObliviousBoosting().fit(X, y, qid=qid)",
                argument=unknown[0],
                code="unknown-argument",
            )
        self.data, self.label, self.group = data, label, group
        self.qid = qid if qid is not None else group_id
        self.weights = {"sample_weight": weight, "query_weight": group_weight}
        self.categorical = categorical_feature if cat_features is None else cat_features

    def set_group(self, group: Any) -> Dataset:
        """Set the sizes of consecutive queries."""
        self.group = group
        return self

    def create_valid(self, data: Any, label: Any = None, **settings: Any) -> Dataset:
        """Return validation rows."""
        return Dataset(data, label, **settings)

    def get_label(self) -> Any:
        """Return the grades."""
        return self.label

    @property
    def as_set(self) -> tuple[Any, Any, Any]:
        """Rows, grades and queries as a validation set of `fit`."""
        return self.data, self.label, self.qid if self.group is None else queries_of_sizes(self.group, "group", 0)

    def fit_arguments(self) -> dict[str, Any]:
        """Return the rows as arguments of `fit`."""
        found = dict(zip(("X", "y", "qid"), self.as_set)) | self.weights
        return found | ({} if self.categorical in (None, "auto") else {"cat_features": self.categorical})


DMatrix = QuantileDMatrix = Pool = Dataset


def train(
    params: Mapping[str, Any] | None = None,
    train_set: Any = None,
    num_boost_round: int = 100,
    *,
    valid_sets: Any = None,
    valid_names: Any = None,
    evals: Any = (),
    evals_result: dict[str, Any] | None = None,
    dtrain: Any = None,
    pool: Any = None,
    eval_set: Any = None,
    callbacks: Any = None,
    **other: Any,
) -> Any:
    """Return a fitted `ObliviousBoosting`: `train` of LightGBM, XGBoost (`evals`) or CatBoost (`pool`, `eval_set`)."""
    listed = valid_sets if isinstance(valid_sets, list | tuple) else [] if valid_sets is None else [valid_sets]
    names = [valid_names] if isinstance(valid_names, str) else valid_names or [f"valid_{k}" for k in range(len(listed))]
    sets = dict(zip(names, listed)) | {name: one for one, name in evals}
    sets |= {} if eval_set is None else {"eval": eval_set}
    settings = dict(params or {})
    if "alpha" in settings and "n_estimators" not in settings:  # XGBoost's absolute penalty, not ours of that name
        settings["reg_alpha"] = settings.pop("alpha")
    if (
        not {"n_estimators", "num_iterations", "iterations", "num_trees", "num_boost_round", "num_round"}
        & settings.keys()
    ):
        settings["n_estimators"] = num_boost_round
    ranker = LGBMRanker(settings) if pool is None else CatBoost(settings)
    heard = [*(callbacks or []), *([] if evals_result is None else [RecordEvaluation(evals_result)])]
    rows = next(one for one in (train_set, dtrain, pool) if one is not None)
    return ranker.fit(rows, eval_set=sets or None, callbacks=heard or None, **other)


class EarlyStopping:
    """Stop after a number of rounds without improvement."""

    def __init__(self, stopping_rounds: int | None = None, *_: Any, rounds: int | None = None, **__: Any) -> None:
        self.stopping_rounds = rounds if stopping_rounds is None else stopping_rounds


class EvaluationMonitor:
    """Print a line after each `period` rounds."""

    def __init__(self, period: int = 1, *_: Any, **__: Any) -> None:
        self.period = period


class RecordEvaluation:
    """Store the values by round in a dict."""

    def __init__(self, eval_result: dict[str, Any]) -> None:
        self.eval_result = eval_result


class LearningRateScheduler:
    """Set the learning rate of each round, by a list or a function of the round."""

    def __init__(self, learning_rate: Any) -> None:
        self.learning_rates = learning_rate


class TrainingCallback:
    """Base of callbacks whose `after_iteration(model, epoch, evals_log)` returns True to end the fit, as in XGBoost.

    `model` is None, because there is no model before the fit ends.
    """

    def __init__(self) -> None:
        self.log: dict[str, dict[str, list[float]]] = {}

    def __call__(self, done: Round) -> bool:
        log = self.__dict__.setdefault("log", {})
        for name, own in done.measures.items():
            for measure, value in own.items():
                log.setdefault(name, {}).setdefault(measure.lower(), []).append(value)
        return bool(self.after_iteration(None, done.round - 1, log))

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Do nothing; subclasses override this method."""
        return False


def Booster(params: Any = None, cache: Any = (), model_file: Any = None, **other: Any) -> Any:
    """Return a ranker for `load_model`, or the ranker in a file that `save_model` wrote."""
    ranker = LGBMRanker()
    if model_file is not None:
        ranker.load_model(model_file)
    return ranker


def LGBMClassifier(*_: Any, **__: Any) -> Any:
    """Raise an error, because this module has no classifier."""
    raise InvalidInputError(
        "truerank.compat.port has rankers and regressors, but no classifier. Keep the classifier of its library, and "
        'pass it fitted: truerank.Experiment(data, {"mine": classifier}). To rank by classes 0 and 1, write LGBMRanker',
        code="no-classifier",
    )


XGBClassifier = CatBoostClassifier = LGBMClassifier
_INSTEAD = {
    "cv": 'use truerank.cross_validate(ranker, RankingData(X, y, qid), "nDCG@10", cv=5)',
    "plot_importance": "use truerank.permutation_importance(ranker, data).plot(), or ranker.feature_importances_",
    "plot_metric": "use ranker.evals_result_, which has the values by round",
    "plot_tree": "use truerank.explain(ranker, data, query=...)",
}


def __getattr__(name: str) -> Any:
    raise AttributeError(f"truerank.compat.port has no {name}" + (f": {_INSTEAD[name]}" if name in _INSTEAD else ""))


early_stopping, log_evaluation, print_evaluation = EarlyStopping, EvaluationMonitor, EvaluationMonitor
record_evaluation, reset_parameter = RecordEvaluation, LearningRateScheduler
callback = sklearn = sys.modules[__name__]  # `xgb.callback.EarlyStopping`, `xgb.sklearn.XGBRanker`
