"""Shapley values of boosted oblivious trees beside CatBoost's own and shap, on trees of the same size."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import compare, peer


def run() -> None:
    """61,000 rows of 136 features, 100 trees of depth 6; shap, which is slow, once."""
    from truerank import ObliviousBoosting
    from truerank.inspection.shapley import tree_shapley

    rng = np.random.default_rng(0)
    X = rng.normal(size=(61_000, 136)).astype(np.float32)
    y = (X[:, :20].sum(axis=1) + 3 * X[:, 0] * X[:, 1] + rng.normal(size=len(X)) * 3 > 4).astype(float)
    qid = np.repeat(np.arange(610), 100)
    ours = ObliviousBoosting(n_estimators=100, depth=6, leaves="constant", n_jobs=1).fit(X, y, qid=qid)
    wide = X.astype(np.float64)
    contestants = {"truerank": lambda: tree_shapley(ours, wide, wide).values}
    catboost = peer("catboost")
    if catboost is not None:
        pool = catboost.Pool(X, y, group_id=qid)
        theirs = catboost.CatBoost(
            {"iterations": 100, "depth": 6, "loss_function": "QueryRMSE", "verbose": 0, "thread_count": 1}
        ).fit(pool)
        contestants["CatBoost"] = lambda: theirs.get_feature_importance(pool, type="ShapValues", thread_count=1)
    compare("61,000 × 136, 100 trees of depth 6, one thread", contestants, rounds=3)
    shap, lightgbm = peer("shap"), peer("lightgbm")
    if shap is None or lightgbm is None:
        return
    plain = lightgbm.LGBMRegressor(n_estimators=100, num_leaves=64, max_depth=6, n_jobs=1, verbose=-1).fit(X, y)
    explainer = shap.TreeExplainer(plain)
    compare(
        "the same rows, 100 trees of 64 leaves",
        {
            "truerank": contestants["truerank"],
            "shap (LightGBM's trees; its C++ code)": lambda: explainer.shap_values(wide, check_additivity=False),
        },
        rounds=1,
    )
