"""What XGBoost, LightGBM and CatBoost call the parameters of rankers: taken where they mean the same, else explained.

`docs/howto/coming-from.md` shows the same as a table of three columns.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.core.names import nearest
from truerank.rankers.catboost_pool import without_pool

# Their name -> ours, where a ranker of ours that has the parameter means the same by it.
SAME: dict[str, str] = {
    "max_depth": "depth",
    "eta": "learning_rate",
    "iterations": "n_estimators",
    "num_boost_round": "n_estimators",
    "num_iterations": "n_estimators",
    "num_trees": "n_estimators",
    "n_iter": "max_iter",
    "reg_lambda": "alpha",
    "lambda_l2": "alpha",
    "l2_leaf_reg": "alpha",
    "early_stopping_rounds": "patience",
    "early_stopping_round": "patience",
    "n_iter_no_change": "patience",
    "od_wait": "patience",
    "eval_metric": "validation_measure",
    "metric": "validation_measure",
    "colsample_bytree": "feature_fraction",
    "rsm": "feature_fraction",
    "bagging_fraction": "subsample",
    "max_bin": "borders",
    "max_bins": "borders",
    "border_count": "borders",
    "seed": "random_state",
    "random_seed": "random_state",
    "nthread": "n_jobs",
    "num_threads": "n_jobs",
    "thread_count": "n_jobs",
    "monotone_constraints": "monotone",
    "monotonic_cst": "monotone",
    "interaction_cst": "interaction_constraints",
    "loss_function": "objective",
}

# Their objectives -> ours.
OBJECTIVES: dict[str, str] = {
    "rank:ndcg": "lambdarank",
    "rank:pairwise": "pairwise-logistic",
    "reg:squarederror": "mse",
    "regression": "mse",
    "l2": "mse",
    "RMSE": "mse",
    "YetiRank": "yetirank",
    "PairLogit": "pairwise-logistic",
    "QuerySoftMax": "softmax",
}

# Their objectives that ours has no equal of.
_NO_OBJECTIVES: dict[str, str] = {
    "rank:map": 'train on AP with objective="lambdarank", measure="AP"',
    "rank_xendcg": 'the nearest is objective="softmax"',
    "QueryRMSE": 'the nearest is objective="mse" (squared error of the grades, the mean of a query included)',
    "YetiRankPairwise": 'the nearest is objective="yetirank"',
    "PairLogitPairwise": 'the nearest is objective="pairwise-logistic"',
}

# Their name -> values at which it asks for nothing that is missing here (None: any value does).
_WITHOUT_EFFECT: dict[str, tuple[Any, ...] | None] = {
    "verbosity": None,
    "verbose": (0, -1, None),
    "silent": None,
    "logging_level": None,
    "allow_writing_files": None,
    "tree_method": ("hist", "auto", None),
    "booster": ("gbtree", None),
    "boosting_type": ("gbdt", "Plain", None),
    "grow_policy": ("SymmetricTree", None),
    "reg_alpha": (0, None),
    "lambda_l1": (0, None),
    "gamma": (0, None),
    "min_split_gain": (0, None),
    "min_gain_to_split": (0, None),
    "colsample_bylevel": (1, None),
    "colsample_bynode": (1, None),
    "subsample_freq": (0, None),
    "scale_pos_weight": (1, None),
    "importance_type": ("gain", "PredictionValuesChange", None),
    "enable_categorical": (False, None),
    "use_best_model": (True, None),
    "save_snapshot": (False, None),
    "plot": (False, None),
    "class_weight": (None,),
    "od_type": ("Iter", None),
    "lambdarank_unbiased": (False, None),
}

# Their name -> what does the same here; the fit goes on, with a warning.
_WARNED: dict[str, str] = {
    "lambdarank_truncation_level": 'pairs of lambdarank end at the cutoff of the measure: measure="nDCG@10"',
    "lambdarank_num_pair_per_sample": 'pairs of lambdarank end at the cutoff of the measure: measure="nDCG@10"',
    "lambdarank_pair_method": 'pairs of lambdarank end at the cutoff of the measure: measure="nDCG@10"',
    "custom_metric": "evaluate(measures, y, scores, qid=qid) reports any number of measures after the fit",
    "plot": "history_ holds what to draw",
    "device": "there is no code for graphics cards; the fit runs on the processor",
    "task_type": "there is no code for graphics cards; the fit runs on the processor",
}

# Their name -> what to write instead.
_INSTEAD: dict[str, str] = {
    "num_leaves": "every tree has 2^depth leaves; num_leaves=31 is about depth=5",
    "max_leaves": "every tree has 2^depth leaves; max_leaves=31 is about depth=5",
    "min_child_weight": "small_leaf_penalty=1 makes small leaves unlikely",
    "min_child_samples": "small_leaf_penalty=1 makes small leaves unlikely",
    "min_data_in_leaf": "small_leaf_penalty=1 makes small leaves unlikely",
    "min_sum_hessian_in_leaf": "small_leaf_penalty=1 makes small leaves unlikely",
    "reg_alpha": "there is no absolute penalty; alpha is the squared one",
    "lambda_l1": "there is no absolute penalty; alpha is the squared one",
    "gamma": "there is no least gain; alpha and small_leaf_penalty restrain trees",
    "min_split_gain": "there is no least gain; alpha and small_leaf_penalty restrain trees",
    "colsample_bylevel": "feature_fraction draws features once a tree",
    "colsample_bynode": "feature_fraction draws features once a tree",
    "subsample_freq": 'every tree is sampled: subsample, with bootstrap="row" or "query"',
    "bagging_freq": 'every tree is sampled: subsample, with bootstrap="row" or "query"',
    "bootstrap_type": 'bootstrap="row" or "query" draws with replacement',
    "sampling_method": 'bootstrap="row" or "query" draws with replacement',
    "ndcg_exp_gain": 'the convention does this: "lightgbm" and "xgboost" have 2^grade - 1, "trec" the grade',
    "lambdarank_unbiased": 'objective="unbiased-lambdarank", with fit(…, position=…), the position of each row',
    "lambdarank_bias_norm": 'objective="unbiased-lambdarank" has it as objective_params={"norm": 1}',
    "label_gain": 'give the gains to the measure: measure="nDCG@10(gains={0: 0, 1: 1, 2: 3})"',
    "eval_at": 'give cutoffs to the measure: validation_measure="nDCG@10"',
    "class_weight": "there are no classes; weigh with query_weight or sample_weight in fit",
    "scale_pos_weight": "there are no classes; weigh with query_weight or sample_weight in fit",
    "booster": "trees are all there is here; rank-svm and list-net are the linear rankers",
    "boosting_type": "boosting here is plain gradient boosting",
    "grow_policy": "all trees are oblivious (symmetric)",
    "tree_method": "features are binned always",
    "enable_categorical": "see the ranker's `categorical`, or encode categories as numbers",
    "cat_features": "see the ranker's `categorical`, or encode categories as numbers",
    "categorical_feature": "see the ranker's `categorical`, or encode categories as numbers",
    "importance_type": "feature_importances_ are shares of the gain; permutation_importance measures the loss",
    "one_hot_max_size": "encode categories as numbers",
    "use_best_model": "patience=None keeps all trees; patience=N those up to the best one on eval_set",
    "save_snapshot": "warm_start=True goes on from a fitted ranker, which save_model keeps",
}

_INSTEAD_IN_FIT: dict[str, str] = {
    "init_model": "trees go on from a model (ObliviousBoosting); rankers with warm_start begin at their last fit",
    "xgb_model": "trees go on from a model (ObliviousBoosting); rankers with warm_start begin at their last fit",
    "sample_weight": "it does not weigh single rows; weigh queries with query_weight",
    "init_score": "scores to start from are not taken; add them as a feature",
    "base_margin": "scores to start from are not taken; add them as a feature",
    "feature_name": "names come with a data frame, or RankingData(X, y, qid, feature_names=…)",
    "eval_sample_weight": "validation queries are not weighed",
    "sample_weight_eval_set": "validation queries are not weighed",
}


def advice(cls: type, name: str) -> str:
    """What to write in place of another library's parameter `name`; "" where the name is not known from there.

    >>> from truerank.rankers.adarank import AdaRank
    >>> advice(AdaRank, "early_stopping_rounds"), advice(AdaRank, "num_leaves")[:35]
    ('it is called patience here', 'every tree has 2^depth leaves; num_')
    """
    known = inspect.signature(cls).parameters
    ours = SAME.get(name)
    if ours in known:
        return f"it is called {ours} here"
    if name in _INSTEAD or name in _WARNED:
        return (_INSTEAD | _WARNED)[name]
    if ours is not None:
        return f"it would be {ours}, which {cls.__name__} has no use for"
    return ""


def translated(cls: type, known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a ranker's constructor, of which some may be named as other libraries name them, in our names.

    Raises
    ------
    InvalidInputError
        On a name that means something else or nothing here, with ours beside it, and where both names were given.
    """
    result: dict[str, Any] = {}
    for name, value in given.items():
        if name in known:
            result[name] = _objective(value) if name == "objective" else value
            continue
        ours = SAME.get(name, "")
        if ours in known:
            if ours in given or ours in result:
                raise InvalidInputError(
                    f"{cls.__name__}: {name} is {ours} here, and both were given; give {ours} alone"
                )
            result[ours] = _converted(cls.__name__, name, ours, value)
            continue
        if name == "missing" and isinstance(value, float) and np.isnan(value):
            continue
        if _asks_for_nothing(name, value):
            continue
        if name in _WARNED:
            if str(value).lower() != "cpu":
                warnings.warn(f"{cls.__name__}: {name}={value!r} has no effect: {_WARNED[name]}", TruerankWarning, 4)
            continue
        hint = advice(cls, name)
        what = f": {hint}" if hint else nearest(name, known) or f"; it has {', '.join(known)}"
        raise InvalidInputError(f"{cls.__name__} has no parameter {name!r}{what}")
    return result


def _asks_for_nothing(name: str, value: Any) -> bool:
    """Whether another library's setting is left at what is done here anyway."""
    values = _WITHOUT_EFFECT.get(name, ())
    return values is None or any(value is one or (one is not None and value == one) for one in values)


def _converted(cls: str, name: str, ours: str, value: Any) -> Any:
    if ours == "validation_measure":
        if isinstance(value, list | tuple) and len(value) > 1:
            warnings.warn(
                f"{cls}: {name}={list(value)!r}: {value[-1]!r} alone is watched and chooses; "
                "fit(…, eval_set=…, eval_metric=[…]) records all of them in evals_result_",
                TruerankWarning,
                4,
            )
        return measure_of(name, value)
    if ours == "objective":
        return _objective(value)
    if ours == "monotone" and isinstance(value, str):
        return [int(sign) for sign in re.findall(r"-?\d+", value)]
    if name == "max_depth" and value in (0, -1, None):
        raise InvalidInputError(f"max_depth={value!r} means no limit; oblivious trees have a depth of 1 to 12: depth=6")
    if name == "border_count":
        return value + 1  # borders count the parts here, of which there is one more than cuts
    if ours == "n_jobs" and value in (-1, 0):
        return None
    return value


def measure_of(name: str, value: Any) -> Any:
    """`ndcg@10`, CatBoost's `NDCG:top=10;type=Exp`, or a list of one of these."""
    if isinstance(value, list | tuple):
        if not value:
            raise InvalidInputError(f"{name}: name a measure, such as 'ndcg@10', got an empty list")
        value = value[-1]  # the last one decides, as in XGBoost
    if not isinstance(value, str) or ":" not in value:
        return value
    base, _, settings = value.partition(":")
    parts = dict(part.partition("=")[::2] for part in settings.split(";"))
    cutoff = parts.pop("top", None)
    kind = parts.pop("type", None)
    if parts:
        raise InvalidInputError(f"{name}: {value!r} sets {', '.join(parts)}, which is not read; see docs/measures.md")
    gain = {None: "", "Exp": '(gain="exponential")', "Base": '(gain="linear")'}.get(kind)
    if gain is None:
        raise InvalidInputError(f"{name}: {value!r}: type is Base or Exp, got {kind!r}")
    return f"{base}{gain}@{cutoff}" if cutoff else f"{base}{gain}"


def _objective(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    name = value.partition(":")[0] if value.startswith(("YetiRank:", "PairLogit:", "QuerySoftMax:")) else value
    if name != value:
        raise InvalidInputError(f"objective {value!r}: the settings after the colon go to objective_params or measure")
    if value in _NO_OBJECTIVES:
        raise InvalidInputError(f"objective {value!r} is not here; {_NO_OBJECTIVES[value]}")
    return OBJECTIVES.get(value, value)


def settled_fit(ranker: Any, qid: Any, eval_set: Any, other: dict[str, Any]) -> tuple[Any, list[tuple[str, Any]]]:
    """`qid`, and validation sets by name, from the arguments of `fit` as ours or another library names them.

    Parameters
    ----------
    ranker : Ranker
        For its name in messages, and whether it can continue.
    qid : array (n,), optional
    eval_set : RankingData, (X, y, qid), (X, y), CatBoost's Pool, or a list or dict of these, optional
    other : dict
        `group` (sizes, or one id a row), `group_id`, `eval_qid`, `eval_group`, `eval_names`, `verbose` and so on;
        emptied of what is known.

    Returns
    -------
    qid : array (n,) or None
    sets : list of (name, RankingData or (X, y, qid))
        The last one chooses.

    Raises
    ------
    InvalidInputError
        On an argument that is not known, and on queries that came twice or are missing.
    """
    name = type(ranker).__name__
    for alias in ("group_id", "group"):
        given = other.pop(alias, None)
        if given is None:
            continue
        if qid is not None:
            raise InvalidInputError(f"{name}.fit: {alias} and qid both say which rows are a query; give qid alone")
        qid = np.asarray(given) if alias == "group_id" else queries_of_sizes(given, alias)
    eval_qid, eval_group = other.pop("eval_qid", None), other.pop("eval_group", None)
    names = other.pop("eval_names", None)
    _rest_of_fit(ranker, other)
    if eval_set is None:
        if eval_qid is not None or eval_group is not None:
            raise InvalidInputError(
                f"{name}.fit: eval_qid and eval_group belong to eval_set=[(X, y)], which is missing"
            )
        return qid, []
    if isinstance(eval_set, Mapping):
        names, sets = list(map(str, eval_set)), [without_pool(one) for one in eval_set.values()]
    else:
        sets = [without_pool(one) for one in (eval_set if isinstance(eval_set, list) else [eval_set])]
        if isinstance(eval_set, list) and len(sets) == 3 and not any(_is_set(one) for one in sets):
            sets = [tuple(sets)]  # [X, y, qid] for (X, y, qid)
    names = [f"valid_{k}" for k in range(len(sets))] if names is None else [str(one) for one in names]
    if len(names) != len(sets) or len(set(names)) < len(names):
        raise InvalidInputError(f"{name}.fit: eval_names must name each of the {len(sets)} sets apart, got {names}")
    queries = _of_each(eval_qid, len(sets), "eval_qid", name)
    sizes = _of_each(eval_group, len(sets), "eval_group", name)
    settled = []
    for label, one, ids, counts in zip(names, sets, queries, sizes):
        if isinstance(one, tuple | list) and len(one) == 2 and (ids is not None or counts is not None):
            if ids is not None and counts is not None:
                raise InvalidInputError(f"{name}.fit: give eval_qid or eval_group, not both")
            one = (*one, np.asarray(ids) if ids is not None else queries_of_sizes(counts, "eval_group"))
        elif ids is not None or counts is not None:
            raise InvalidInputError(f"{name}.fit: eval_qid and eval_group go with eval_set=[(X, y)], got more in it")
        settled.append((label, one))
    return qid, settled


def queries_of_sizes(sizes: Any, name: str = "group") -> np.ndarray:
    """Query number of each row (n,) from the sizes of consecutive queries.

    >>> queries_of_sizes([2, 1]).tolist()
    [0, 0, 1]
    """
    counts = np.asarray(sizes)
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or (counts.size and counts.min() < 0):
        raise InvalidInputError(
            f"{name} must hold the number of rows of each query, whole numbers >= 0, such as [120, 85]; the query of "
            "each row goes to qid"
        )
    return np.repeat(np.arange(len(counts)), counts)


def _is_set(value: Any) -> bool:
    return (isinstance(value, tuple | list) and len(value) in (2, 3) and np.ndim(value[0]) == 2) or hasattr(
        value, "offsets"
    )


def _of_each(values: Any, count: int, name: str, owner: str) -> list[Any]:
    """One entry for each validation set; a single array serves a single set."""
    if values is None:
        return [None] * count
    if count == 1 and (not isinstance(values, list | tuple) or (len(values) and np.ndim(values[0]) == 0)):
        return [values]
    if len(values) != count:
        raise InvalidInputError(f"{owner}.fit: {name} has {len(values)} entries for {count} validation sets")
    return list(values)


def _rest_of_fit(ranker: Any, other: dict[str, Any]) -> None:
    """Settings that other libraries take in `fit`: those of the constructor, and those that are not here."""
    name, known = type(ranker).__name__, ranker.get_params(deep=False)
    for key, value in list(other.items()):
        if value is None or _asks_for_nothing(key, value):
            other.pop(key)
            continue
        if key in _WARNED:
            warnings.warn(f"{name}.fit: {key} has no effect: {_WARNED[key]}", TruerankWarning, 5)
            other.pop(key)
            continue
        if key == "eval_at":
            continue
        if key in _INSTEAD_IN_FIT:
            raise InvalidInputError(f"{name}.fit takes no {key}: {_INSTEAD_IN_FIT[key]}")
        ours = SAME.get(key, key)
        if ours in known:
            raise InvalidInputError(
                f"{name}.fit takes no {key}: settings go to the constructor, {name}({ours}={value!r:.60})"
            )
        if key in _INSTEAD:
            raise InvalidInputError(f"{name}.fit takes no {key}: {_INSTEAD[key]}")
        fit = inspect.signature(type(ranker).fit).parameters
        raise InvalidInputError(f"{name}.fit takes no {key!r}{nearest(key, [*fit, 'group', 'eval_qid', 'eval_group'])}")
