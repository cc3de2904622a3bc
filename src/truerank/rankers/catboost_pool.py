"""CatBoost's `Pool`, which scripts for its ranker pass in place of rows, grades and queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData


def without_pool(value: Any) -> Any:
    """A `Pool` as `RankingData`; anything else as it is.

    Features are float32 there, and queries are known by CatBoost's hash of their ids.

    Raises
    ------
    InvalidInputError
        On columns that are no numbers, which a pool does not give back.
    """
    if type(value).__module__ != "catboost.core" or not hasattr(value, "get_group_id_hash"):
        return value
    if value.get_cat_feature_indices() or value.get_text_feature_indices() or value.get_embedding_feature_indices():
        raise InvalidInputError(
            "a Pool with categories, texts or embeddings does not give them back; pass the data frame, "
            "fit(X, y, qid=qid), and name columns of categories: ObliviousBoosting(categorical=[…])"
        )
    names = value.get_feature_names()
    weights = np.asarray(value.get_weight(), dtype=np.float64)
    return RankingData(
        value.get_features(),
        value.get_label() if value.has_label() else None,
        value.get_group_id_hash(),
        feature_names=names if all(names) and not all(map(str.isdigit, names)) else None,
        sample_weight=weights if (weights != 1).any() else None,
    )
