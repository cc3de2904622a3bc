"""Accept or explain the names of rankers' parameters in XGBoost, LightGBM and CatBoost.

`docs/howto/coming-from.md` has a table of them.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError, warn
from truerank.core.names import nearest


def by_name(names_of_text: Mapping[str, str]) -> dict[str, str]:
    """Return {name: text} from {text: "name name …"}."""
    return {name: text for text, names in names_of_text.items() for name in names.split()}


# Their name -> our name of the same parameter.
SAME = by_name(
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
OBJECTIVES = by_name(
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
WARNED = by_name(
    {
        'pairs of lambdarank end at the cutoff of the measure: measure="nDCG@10"': (
            "lambdarank_truncation_level lambdarank_num_pair_per_sample lambdarank_pair_method"
        ),
        "the fit uses Dask's client of this process": "client",
        "evaluate(y, scores, measures, qid=qid) reports any number of measures after the fit": "custom_metric",
        "feature_importances_ are shares of the gain; permutation_importance measures the loss": "importance_type",
        "history_ has the values to plot": "plot",
        "all rows have the same probability, for any gradients": "sampling_method",
        "gradients are not scaled within queries": "lambdarank_normalization",
        "pairs are not weighed by the difference of their scores": "lambdarank_score_normalization",
        "there is no code for graphics cards; the fit runs on the processor": "device task_type",
    }
)

# Their name -> replacement.
INSTEAD = by_name(
    {
        "every tree has 2^depth leaves": "num_leaves max_leaves",
        "small_leaf_penalty=1 makes small leaves unlikely": (
            "min_child_weight min_child_samples min_data_in_leaf min_sum_hessian_in_leaf"
        ),
        "there is no absolute penalty; alpha is the squared one": "reg_alpha lambda_l1",
        "there is no least gain; alpha and small_leaf_penalty restrain trees": "gamma min_split_gain",
        "feature_fraction draws features once for each tree": "colsample_bylevel colsample_bynode",
        'every tree is sampled: subsample, with bootstrap="row" or "query"': "subsample_freq bagging_freq",
        'bootstrap="row" or "query" draws with replacement': "bootstrap_type bagging_temperature",
        'the convention does this: "lightgbm" and "xgboost" have 2^grade - 1, "trec" the grade': "ndcg_exp_gain",
        'give the gains to the measure: measure="nDCG@10(gains={0: 0, 1: 1, 2: 3})"': "label_gain",
        "there are no classes; weigh with query_weight or sample_weight in fit": "class_weight scale_pos_weight",
        "this ranker boosts trees; rank-svm and list-net are linear rankers": "booster",
        "boosting here is plain gradient boosting": "boosting_type",
        "all trees are oblivious (symmetric)": "grow_policy",
        "features are always binned": "tree_method",
        "name the columns of categories instead, such as categorical=['brand']": (
            "enable_categorical cat_features categorical_feature feature_types"
        ),
        "encode categories as numbers": "one_hot_max_size",
        "patience=None keeps all trees; patience=N those up to the best one on eval_set": "use_best_model",
        "warm_start=True continues a fitted ranker, which save_model stores": "save_snapshot",
        "they go to fit(…, callbacks=[…])": "callbacks",  # of rankers whose constructor has none
        "pass validation queries to fit(…, eval_set=(X, y, qid))": "eval_fraction",
        "steps have no bound; alpha and learning_rate make them smaller": "max_delta_step",
        "a round adds one tree": "num_parallel_tree",
        "missing values are nan; put nan in their place": "missing",
        "missing values go to the side of each question that fits better": "nan_mode",
        "leave the columns out of X": "ignored_features",
        "all features cost the same; leave expensive columns out of X": (
            "feature_weights first_feature_use_penalties penalties_coefficient"
        ),
        "questions are chosen without noise; subsample and feature_fraction draw at random": "random_strength",
        'bootstrap="row" or "query" decides what is drawn': "sampling_unit",
        "TextRanker ranks raw text; `truerank text features` makes columns of it": "text_features",
        "patience keeps the best round, whichever it is": "best_model_min_trees",
    }
)


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
    >>> advice(AdaRank, "early_stopping_rounds"), advice(AdaRank, "num_leaves")[:29]
    ('it is called patience here', 'every tree has 2^depth leaves')
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
        return f"it is {ours} in other rankers; {cls.__name__} does not have it"
    return ""


def translated(cls: type, known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a ranker's constructor under our names, from names of other libraries.

    InvalidInputError: a name without a counterpart here (the message has advice), or both names of a parameter.
    """
    result: dict[str, Any] = {}
    for name, value in _settled(known, given).items():
        if name in known:
            result[name] = _objective(value) if name == "objective" else value
            continue
        ours = SAME.get(name, "")
        if ours in known:
            if ours in given or ours in result:
                raise InvalidInputError(
                    f"{cls.__name__}: {name} is {ours} here, and both were given; give {ours} only", code="given-twice"
                )
            if value is not None:
                result[ours] = _converted(name, ours, value)
            continue
        if asks_for_nothing(name, value):
            continue
        if name in WARNED:
            warn(f"{cls.__name__}: {name}={value!r} has no effect: {WARNED[name]}")
            continue
        hint = advice(cls, name) + depth_of_leaves(name, value)
        what = f": {hint}" if hint else nearest(name, known) or f"; it has {', '.join(known)}"
        raise InvalidInputError(f"{cls.__name__} has no parameter {name!r}{what}", code="unknown-parameter")
    return result


def depth_of_leaves(name: str, value: object) -> str:
    """Return a hint at the depth of a tree with so many leaves, or "" for other settings.

    >>> depth_of_leaves("num_leaves", 31)
    '; 31 leaves are about depth=5'
    """
    if name not in ("num_leaves", "max_leaves") or not isinstance(value, int) or value < 2:
        return ""
    return f"; {value} leaves are about depth={min(round(math.log2(value)), 12)}"


def asks_for_nothing(name: str, value: object) -> bool:
    """Return whether a setting of another library can be ignored."""
    if value is None and any(name in names for names in (WITHOUT_EFFECT, WARNED, INSTEAD, NOTHING_LIKE_IT)):
        return True
    if name == "missing":
        return isinstance(value, float) and bool(np.isnan(value))
    if name in ("device", "task_type"):
        return str(value).lower() == "cpu"
    values = WITHOUT_EFFECT.get(name, ())
    return values is None or any(value is one or value == one for one in values)


def _settled(known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Add the measure of XGBoost's `rank:map`, and translate `lambdarank_unbiased`: rows are in the order shown."""
    settled = dict(given)
    if isinstance(given.get("objective"), str) and given["objective"] == "rank:map" and "measure" in known:
        settled.setdefault("measure", "AP")
    if "objective_params" not in known or settled.get("lambdarank_unbiased") is not True:
        return settled
    del settled["lambdarank_unbiased"]
    named = settled.pop("objective", "rank:ndcg")
    if _objective(named) != "lambdarank":
        raise InvalidInputError(
            f"lambdarank_unbiased goes with objective='rank:ndcg' or 'rank:map', got {named!r}",
            argument="lambdarank_unbiased",
        )
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
        raise InvalidInputError(
            f"max_depth={value!r} means no limit; oblivious trees have a depth of 1 to 12: depth=6",
            argument="max_depth",
        )
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
