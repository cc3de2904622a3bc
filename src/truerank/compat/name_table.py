"""Tables of names in XGBoost, LightGBM and CatBoost, and of their counterparts in truerank.

`docs/howto/coming-from.md` shows these names. `other_names` and `fit_arguments` read these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def by_name(names_of_text: Mapping[str, str]) -> dict[str, str]:
    """Return {name: text} from {text: "name name …"}."""
    return {name: text for text, names in names_of_text.items() for name in names.split()}


# Their name -> our name of the same parameter.
SAME = by_name(
    {
        "learning_rate": "eta shrinkage_rate",
        "n_estimators": "iterations num_boost_round num_iterations num_trees num_round nrounds",
        "max_iter": "n_iter",
        "alpha": "reg_lambda lambda lambda_l2 l2_leaf_reg",
        "patience": "early_stopping_rounds early_stopping_round early_stopping n_iter_no_change od_wait",
        "validation_measure": "eval_metric metric eval_at map_at map_eval_at ndcg_at ndcg_eval_at",
        "feature_fraction": "colsample_bytree rsm sub_feature",
        "subsample": "bagging_fraction sub_row bagging",
        "borders": "max_bin max_bins border_count",
        "random_state": "seed random_seed",
        "n_jobs": "nthread num_threads thread_count",
        "monotone": "monotone_constraints monotonic_cst",
        "interaction_constraints": "interaction_cst",
        "objective": "loss_function",
    }
)

# Their objectives -> ours; settings after a colon go to the measure or are noted.
OBJECTIVES = by_name(
    {
        "lambdarank": "rank:ndcg rank:map LambdaMart StochasticRank",
        "pairwise-logistic": "rank:pairwise PairLogit PairLogitPairwise",
        "xe-ndcg": "rank_xendcg xendcg xe_ndcg xe_ndcg_mart xendcg_mart",
        "mse": "reg:squarederror reg:linear regression regression_l2 l2 mean_squared_error rmse RMSE",
        "query-mse": "QueryRMSE",
        "yetirank": "YetiRank YetiRankPairwise",
        "softmax": "QuerySoftMax",
    }
)

_WHATEVER_THE_VALUE = (
    "allow_const_label", "allow_group_split", "allow_writing_files", "base_score", "bin_construct_sample_cnt",
    "boost_from_average", "deterministic", "disable_default_eval_metric", "feature_pre_filter", "force_col_wise",
    "force_row_wise", "gpu_ram_part", "histogram_pool_size", "is_enable_sparse", "is_provide_training_metric",
    "is_training_metric", "lambdarank_bias_norm", "local_listen_port", "logging_level", "machines",
    "max_cached_hist_node", "metadata", "metric_freq", "metric_period", "name", "output_model",
    "pinned_memory_size", "predictor", "silent", "single_precision_histogram", "subsample_for_bin", "time_out",
    "train_dir", "tree_learner", "tree_learner_type", "two_round", "used_ram_limit", "validate_parameters",
    "verbosity",
)  # fmt: skip
# Their name -> values that have no effect here, in addition to None (None: no value has an effect).
WITHOUT_EFFECT: dict[str, tuple[Any, ...] | None] = {
    **dict.fromkeys(_WHATEVER_THE_VALUE),
    "verbose": (0, -1),
    "task": ("train",),
    "boosting": ("gbdt", "plain"),
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
            "lambdarank_truncation_level max_position lambdarank_num_pair_per_sample lambdarank_pair_method"
        ),
        "the fit uses Dask's client of this process": "client",
        "evaluate(y, scores, measures, qid=qid) reports any number of measures after the fit": "custom_metric",
        "feature_importances_ are shares of the gain; permutation_importance measures the loss": "importance_type",
        "history_ has the values to plot": "plot",
        "all rows have the same probability, for any gradients": "sampling_method",
        "gradients are not scaled within queries": "lambdarank_normalization",
        "pairs are not weighted by the difference of their scores": "lambdarank_score_normalization",
        "there is no code for graphics cards; the fit runs on the processor": (
            "device device_type task_type gpu_id devices"
        ),
        'every tree is sampled: subsample, with bootstrap="row" or "query"': "subsample_freq bagging_freq",
        'bootstrap="row" or "query" draws with replacement': "bootstrap_type bagging_temperature sampling_unit",
        "all trees are oblivious (symmetric)": "grow_policy",
        "features are always binned": "tree_method feature_border_type",
        "name the columns of categories, such as categorical=['brand']": "enable_categorical one_hot_max_size",
        "missing values go to the side of each question that fits better": "nan_mode",
        "questions are chosen without noise; subsample and feature_fraction draw at random": "random_strength",
        "patience keeps the best round": "best_model_min_trees od_pval",
        "a leaf value is one Newton step": (
            "leaf_estimation_iterations leaf_estimation_method leaf_estimation_backtracking"
        ),
        "an internal detail of another library": "score_function model_size_reg max_ctr_complexity counter_calc_method",
        "pass a data frame, whose columns have names": "feature_name feature_names",
    }
)

# Their name -> (our parameter, how the value becomes ours: `_approximate` in other_names, the difference).
NEAR: dict[str, tuple[str, str, str]] = {
    **dict.fromkeys(("num_leaves", "max_leaves"), ("depth", "depth", "every tree has 2^depth leaves")),
    "max_depth": ("depth", "limited", "oblivious trees have 1 to 12 levels"),
    **dict.fromkeys(
        (
            "min_child_weight", "min_child_samples", "min_data_in_leaf", "min_data", "min_sum_hessian_in_leaf",
            "min_sum_hessian",
        ),
        ("small_leaf_penalty", "one", "small leaves are penalised, not forbidden"),
    ),
    **dict.fromkeys(
        ("colsample_bylevel", "colsample_bynode", "feature_fraction_bynode"),
        ("feature_fraction", "same", "features are drawn once for each tree"),
    ),
    **dict.fromkeys(("cat_features", "categorical_feature"), ("categorical", "columns", "each is a mean grade")),
}  # fmt: skip

# Their name -> replacement.
INSTEAD = by_name(
    {
        "there is no absolute penalty; alpha is the squared one": "reg_alpha lambda_l1",
        "there is no minimum gain; alpha and small_leaf_penalty regularise trees": "gamma min_split_gain",
        'the convention does this: "lightgbm" and "xgboost" have 2^grade - 1, "trec" the grade': "ndcg_exp_gain",
        'give the gains to the measure: measure="nDCG@10(gains={0: 0, 1: 1, 2: 3})"': "label_gain",
        "there are no classes; pass query_weight or sample_weight to fit": "class_weight scale_pos_weight",
        "this ranker boosts trees; rank-svm and list-net are linear rankers": "booster",
        "boosting here is plain gradient boosting": "boosting_type boosting",
        "name the columns of categories instead, such as categorical=['brand']": "feature_types",
        "patience=None keeps all trees; patience=N keeps the trees up to the best round on eval_set": "use_best_model",
        "warm_start=True continues a fitted ranker, which save_model stores": "save_snapshot",
        "pass them to fit(…, callbacks=[…])": "callbacks",  # of rankers whose constructor has none
        "pass validation queries to fit(…, eval_set=(X, y, qid))": "eval_fraction",
        "the step size has no limit; raise alpha or lower learning_rate for smaller steps": "max_delta_step",
        "a round adds one tree": "num_parallel_tree",
        "missing values are nan; replace the marker with nan": "missing",
        "leave the columns out of X": "ignored_features",
        "all features cost the same; leave expensive columns out of X": (
            "feature_weights first_feature_use_penalties penalties_coefficient"
        ),
        "TextRanker ranks raw text; `truerank text features` makes columns of it": "text_features",
    }
)


# Parameters of CatBoost or XGBoost without a counterpart here.
NOTHING_LIKE_IT = {
    "approx_on_full_history", "combinations_ctr", "ctr_description", "ctr_history_unit", "ctr_leaf_count_limit",
    "ctr_target_border_count", "data_partition", "dev_efb_max_buckets", "dev_score_calc_obj_block_size",
    "device_config", "dictionaries", "diffusion_temperature", "embedding_features", "feature_calcers",
    "final_ctr_computation_mode", "fixed_binary_splits", "fold_len_multiplier", "fold_permutation_block",
    "gpu_cat_features_storage", "has_time", "input_borders", "langevin", "max_cat_threshold", "max_cat_to_onehot",
    "model_shrink_mode", "model_shrink_rate", "multi_strategy", "mvs_reg", "od_type", "output_borders",
    "per_feature_ctr", "per_float_feature_quantization", "per_object_feature_penalties", "posterior_sampling",
    "random_score_type", "sampling_frequency", "simple_ctr", "snapshot_file", "snapshot_interval",
    "sparse_features_conflict_fraction", "store_all_simple_ctr", "target_border", "text_processing", "tokenizers",
}  # fmt: skip

# Callback without underscores and "Callback" -> (attributes with its setting, what it is in a fit here, what to write).
CALLBACKS = {
    "EarlyStopping": ("stopping_rounds rounds", "patience", "early_stopping_rounds=N"),
    "LogEvaluation": ("period", "verbose", "verbose=N, a line every N rounds"),
    "EvaluationMonitor": ("period", "verbose", "verbose=N, a line every N rounds"),
    "RecordEvaluation": ("eval_result", "records", "nothing: evals_result_ has the values by round"),
    "ResetParameter": ("kwargs", "learning_rate", "learning_rate=[…] in the constructor, one number for each round"),
    "LearningRateScheduler": ("learning_rates", "learning_rate", "learning_rate=[…] in the constructor"),
}

# Arguments of `fit` -> what to do instead.
INSTEAD_IN_FIT = by_name(
    {
        "trees can continue a model (ObliviousBoosting); rankers with warm_start begin at their last fit": (
            "init_model xgb_model"
        ),
        "this ranker has no weights of single rows; pass weights of queries as query_weight": "sample_weight",
        "initial scores are not supported; add them as a feature": (
            "init_score base_margin base_margin_eval_set eval_init_score baseline"
        ),
        "pairs come from grades; give grades that order these pairs": "pairs pairs_weight",
        "pass weights of queries as query_weight, one for each query or row": "group_weight",
        "give eval_metric=f: f(grades) returns the value of one query, whose grades are in the order of the ranking": (
            "feval custom_metric"
        ),
        "give the constructor objective=f: f(y, scores, offsets) returns gradients and hessians": "obj fobj",
        "validation queries have no weights": "eval_sample_weight sample_weight_eval_set",
    }
)
