"""Scripts after public examples of LightGBM, XGBoost, CatBoost, PyTerrier and competitions, with calls and settings as there.

`X`, `y`, `group` (sizes) and `qid`, also with `_valid` and `_test`, are arrays; `frame` and `frame_test` are data
frames. A script ends with `scores`, of the rows of `X_test`.
"""

# ruff: noqa: E501
SCRIPTS = {
    "lightgbm, scikit-learn interface": """
import lightgbm as lgb
gbm = lgb.LGBMRanker(n_estimators=30)
gbm.fit(X, y, group=group, eval_set=[(X_valid, y_valid)], eval_group=[group_valid], eval_at=[1, 3],
        callbacks=[lgb.early_stopping(10), lgb.reset_parameter(learning_rate=lambda i: 0.95 ** i * 0.1)])
scores = gbm.predict(X_test, num_iteration=gbm.best_iteration_)
""",
    "lightgbm, xendcg": """
import lightgbm as lgb
gbm = lgb.LGBMRanker(n_estimators=20, objective="rank_xendcg", random_state=1, n_jobs=1)
gbm.fit(X, y, group=group, eval_set=[(X_valid, y_valid)], eval_group=[group_valid], eval_at=[1, 3], eval_metric="ndcg",
        callbacks=[lgb.early_stopping(stopping_rounds=10)])
scores = gbm.predict(X_test)
""",
    "lightgbm, native train.conf": """
import lightgbm as lgb
params = {"task": "train", "boosting_type": "gbdt", "objective": "lambdarank", "metric": "ndcg", "ndcg_eval_at": [1, 3, 5],
          "metric_freq": 1, "is_training_metric": True, "max_bin": 255, "num_trees": 20, "learning_rate": 0.1,
          "num_leaves": 31, "tree_learner": "serial", "feature_fraction": 1.0, "bagging_freq": 1, "bagging_fraction": 0.9,
          "min_data_in_leaf": 50, "min_sum_hessian_in_leaf": 5.0, "is_enable_sparse": True}
train_data = lgb.Dataset(X, label=y, group=group)
valid_data = lgb.Dataset(X_valid, label=y_valid, group=group_valid, reference=train_data)
gbm = lgb.train(params, train_data, valid_sets=[valid_data])
scores = gbm.predict(X_test)
""",
    "lightgbm, native with records": """
import lightgbm as lgb
evals = {}
train_data = lgb.Dataset(X, y, group=group, free_raw_data=False)
gbm = lgb.train({"objective": "lambdarank", "metric": "ndcg", "eval_at": [5], "num_leaves": 15, "verbosity": -1, "seed": 7},
                train_data, num_boost_round=25, valid_sets=[lgb.Dataset(X_valid, y_valid, group=group_valid)],
                valid_names=["valid"], callbacks=[lgb.record_evaluation(evals), lgb.log_evaluation(5), lgb.early_stopping(10)])
assert len(evals["valid"]["ndcg@5"]) == gbm.best_iteration_
scores = gbm.predict(X_test, num_iteration=gbm.best_iteration)
""",
    "lightgbm, competition with many settings": """
from lightgbm import LGBMRanker, early_stopping, log_evaluation
ranker = LGBMRanker(objective="lambdarank", metric="ndcg", boosting_type="gbdt", n_estimators=40, learning_rate=0.05,
                    num_leaves=63, max_depth=-1, min_child_samples=20, subsample=0.8, subsample_freq=1, colsample_bytree=0.8,
                    reg_lambda=1.0, importance_type="gain", random_state=42, n_jobs=-1, verbose=-1)
ranker.fit(X, y, group=group, eval_set=[(X, y), (X_valid, y_valid)], eval_group=[group, group_valid], eval_at=[12],
           callbacks=[early_stopping(20, verbose=False), log_evaluation(10)])
scores = ranker.predict(X_test)
""",
    "lightgbm, recommendations with dart": """
from lightgbm.sklearn import LGBMRanker
ranker = LGBMRanker(objective="lambdarank", metric="ndcg", boosting_type="dart", n_estimators=10, importance_type="gain",
                    verbose=10)
ranker = ranker.fit(X, y, group=group)
scores = ranker.predict(X_test)
""",
    "lightgbm, categories": """
import lightgbm as lgb
model = lgb.LGBMRanker(n_estimators=15, num_leaves=8, label_gain=[0, 1, 3, 7, 15], max_position=20)
model.fit(X, y, group=group, categorical_feature=[3], feature_name="auto")
scores = model.predict(X_test)
""",
    "lightgbm, penalties": """
import lightgbm as lgb
model = lgb.LGBMRanker(n_estimators=15, reg_alpha=0.1, reg_lambda=0.1, min_split_gain=0.01, colsample_bytree=0.7)
model.fit(X, y, group=group)
scores = model.predict(X_test)
""",
    "lightgbm, deterministic": """
import lightgbm as lgb
params = dict(objective="lambdarank", deterministic=True, force_row_wise=True, feature_pre_filter=False, num_threads=2,
              lambdarank_truncation_level=30, verbosity=-1, num_leaves=31, min_data=5)
model = lgb.train(params, lgb.Dataset(X, label=y).set_group(group), 12)
scores = model.predict(X_test)
""",
    "pyterrier, lightgbm": """
import lightgbm as lgb
lmart = lgb.LGBMRanker(task="train", silent=False, min_data_in_leaf=1, min_sum_hessian_in_leaf=1, max_bin=255, num_leaves=31,
                       objective="lambdarank", metric="ndcg", ndcg_eval_at=[10], learning_rate=0.1, importance_type="gain",
                       num_iterations=20, early_stopping_rounds=5)
lmart.fit(X, y, group=group, eval_set=[(X_valid, y_valid)], eval_group=[group_valid])
scores = lmart.predict(X_test)
""",
    "pyterrier, xgboost": """
import xgboost as xgb
params = {"objective": "rank:ndcg", "learning_rate": 0.1, "gamma": 1.0, "min_child_weight": 0.1, "max_depth": 6, "verbose": 2,
          "random_state": 42}
lmart = xgb.sklearn.XGBRanker(**params)
lmart.fit(X, y, group=group, eval_set=[(X_valid, y_valid)], eval_group=[group_valid])
scores = lmart.predict(X_test)
""",
    "xgboost, guide": """
import xgboost as xgb
ranker = xgb.XGBRanker(tree_method="hist", lambdarank_num_pair_per_sample=8, objective="rank:ndcg",
                       lambdarank_pair_method="topk", n_estimators=20)
ranker.fit(X, y, qid=qid, eval_set=[(X_valid, y_valid)], eval_qid=[qid_valid], verbose=False)
scores = ranker.predict(X_test)
""",
    "xgboost, guide on a graphics card": """
import xgboost as xgb
ranker = xgb.XGBRanker(tree_method="hist", device="cuda", lambdarank_pair_method="topk", lambdarank_num_pair_per_sample=13,
                       eval_metric=["ndcg@1", "ndcg@8"], n_estimators=15)
ranker.fit(X, y, qid=qid, eval_set=[(X_valid, y_valid)], eval_qid=[qid_valid], verbose=True)
scores = ranker.predict(X_test)
""",
    "xgboost, demo/rank": """
import xgboost as xgb
params = {"objective": "rank:ndcg", "learning_rate": 0.1, "gamma": 1.0, "min_child_weight": 0.1, "max_depth": 6,
          "n_estimators": 4}
model = xgb.sklearn.XGBRanker(**params)
model.fit(X, y, group=group, verbose=True, eval_set=[(X_valid, y_valid)], eval_group=[group_valid])
scores = model.predict(X_test)
""",
    "xgboost, native": """
import xgboost as xgb
from xgboost import DMatrix
train_dmatrix, valid_dmatrix, test_dmatrix = DMatrix(X, y), DMatrix(X_valid, y_valid), DMatrix(X_test)
train_dmatrix.set_group(group)
valid_dmatrix.set_group(group_valid)
params = {"objective": "rank:pairwise", "eta": 0.1, "min_child_weight": 0.1, "max_depth": 6}
xgb_model = xgb.train(params, train_dmatrix, num_boost_round=4, evals=[(valid_dmatrix, "validation")])
scores = xgb_model.predict(test_dmatrix)
""",
    "xgboost, native with early stopping": """
import xgboost as xgb
dtrain, dvalid = xgb.DMatrix(X, label=y, qid=qid), xgb.DMatrix(X_valid, label=y_valid, qid=qid_valid)
history = {}
bst = xgb.train({"objective": "rank:ndcg", "eval_metric": "ndcg@10", "eta": 0.3, "max_depth": 4, "subsample": 0.8, "lambda": 1.5},
                dtrain, 30, evals=[(dtrain, "train"), (dvalid, "valid")], early_stopping_rounds=5, evals_result=history,
                verbose_eval=10)
assert history["valid"]["ndcg@10"][bst.best_iteration] == bst.best_score
scores = bst.predict(xgb.DMatrix(X_test), iteration_range=(0, bst.best_iteration + 1))
""",
    "xgboost, callbacks": """
import xgboost as xgb
stop = xgb.callback.EarlyStopping(rounds=5, save_best=True)
ranker = xgb.XGBRanker(n_estimators=25, objective="rank:map", eval_metric="map@10", callbacks=[stop], colsample_bytree=0.9,
                       colsample_bylevel=0.8, enable_categorical=True)
ranker.fit(X, y, qid=qid, eval_set=[(X_valid, y_valid)], eval_qid=[qid_valid])
scores = ranker.predict(X_test)
""",
    "xgboost, a frame with qid": """
import xgboost as xgb
rank = xgb.XGBRanker(booster="gbtree", objective="rank:pairwise", random_state=42, learning_rate=0.1, colsample_bytree=0.9,
                     max_depth=6, n_estimators=11, subsample=0.75)
rank.fit(frame, y)
scores = rank.predict(frame_test)
""",
    "xgboost, penalties": """
from xgboost import XGBRanker
model = XGBRanker(objective="rank:ndcg", n_estimators=12, max_depth=5, reg_alpha=0.5, max_delta_step=1, scale_pos_weight=2)
model.fit(X, y, qid=qid)
scores = model.predict(X_test)
""",
    "catboost, tutorial": """
from catboost import CatBoostRanker, Pool
train = Pool(data=X, label=y, group_id=qid)
test = Pool(data=X_valid, label=y_valid, group_id=qid_valid)
model = CatBoostRanker(iterations=15, custom_metric=["NDCG:top=10", "PFound"], verbose=False, random_seed=0,
                       loss_function="RMSE")
model.fit(train, eval_set=test, plot=True)
scores = model.predict(Pool(X_test))
""",
    "catboost, YetiRank": """
from catboost import CatBoost, Pool
params = {"loss_function": "YetiRank", "iterations": 15, "depth": 5, "train_dir": "yeti", "custom_metric": ["MAP:top=10"],
          "verbose": False, "random_seed": 0, "bagging_temperature": 0.5, "random_strength": 1}
model = CatBoost(params)
model.fit(Pool(X, y, group_id=qid), eval_set=Pool(X_valid, y_valid, group_id=qid_valid), plot=False)
scores = model.predict(X_test)
""",
    "catboost, YetiRank with a metric": """
from catboost import CatBoostRanker
model = CatBoostRanker(loss_function="YetiRank:mode=NDCG;top=10", eval_metric="NDCG:top=10;type=Exp", iterations=15,
                       learning_rate=0.05, l2_leaf_reg=5, od_type="Iter", od_wait=10, use_best_model=True, task_type="CPU",
                       bootstrap_type="Bernoulli", subsample=0.8, grow_policy="SymmetricTree", leaf_estimation_iterations=2)
model.fit(X, y, group_id=qid, eval_set=(X_valid, y_valid, qid_valid), verbose=5)
scores = model.predict(X_test)
""",
    "catboost, categories and pairs": """
from catboost import CatBoostRanker
model = CatBoostRanker(iterations=10, loss_function="PairLogitPairwise", nan_mode="Min", one_hot_max_size=8, langevin=True)
model.fit(X, y, group_id=qid, cat_features=[3], early_stopping_rounds=None, verbose=False)
scores = model.predict(X_test)
""",
    "catboost, StochasticRank": """
from catboost import CatBoostRanker, Pool
model = CatBoostRanker(loss_function="StochasticRank:metric=NDCG", iterations=10, max_ctr_complexity=1, thread_count=2,
                       allow_writing_files=False, logging_level="Silent", metric_period=5)
model.fit(Pool(X, y, group_id=qid))
scores = model.predict(X_test)
""",
    "xgboost, learning to rank demo": """
import xgboost as xgb
order = np.argsort(qid, kind="stable")
ranker = xgb.XGBRanker(tree_method="hist", device="cpu", lambdarank_pair_method="topk", lambdarank_num_pair_per_sample=13,
                       eval_metric=["ndcg@1", "ndcg@8"], n_estimators=15)
ranker.fit(X[order], y[order], qid=qid[order], eval_set=[(X_test, y_test)], eval_qid=[qid_test], verbose=True)
scores = ranker.predict(X_test)
""",
    "xgboost, clicks with a callback": """
import xgboost as xgb
seen = []
class ShowRound(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log) -> bool:
        seen.append((epoch, {name: list(values) for name, values in evals_log.items()}))
        return False
ranker = xgb.XGBRanker(n_estimators=12, tree_method="hist", learning_rate=0.1, reg_lambda=1.5, subsample=0.8,
                       sampling_method="gradient_based", objective="rank:ndcg", lambdarank_unbiased=True, lambdarank_bias_norm=1,
                       lambdarank_num_pair_per_sample=12, lambdarank_pair_method="topk", ndcg_exp_gain=True,
                       eval_metric=["ndcg@1", "ndcg@10"], callbacks=[ShowRound()])
ranker.fit(X, (y > 1).astype(int), qid=qid, eval_set=[(X_test, y_test), (X_test, y_test > 1)], eval_qid=[qid_test, qid_test],
           verbose=True)
assert seen[-1] == (11, {"valid_1": ["ndcg@10"]}), seen[-1]
scores = ranker.predict(X_test)
""",
    "xgboost, booster in a file": """
import xgboost as xgb
settings = {"objective": "rank:pairwise", "tree_method": "hist", "eta": 0.2, "random_state": 42}
parts = [one.drop(columns="qid") for one in (frame, frame_valid, frame_test)]
dtrain, dvalid = xgb.DMatrix(parts[0], y, group=group), xgb.DMatrix(parts[1], y_valid, group=group_valid)
model = xgb.train(settings, dtrain=dtrain, evals=[(dtrain, "train"), (dvalid, "valid")], num_boost_round=15, verbose_eval=5)
model.save_model(folder + "/fold0.json")
importance = sorted(model.get_score(importance_type="weight").items())
assert all(share > 0 for _, share in importance)
model = xgb.Booster()
model.load_model(folder + "/fold0.json")
scores = model.predict(xgb.DMatrix(data=parts[2]))
""",
    "xgboost, folds by query": """
import xgboost as xgb
from sklearn.model_selection import GroupKFold
settings = dict(objective="rank:ndcg", learning_rate=0.1, max_depth=6, min_child_weight=5, gamma=0.0, subsample=0.8,
                colsample_bytree=0.8, n_estimators=15, early_stopping_rounds=5, eval_metric="ndcg@10", random_state=1, verbosity=0)
columns = frame.drop(columns="qid")
models, held_out = [], np.zeros(len(y))
for fold, (fit, hold) in enumerate(GroupKFold(n_splits=2).split(columns, y, groups=qid)):
    ranker = xgb.XGBRanker(**settings)
    ranker.fit(columns.iloc[fit], y[fit], qid=qid[fit], eval_set=[(columns.iloc[hold], y[hold])], eval_qid=[qid[hold]], verbose=False)
    held_out[hold] = ranker.predict(columns.iloc[hold], iteration_range=(0, ranker.best_iteration + 1))
    assert ranker.best_score > 0 and ranker.get_booster().get_score(importance_type="gain")
    models.append(ranker)
scores = np.mean([one.predict(frame_test.drop(columns="qid")) for one in models], axis=0)
""",
    "lightgbm, guide with importances": """
import lightgbm as lgb
columns = frame.drop(columns="qid")
gbm = lgb.LGBMRanker(num_leaves=31, learning_rate=0.05, n_estimators=20)
gbm.fit(columns, y, group=group, eval_set=[(frame_valid.drop(columns="qid"), y_valid)], eval_group=[group_valid],
        eval_metric="ndcg", callbacks=[lgb.early_stopping(stopping_rounds=5)])
assert gbm.feature_name_ == list(columns) and gbm.booster_.feature_importance().shape == gbm.feature_importances_.shape
scores = gbm.predict(frame_test.drop(columns="qid"), num_iteration=gbm.best_iteration_)
""",
    "lightgbm, guide with files": """
import json, pickle
import lightgbm as lgb
weights = 1.0 + (y > 2)
lgb_train = lgb.Dataset(X, y, weight=weights, group=group, free_raw_data=False)
lgb_eval = lgb.Dataset(X_valid, y_valid, reference=lgb_train, group=group_valid, free_raw_data=False)
params = {"boosting_type": "gbdt", "objective": "lambdarank", "metric": "ndcg", "num_leaves": 31, "learning_rate": 0.05,
          "feature_fraction": 0.9, "bagging_fraction": 0.8, "bagging_freq": 5, "verbose": 0}
gbm = lgb.train(params, lgb_train, num_boost_round=10, valid_sets=lgb_train)
gbm.save_model(folder + "/model.txt")
json.dumps(gbm.dump_model())
gbm.feature_name(), list(gbm.feature_importance())
loaded = lgb.Booster(model_file=folder + "/model.txt")
assert (loaded.predict(X_test) == pickle.loads(pickle.dumps(gbm)).predict(X_test)).all()
gbm = lgb.train(params, lgb_train, num_boost_round=5, init_model=folder + "/model.txt", valid_sets=lgb_eval)
gbm = lgb.train(params, lgb_train, num_boost_round=5, init_model=gbm, valid_sets=lgb_eval,
                callbacks=[lgb.reset_parameter(learning_rate=lambda k: 0.05 * 0.99**k)])
assert gbm.best_iteration_ == 20
scores = gbm.predict(X_test)
""",
    "lightgbm, sizes set later": """
import lightgbm as lgb
train_data, valid_data = lgb.Dataset(X, label=y), lgb.Dataset(X_valid, label=y_valid)
train_data.set_group(group)
valid_data.set_group(group_valid)
settings = {"task": "train", "num_leaves": 255, "min_data_in_leaf": 100, "min_sum_hessian_in_leaf": 100, "objective": "lambdarank",
            "metric": "ndcg", "ndcg_eval_at": [10], "learning_rate": 0.1, "num_threads": 2}
res = {}
bst = lgb.train(settings, train_data, valid_sets=[train_data, valid_data], valid_names=["train", "valid"], num_boost_round=12,
                evals_result=res, verbose_eval=5)
assert len(res["valid"]["ndcg@10"]) == 12
scores = bst.predict(X_test)
""",
    "lightgbm, search with penalties and gains": """
import lightgbm as lgb
best = -1.0
for leaves in (15, 40):
    params = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "verbosity": -1, "seed": 42, "num_leaves": leaves,
              "min_data_in_leaf": 20, "bagging_fraction": 0.8, "bagging_freq": 1, "lambda_l1": 1e-3, "lambda_l2": 1.0,
              "label_gain": list(range(8)), "lambdarank_truncation_level": 10}
    gbm = lgb.train(params, lgb.Dataset(X, label=y, group=group), num_boost_round=12,
                    valid_sets=[lgb.Dataset(X_valid, label=y_valid, group=group_valid)],
                    callbacks=[lgb.early_stopping(10, verbose=False), lgb.log_evaluation(0)])
    if gbm.best_score["valid_0"]["ndcg@10"] > best:
        best, model = gbm.best_score["valid_0"]["ndcg@10"], gbm
scores = model.predict(X_test, num_iteration=model.best_iteration)
""",
    "catboost, tutorial of objectives": """
from copy import deepcopy
from catboost import CatBoost, CatBoostRanker, Pool
largest = np.max(y)
train = Pool(data=X, label=y / largest, group_id=qid)
test = Pool(data=X_valid, label=y_valid / largest, group_id=qid_valid)
defaults = {"iterations": 10, "custom_metric": ["NDCG", "PFound", "AverageGain:top=10"], "verbose": False, "random_seed": 0}
def fit_model(loss_function, additional_params=None, train_pool=train, test_pool=test):
    parameters = deepcopy(defaults)
    parameters["loss_function"], parameters["train_dir"] = loss_function, loss_function
    parameters.update(additional_params or {})
    model = CatBoost(parameters)
    model.fit(train_pool, eval_set=test_pool, plot=False)
    return model
fit_model("RMSE", {"custom_metric": ["PrecisionAt:top=10", "RecallAt:top=10", "MAP:top=10"]})
weighted = Pool(data=X, label=y / largest, group_id=qid, group_weight=np.repeat(1.0 + np.arange(len(group)) % 3, group))
fit_model("QueryRMSE", train_pool=weighted)
fit_model("PairLogit")
model = fit_model("YetiRank")
assert model.get_best_score() and abs(model.get_feature_importance(train).sum() - 100) < 1e-9
scores = model.predict(X_test)
""",
    "catboost, texts as categories in a pool": """
from catboost import CatBoostRanker, Pool
name = list(frame)[3]
texts = [one.drop(columns="qid").assign(**{name: one[name].astype(int).astype(str)}) for one in (frame, frame_valid, frame_test)]
model = CatBoostRanker(loss_function="YetiRank", eval_metric="NDCG:top=10", iterations=20, learning_rate=0.1, depth=5,
                       l2_leaf_reg=3, task_type="CPU", random_state=0, use_best_model=True, od_type="Iter", od_wait=20, verbose=5)
model.fit(Pool(data=texts[0], label=y, group_id=qid, cat_features=[name]),
          eval_set=Pool(data=texts[1], label=y_valid, group_id=qid_valid, cat_features=[name]), early_stopping_rounds=20)
assert model.get_best_iteration() < 20 and len(model.get_feature_importance(prettified=True)) == texts[0].shape[1]
scores = model.predict(Pool(data=texts[2], group_id=qid_test, cat_features=[name]))
""",
}
