"""Read the importance of features from a model, without data."""

from __future__ import annotations

import numpy as np

from truerank.core.types import Scorer
from truerank.data.columns import shown_names

MOST_FEATURES = 20  # that a page or a notebook shows of what a model says of its features
SHARE = "share in the model"  # the kind of importance that models of trees and stumps report


def own_importance(model: Scorer) -> tuple[str, dict[str, float]] | None:
    """Return the weights of features, or their shares in a fitted model, largest first.

    Features of weight or share 0 are left out. The result is None if the model reports nothing or is not fitted.
    """
    while hasattr(model, "ranker_"):
        model = model.ranker_
    model = model.steps[-1][1] if hasattr(model, "steps") else model
    if hasattr(model, "model_attributes") and hasattr(model, "feature_weights"):
        if not hasattr(model, "n_features_in_"):
            return None
        kind, values = "weight", dict(model.feature_weights())
    else:
        shares = np.asarray(getattr(model, "feature_importances_", None))
        foreign = not hasattr(model, "model_attributes")
        if shares.ndim != 1 and foreign and hasattr(model, "get_feature_importance"):  # CatBoost wants the kind named
            shares = np.asarray(model.get_feature_importance(type="PredictionValuesChange"))
        if shares.ndim != 1:
            return None
        labels = shown_names(getattr(model, "feature_names_in_", None), len(shares))
        kind, values = SHARE, dict(zip(labels, shares.tolist()))
    order = sorted(values, key=lambda name: -abs(values[name]))
    return kind, {name: float(values[name]) for name in order if values[name] != 0}
