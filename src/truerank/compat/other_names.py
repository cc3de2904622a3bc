"""Accept or explain the names of rankers' parameters in XGBoost, LightGBM and CatBoost.

`docs/howto/coming-from.md` has a table of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError, warn
from truerank.core.names import nearest


def _by_their_name(theirs_of_ours: Mapping[str, str]) -> dict[str, str]:
    return {theirs: ours for ours, names in theirs_of_ours.items() for theirs in names.split()}


# Their name -> our name of the same parameter.
SAME = _by_their_name(
    {
        "depth": "max_depth",
        "learning_rate": "eta",
        "n_estimators": "iterations num_boost_round num_iterations num_trees",
        "max_iter": "n_iter",
        "alpha": "reg_lambda lambda_l2 l2_leaf_reg",
        "patience": "early_stopping_rounds early_stopping_round n_iter_no_change od_wait",
        "validation_measure": "eval_metric metric eval_at map_at map_eval_at ndcg_at ndcg_eval_at",
        "feature_fraction": "colsample_bytree rsm",
        "subsample": "bagging_fraction",
        "borders": "max_bin max_bins border_count",
        "random_state": "seed random_seed",
        "n_jobs": "nthread num_threads thread_count",
        "monotone": "monotone_constraints monotonic_cst",
        "interaction_constraints": "interaction_cst",
        "objective": "loss_function",
    }
)

# Their objectives -> ours.
OBJECTIVES = _by_their_name(
    {
        "lambdarank": "rank:ndcg rank:map",
        "pairwise-logistic": "rank:pairwise PairLogit PairLogitPairwise",
        "xe-ndcg": "rank_xendcg xendcg",
        "mse": "reg:squarederror regression l2 RMSE",
        "query-mse": "QueryRMSE",
        "yetirank": "YetiRank YetiRankPairwise",
        "softmax": "QuerySoftMax",
    }
)

_WHATEVER_THE_VALUE = (
    "allow_const_label", "allow_group_split", "allow_writing_files", "base_score", "boost_from_average",
    "disable_default_eval_metric", "gpu_ram_part", "lambdarank_bias_norm", "local_listen_port", "logging_level",
    "machines", "metadata", "metric_period", "name", "pinned_memory_size", "silent", "subsample_for_bin", "time_out",
    "train_dir", "tree_learner", "tree_learner_type", "used_ram_limit", "validate_parameters", "verbosity",
)  # fmt: skip
# Their name -> values that have no effect here, in addition to None (None: no value has an effect).
WITHOUT_EFFECT: dict[str, tuple[Any, ...] | None] = {
    **dict.fromkeys(_WHATEVER_THE_VALUE),
    "verbose": (0, -1),
    "tree_method": ("hist", "auto"),
    "booster": ("gbtree",),
    "boosting_type": ("gbdt", "Plain"),
    "grow_policy": ("SymmetricTree",),
    "multi_strategy": ("one_output_per_tree",),
    "sampling_method": ("uniform",),
    **dict.fromkeys(("reg_alpha", "lambda_l1", "gamma", "max_delta_step"), (0,)),
    **dict.fromkeys(("min_split_gain", "min_gain_to_split", "subsample_freq"), (0,)),
    **dict.fromkeys(("num_parallel_tree", "colsample_bylevel", "colsample_bynode", "scale_pos_weight"), (1,)),
    "importance_type": ("gain",),
    **dict.fromkeys(("enable_categorical", "save_snapshot", "plot", "has_time", "lambdarank_unbiased"), (False,)),
    **dict.fromkeys(("use_best_model", "ndcg_exp_gain"), (True,)),
    **dict.fromkeys(("lambdarank_normalization", "lambdarank_score_normalization"), (True,)),
    "class_weight": (),
    "od_type": ("Iter",),
}

# Their name -> advice in a warning; the fit continues.
WARNED: dict[str, str] = {
    "lambdarank_truncation_level": 'pairs of lambdarank end at the cutoff of the measure: measure="nDCG@10"',
    "lambdarank_num_pair_per_sample": 'pairs of lambdarank end at the cutoff of the measure: measure="nDCG@10"',
    "lambdarank_pair_method": 'pairs of lambdarank end at the cutoff of the measure: measure="nDCG@10"',
    "client": "Dask's client of this process is taken",
    "custom_metric": "evaluate(measures, y, scores, qid=qid) reports any number of measures after the fit",
    "importance_type": "feature_importances_ are shares of the gain; permutation_importance measures the loss",
    "plot": "history_ holds what to draw",
    "sampling_method": "all rows are drawn with the same chance, whatever their gradients",
    "lambdarank_normalization": "gradients are not scaled within queries",
    "lambdarank_score_normalization": "pairs are not weighed by the difference of their scores",
    "device": "there is no code for graphics cards; the fit runs on the processor",
    "task_type": "there is no code for graphics cards; the fit runs on the processor",
}

# Their name -> replacement.
INSTEAD: dict[str, str] = {
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
    "ndcg_exp_gain": 'the convention does this: "lightgbm" and "xgboost" have 2^grade - 1, "trec" the grade',
    "label_gain": 'give the gains to the measure: measure="nDCG@10(gains={0: 0, 1: 1, 2: 3})"',
    "class_weight": "there are no classes; weigh with query_weight or sample_weight in fit",
    "scale_pos_weight": "there are no classes; weigh with query_weight or sample_weight in fit",
    "booster": "trees are all there is here; rank-svm and list-net are the linear rankers",
    "boosting_type": "boosting here is plain gradient boosting",
    "grow_policy": "all trees are oblivious (symmetric)",
    "tree_method": "features are binned always",
    **dict.fromkeys(
        ("enable_categorical", "cat_features", "categorical_feature"),
        "name the columns of categories instead, such as categorical=['brand']",
    ),
    "one_hot_max_size": "encode categories as numbers",
    "use_best_model": "patience=None keeps all trees; patience=N those up to the best one on eval_set",
    "save_snapshot": "warm_start=True goes on from a fitted ranker, which save_model keeps",
    "callbacks": "they go to fit(…, callbacks=[…])",  # of rankers whose constructor takes none
    "eval_fraction": "pass validation queries to fit(…, eval_set=(X, y, qid))",
    "feature_types": "name the columns of categories instead, such as categorical=['brand']",
    "max_delta_step": "there is no bound of a step; alpha and learning_rate make it smaller",
    "num_parallel_tree": "a round adds one tree",
    "missing": "missing values are nan; put nan in their place",
    "nan_mode": "missing values go to the side of each question that fits better",
    "ignored_features": "leave the columns out of X",
    "feature_weights": "all features cost the same; leave expensive columns out of X",
    "first_feature_use_penalties": "all features cost the same; leave expensive columns out of X",
    "penalties_coefficient": "all features cost the same; leave expensive columns out of X",
    "random_strength": "questions are chosen without noise; subsample and feature_fraction draw",
    "bagging_temperature": 'bootstrap="row" or "query" draws with replacement',
    "sampling_unit": 'bootstrap="row" or "query" says what is drawn',
    "text_features": "TextRanker ranks raw text; `truerank text features` makes columns of it",
    "best_model_min_trees": "patience keeps the best round, whichever it is",
}

# Parameters of CatBoost or XGBoost without a counterpart here.
NOTHING_LIKE_IT = {
    "approx_on_full_history", "combinations_ctr", "counter_calc_method", "ctr_description", "ctr_history_unit",
    "ctr_leaf_count_limit", "ctr_target_border_count", "data_partition", "dev_efb_max_buckets",
    "dev_score_calc_obj_block_size", "device_config", "devices", "dictionaries", "diffusion_temperature",
    "embedding_features", "feature_border_type", "feature_calcers", "final_ctr_computation_mode",
    "fixed_binary_splits", "fold_len_multiplier", "fold_permutation_block", "gpu_cat_features_storage",
    "has_time", "input_borders", "langevin", "leaf_estimation_backtracking", "leaf_estimation_iterations",
    "leaf_estimation_method", "max_cat_threshold", "max_cat_to_onehot", "max_ctr_complexity",
    "model_shrink_mode", "model_shrink_rate", "model_size_reg", "multi_strategy", "mvs_reg", "od_pval",
    "od_type", "output_borders", "per_feature_ctr", "per_float_feature_quantization",
    "per_object_feature_penalties", "posterior_sampling", "random_score_type", "sampling_frequency",
    "score_function", "simple_ctr", "snapshot_file", "snapshot_interval", "sparse_features_conflict_fraction",
    "store_all_simple_ctr", "target_border", "text_processing", "tokenizers",
}  # fmt: skip


def advice(cls: type, name: str) -> str:
    """Return advice on a parameter of another library; "" if the name is unknown.

    >>> from truerank.rankers.adarank import AdaRank
    >>> advice(AdaRank, "early_stopping_rounds"), advice(AdaRank, "num_leaves")[:35]
    ('it is called patience here', 'every tree has 2^depth leaves; num_')
    """
    known = inspect.signature(cls).parameters
    ours = SAME.get(name)
    if ours in known:
        return f"it is called {ours} here"
    if name in INSTEAD or name in WARNED:
        return (INSTEAD | WARNED)[name]
    if name in NOTHING_LIKE_IT:
        return "there is nothing like it here; leave it out"
    if ours is not None:
        return f"it would be {ours}, which {cls.__name__} has no use for"
    return ""


def translated(cls: type, known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a ranker's constructor under our names, from names of other libraries.

    Raises
    ------
    InvalidInputError
        On a name without a counterpart here, with advice, and if both names were given.
    """
    result: dict[str, Any] = {}
    for name, value in _unbiased(known, _with_its_measure(known, given)).items():
        if name in known:
            result[name] = _objective(value) if name == "objective" else value
            continue
        ours = SAME.get(name, "")
        if ours in known:
            if ours in given or ours in result:
                raise InvalidInputError(f"{cls.__name__}: {name} is {ours} here, and both were given; give {ours} only")
            if value is not None:
                result[ours] = _converted(name, ours, value)
            continue
        if asks_for_nothing(name, value):
            continue
        if name in WARNED:
            warn(f"{cls.__name__}: {name}={value!r} has no effect: {WARNED[name]}")
            continue
        hint = advice(cls, name)
        what = f": {hint}" if hint else nearest(name, known) or f"; it has {', '.join(known)}"
        raise InvalidInputError(f"{cls.__name__} has no parameter {name!r}{what}")
    return result


def asks_for_nothing(name: str, value: object) -> bool:
    """Return whether a setting of another library can be ignored."""
    theirs = name in WITHOUT_EFFECT or name in WARNED or name in INSTEAD or name in NOTHING_LIKE_IT
    if theirs and value is None:
        return True
    if name == "missing":
        return isinstance(value, float) and bool(np.isnan(value))
    if name in ("device", "task_type"):
        return str(value).lower() == "cpu"
    values = WITHOUT_EFFECT.get(name, ())
    return values is None or any(value is one or value == one for one in values)


def _with_its_measure(known: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the measure that XGBoost's `rank:map` implies."""
    named = given.get("objective")
    is_map = isinstance(named, str) and named == "rank:map" and "measure" in known
    return {"measure": "AP", **given} if is_map else given


def _unbiased(known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Translate XGBoost's `lambdarank_unbiased`, where the order of a query's rows is the order of presentation."""
    settled = dict(given)
    if "objective_params" not in known or settled.get("lambdarank_unbiased") is not True:
        return settled
    del settled["lambdarank_unbiased"]
    named = settled.pop("objective", "rank:ndcg")
    if _objective(named) != "lambdarank":
        raise InvalidInputError(f"lambdarank_unbiased goes with objective='rank:ndcg' or 'rank:map', got {named!r}")
    params = {"rows_as_shown": True} | (settled.get("objective_params") or {})
    norm = settled.pop("lambdarank_bias_norm", None)
    if norm is not None:
        params["norm"] = norm
    return settled | {"objective": "unbiased-lambdarank", "objective_params": params}


def _converted(name: str, ours: str, value: Any) -> Any:
    if ours == "validation_measure":
        if name not in ("eval_metric", "metric"):
            value = [f"nDCG@{cutoff}" for cutoff in ([value] if isinstance(value, int) else value)]
        return [measure_of(name, one) for one in value] if isinstance(value, list | tuple) else measure_of(name, value)
    if ours == "objective":
        return _objective(value)
    if ours == "monotone" and isinstance(value, str):
        return [int(sign) for sign in re.findall(r"-?\d+", value)]
    if name == "max_depth" and value in (0, -1):
        raise InvalidInputError(f"max_depth={value!r} means no limit; oblivious trees have a depth of 1 to 12: depth=6")
    if name == "border_count":
        return value + 1  # borders count parts, one more than cuts
    if ours == "n_jobs" and value in (-1, 0):
        return None
    return value


def measure_of(name: str, value: object) -> Any:
    """Return `ndcg@10`, or CatBoost's `NDCG:top=10;type=Exp`, as a name of a measure here."""
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


def _objective(value: object) -> Any:
    if not isinstance(value, str):
        return value
    name = value.partition(":")[0] if value.startswith(("YetiRank:", "PairLogit:", "QuerySoftMax:")) else value
    if name != value:
        raise InvalidInputError(f"objective {value!r}: the settings after the colon go to objective_params or measure")
    return OBJECTIVES.get(value, value)
