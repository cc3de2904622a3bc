"""Translate or explain arguments of `fit` and `predict` of XGBoost, LightGBM and CatBoost."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from truerank.compat.name_table import CALLBACKS, INSTEAD, INSTEAD_IN_FIT, NEAR, SAME, WARNED
from truerank.compat.other_names import asks_for_nothing, measure_of, ready
from truerank.core.checks import check_function, check_positive_int, column_labels, declared_categories
from truerank.core.errors import InvalidInputError, warn
from truerank.core.names import nearest
from truerank.core.rounds import Callback, Lines
from truerank.core.types import ArrayLike, Matrix, Scorer
from truerank.data.grouping import queries_of_sizes
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import elsewhere

QUERY_COLUMN = "qid"
_LIBRARIES = ("catboost", "lightgbm", "xgboost")
_FOREIGN_DATA = (
    "X is a {} of {}; pass the rows from which it was created: fit(X, y, qid=qid, eval_set=(X_valid, y_valid, "
    "qid_valid)), predict(X)"
)
_OTHERS = "a function of `truerank.core.rounds.Round` (round, measures, arrays), which stops the fit by returning True"


@dataclass
class FitCall:
    """The arguments of a fit, under truerank's names."""

    callbacks: list[Callback] = field(default_factory=list)
    sets: list[tuple[str, Any]] = field(default_factory=list)  # validation sets by name; the last one chooses
    settings: dict[str, Any] = field(default_factory=dict)  # parameters for this fit alone
    measures: list[Any] = field(default_factory=list)  # of `evals_result_`, besides the one that chooses
    cutoffs: list[int] = field(default_factory=list)  # of nDCG in `evals_result_`
    refused: dict[str, str] = field(default_factory=dict)  # arguments without a counterpart, and advice
    records: list[dict[str, Any]] = field(default_factory=list)  # to which `evals_result()` is added


def fit_call(ranker: Any, X: Matrix, qid: object, eval_set: object, other: dict[str, Any]) -> tuple[Any, Any, FitCall]:
    """Return X and `qid` of a fit, and its other arguments; `other` keeps unknown arguments.

    `eval_set` is RankingData, (X, y, qid), (X, y), or a list or dict of these. `other` may have `group` (sizes),
    `group_id`, `eval_X`, `eval_y`, `eval_qid`, `eval_group`, `eval_names`, `callbacks`, `verbose`, `eval_metric`,
    `early_stopping_rounds` and `eval_at`. Each set becomes RankingData or (X, y, qid).
    """
    X, qid = without_query_column(X, qid)
    for absent in [key for key, value in other.items() if value is None]:
        del other[absent]
    call, known, name = FitCall(), ranker.get_params(deep=False), type(ranker).__name__
    rows, grades = other.pop("eval_X", None), other.pop("eval_y", None)
    if rows is not None or grades is not None:
        if rows is None or grades is None or eval_set is not None:
            raise InvalidInputError(
                f"{name}.fit: expected either eval_X and eval_y, or eval_set. Give eval_X, eval_y and eval_qid, or "
                "eval_set=(X, y, qid)",
                argument="eval_X",
            )
        eval_set = list(zip(rows, grades)) if isinstance(rows, tuple) else [(rows, grades)]
    verbose = [known.get("verbose")]
    for given in (known.get("callbacks"), other.pop("callbacks", None)):
        for one in [] if given is None else given if isinstance(given, list | tuple) else [given]:
            _read_callback(one, name, known, call, verbose)
    for key in ("early_stopping_rounds", "early_stopping_round"):
        if key in other and "patience" in known:
            call.settings["patience"] = other.pop(key)
    if "eval_metric" in other and "validation_measure" in known:
        if eval_set is None:
            raise InvalidInputError(
                f"{name}.fit: eval_metric requires eval_set. Pass eval_set=(X, y, qid)", argument="eval_metric"
            )
        _read_measures(call, other.pop("eval_metric"), f"{name}.fit: eval_metric")
    elif isinstance(known.get("validation_measure"), list | tuple):
        _read_measures(call, known["validation_measure"], f"{name}: validation_measure")
    for key in ("verbose", "verbose_eval"):
        if isinstance(other.get(key), bool | int | np.bool_ | np.integer):
            verbose.append(other.pop(key))
    period = next(filter(None, map(period_of, filter(None, verbose))), 0)
    if period:
        call.callbacks.append(Lines(period))
    if other or eval_set is not None:
        qid, call.sets = _read_sets(name, qid, eval_set, other)
        _drop_what_asks_for_nothing(name, other)
        call.cutoffs = other.pop("eval_at", [])
    _read_categories(name, known, X, call, other)
    return X, qid, call


def _read_callback(one: Any, name: str, known: Mapping[str, Any], call: FitCall, verbose: list[Any]) -> None:
    """Read a callback: a function of the user, or an object of another library, from which the setting is read."""
    kind = type(one).__name__.strip("_").removesuffix("Callback")
    attribute, ours, instead = CALLBACKS.get(kind, ("", "", _OTHERS))
    value = next((getattr(one, own) for own in attribute.split() if hasattr(one, own)), None)
    if isinstance(value, Mapping) and ours == "learning_rate":
        value = value.get(ours) if len(value) == 1 else None
    if value is None or (ours not in known and ours not in ("verbose", "records")):
        libraries = [base.__module__.partition(".")[0] for base in type(one).__mro__]
        if any(library in _LIBRARIES for library in libraries) or kind in CALLBACKS:
            call.refused[f"callbacks: {type(one).__name__}"] = f"write {instead}"
            return
        if not callable(one) and callable(after := getattr(one, "after_iteration", None)):  # CatBoost's: True goes on
            call.callbacks.append(
                lambda done: after(SimpleNamespace(iteration=done.round, metrics=done.measures)) is False
            )
            return
        if not callable(one):
            raise InvalidInputError(
                f"{name}.fit: callbacks must be functions, got {type(one).__name__}", argument="callbacks"
            )
        check_function(one, f"{name}.fit: a callback", "round")
        call.callbacks.append(one)
    elif ours == "verbose":
        verbose.append(value)
    elif ours == "records":
        call.records.append(value)
    elif ours == "learning_rate" and callable(value):
        call.settings[ours] = [float(value(place)) for place in range(known["n_estimators"])]
    else:
        call.settings[ours] = value


def _read_categories(name: str, known: Mapping[str, Any], X: Any, call: FitCall, other: dict[str, Any]) -> None:
    """Read the columns of categories that `fit` names, else those that a data frame declares."""
    if "categorical" not in known:
        return
    for key in ("cat_features", "categorical_feature"):
        given = other.pop(key, "auto")
        given = [given] if isinstance(given, str) else list(given)
        if given == ["auto"]:
            continue  # as in LightGBM, the types decide
        call.settings["categorical"] = given
        warn(f"{name}.fit: {key} is read as categorical={call.settings['categorical']!r:.60}: {NEAR[key][2]}")
    if known["categorical"] is None and (declared := declared_categories(X)):
        call.settings.setdefault("categorical", declared)


def without_query_column(X: Any, qid: Any, features: Iterable[str] | None = None) -> tuple[Any, Any]:
    """Return X without its column `qid`, as XGBoost does, and the column if `qid` is None; any other X is unchanged.

    The column is kept if it is in the `features` (names) of a fitted ranker. A column that differs from `qid` raises
    `InvalidInputError`.
    """
    if isinstance(X, np.ndarray | RankingData):
        return X, qid
    X = X.data if hasattr(X, "fit_arguments") else X
    _refuse_foreign(X, _FOREIGN_DATA)
    labels = column_labels(X)
    if QUERY_COLUMN not in labels or (features is not None and QUERY_COLUMN in list(features)):
        return X, qid
    there = elsewhere(X)
    column = np.asarray(X[QUERY_COLUMN]) if there is None else X[QUERY_COLUMN]
    if qid is not None and there is not None:
        raise InvalidInputError("X has a column 'qid', and qid was also given. Omit one of them", argument="X")
    if qid is not None and not (len(column) == np.size(qid) and (column == np.asarray(qid)).all()):
        raise InvalidInputError("the column 'qid' of X differs from qid=…. Omit the wrong one", argument="qid")
    others = [label for name, label in labels.items() if name != QUERY_COLUMN]
    return X.select(others) if hasattr(X, "column_names") else X[others], column


def _refuse_foreign(value: object, sentence: str) -> None:
    """Raise InvalidInputError if the class of a value, or a base class, belongs to another library."""
    for base in type(value).__mro__:
        library = base.__module__.partition(".")[0]
        if library in _LIBRARIES:
            raise InvalidInputError(sentence.format(type(value).__name__, library), code="other-library")


def _read_measures(call: FitCall, given: object, name: str) -> None:
    """Read one measure or several; the last measure selects the round, as in XGBoost."""
    listed = list(given) if isinstance(given, list | tuple) else [given]
    if not listed:
        raise InvalidInputError(f"{name} is empty. Pass a measure such as 'ndcg@10'")
    *call.measures, call.settings["validation_measure"] = [measure_of(name, one) for one in listed]


def period_of(verbose: object) -> int:
    """Return the number of rounds between two progress lines; 0 (in LightGBM also a negative number) means no lines.

    >>> period_of(True), period_of(-1), period_of(10)
    (1, 0, 10)
    """
    if isinstance(verbose, bool | np.bool_):
        return int(verbose)
    return max(0, check_positive_int(verbose, "verbose", -1))


def _read_sets(name: str, qid: object, eval_set: object, other: dict[str, Any]) -> tuple[Any, list[tuple[str, Any]]]:
    """Return `qid`, and the validation sets by name."""
    for alias in ("group_id", "group"):
        given = other.pop(alias, None)
        if given is None:
            continue
        if qid is not None:
            raise InvalidInputError(f"{name}.fit: {alias} and qid were both given. Pass only qid")
        qid = given if alias == "group_id" else _of_sizes(given, alias)
    eval_qid, eval_group = other.pop("eval_qid", None), other.pop("eval_group", None)
    names = other.pop("eval_names", None)
    if eval_set is None:
        if eval_qid is not None or eval_group is not None:
            raise InvalidInputError(
                f"{name}.fit: eval_qid and eval_group belong to eval_set=[(X, y)], which is missing. Pass it",
                argument="eval_qid",
            )
        return qid, []
    if isinstance(eval_set, Mapping):
        names, sets = list(map(str, eval_set)), list(eval_set.values())
    else:
        sets = eval_set if isinstance(eval_set, list) else [eval_set]
        if isinstance(eval_set, list) and len(sets) == 3 and not any(_is_set(one) for one in sets):
            sets = [tuple(sets)]  # [X, y, qid] for (X, y, qid)
    names = [f"valid_{k}" for k in range(len(sets))] if names is None else [str(one) for one in names]
    if len(names) != len(sets) or len(set(names)) < len(names):
        raise InvalidInputError(f"{name}.fit: eval_names must be {len(sets)} different names, got {names}")
    queries = _of_each(eval_qid, len(sets), "eval_qid", name)
    sizes = _of_each(eval_group, len(sets), "eval_group", name)
    settled = []
    for label, one, ids, counts in zip(names, sets, queries, sizes):
        one = getattr(one, "as_set", one)
        _refuse_foreign(one, _FOREIGN_DATA)
        if isinstance(one, tuple | list) and len(one) == 2 and (ids is not None or counts is not None):
            if ids is not None and counts is not None:
                raise InvalidInputError(f"{name}.fit: pass eval_qid or eval_group, not both", argument="give")
            one = (*one, ids if ids is not None else _of_sizes(counts, "eval_group"))
        elif ids is not None or counts is not None:
            raise InvalidInputError(
                f"{name}.fit: eval_qid and eval_group require eval_set=[(X, y)], but a set has more entries"
            )
        if isinstance(one, tuple | list) and len(one) in (2, 3):
            rows, ids = without_query_column(one[0], one[2] if len(one) == 3 else None)
            one = (rows, one[1]) if ids is None and len(one) == 2 else (rows, one[1], ids)
        settled.append((label, one))
    return qid, settled


def _of_sizes(sizes: ArrayLike, name: str) -> Any:
    """Return the query number of each row (n,) from the sizes of consecutive queries; a Dask array for Dask input."""
    queries = getattr(elsewhere(sizes), "queries", None)
    if queries is None:
        return queries_of_sizes(sizes, name, 0)
    return queries(lambda block: queries_of_sizes(block, name, 0))


def check_predict_arguments(ranker: Scorer, other: Mapping[str, Any]) -> None:
    """Raise InvalidInputError on arguments of other libraries' `predict` that would change the scores."""
    trees = getattr(ranker, "n_iter_", None)
    without_effect: dict[str, tuple[Any, ...]] = {
        "num_iteration": (trees, -1),  # LightGBM
        "start_iteration": (0,),
        "iteration_range": ((0, 0), (0, trees)),  # XGBoost
        "ntree_start": (0,),  # CatBoost
        "ntree_end": (0, trees),
        **dict.fromkeys(("output_margin", "raw_score", "validate_features"), (True, False)),
        **dict.fromkeys(("pred_leaf", "pred_contrib"), (False,)),
    }
    for key, value in other.items():
        if value is None or key in ("thread_count", "verbose"):
            continue
        if key == "num_iteration" and value == getattr(ranker, "best_iteration", None) and type(value) is not int:
            continue  # LightGBM's `num_iteration=booster.best_iteration`, which it counts from 1
        if key == "pred_contrib" and value:
            raise InvalidInputError(
                "predict does not accept pred_contrib. Call ranker.contributions(X)", code="pred-contrib"
            )
        if key not in without_effect:
            raise InvalidInputError(
                f"predict does not accept {key!r}{nearest(key, ['qid', *without_effect])}", code="unknown-argument"
            )
        if value not in without_effect[key]:
            raise InvalidInputError(
                f"predict does not accept {key}={value!r}: it uses all {trees} trees of the model (best_iteration_ is "
                "their number, best_iteration one less). Call staged_predict for the scores after each tree",
                code="all-trees",
            )


def weights_by_row(weight: ArrayLike, data: RankingData) -> Any:
    """Return `sample_weight`; raise if it has one entry for each query instead of each row."""
    if np.shape(np.asarray(weight)) == (data.n_queries,) != (data.n_rows,):
        raise InvalidInputError(
            f"sample_weight has one entry for each of the {data.n_queries} queries, as in XGBoost. Pass weights of "
            f"queries as query_weight. sample_weight requires an entry for each of the {data.n_rows} rows",
            argument="sample_weight",
        )
    return weight


def _is_set(value: object) -> bool:
    arrays = isinstance(value, tuple | list) and len(value) in (2, 3) and np.ndim(value[0]) == 2
    return arrays or hasattr(value, "offsets")


def _of_each(values: Any, count: int, name: str, owner: str) -> list[Any]:
    """Return one entry for each validation set; a single array is the entry of a single set."""
    if values is None:
        return [None] * count
    if count == 1 and (not isinstance(values, list | tuple) or (len(values) and np.ndim(values[0]) == 0)):
        return [values]
    if len(values) != count:
        raise InvalidInputError(f"{owner}.fit: expected {name} for each of {count} validation sets, got {len(values)}")
    return list(values)


def _drop_what_asks_for_nothing(name: str, other: dict[str, Any]) -> None:
    """Remove arguments without effect from `other`, some with a warning."""
    for key, value in list(other.items()):
        if (isinstance(value, str) and value == "auto") or asks_for_nothing(key, value):
            other.pop(key)
        elif key in WARNED:
            warn(f"{name}.fit: {key} has no effect: {WARNED[key]}")
            other.pop(key)


def refuse_unknown(ranker: Any, other: Mapping[str, Any], refused: Mapping[str, str]) -> None:
    """Raise one error for all arguments of `other` and all `refused` arguments, with calls that are accepted."""
    name, known = type(ranker).__name__, ranker.get_params(deep=False)
    problems, settings = dict(refused), dict[str, Any]()
    for key, value in other.items():
        ours = SAME.get(key, key)
        if key in INSTEAD_IN_FIT or (key in INSTEAD and ours not in known):
            problems[key] = (INSTEAD_IN_FIT | INSTEAD)[key]
        elif ours in known:
            settings[ours] = value
            problems[key] = f"settings go to the constructor, {ready(name, {ours: value})}"
        else:
            taken = [*inspect.signature(type(ranker).fit).parameters, "group", "eval_group"]
            problems[key] = nearest(key, taken).lstrip(". ") or "unknown"
    if not problems:
        return
    default = (
        type(ranker)().get_params(deep=False) if not inspect.signature(type(ranker)).parameters.keys() - known else {}
    )
    changed = {key: value for key, value in known.items() if key in default and value is not default[key]}
    changed = {key: value for key, value in changed.items() if repr(value) != repr(default[key])} | settings
    lines = "".join(f"\n  {key}: {why}" for key, why in problems.items())
    raise InvalidInputError(
        f"{name}.fit does not accept {', '.join(problems)}:{lines}\nWrite: {ready(name, changed)}.fit(X, y, qid=qid, "
        "eval_set=(X_valid, y_valid, qid_valid))",
        argument=next(iter(problems)),
    )
