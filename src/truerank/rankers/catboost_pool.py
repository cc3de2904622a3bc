"""CatBoost's `Pool`, which scripts for its ranker pass in place of rows, grades and queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData


def is_pool(value: Any) -> bool:
    """Whether it is a `Pool`, without a look at CatBoost."""
    return type(value).__module__ == "catboost.core" and hasattr(value, "get_group_id_hash")


def without_pool(value: Any, *, graded: bool = True) -> Any:
    """A `Pool` as `RankingData`, without its grades where they are not asked for; anything else as it is.

    Features are float32 there, and queries are known by CatBoost's hash of their ids; without ids all rows are one
    query, and more than 1,000 of them with grades an error. A pool does not give back its `group_weight`, which is left
    out: give `query_weight` to `fit`.

    Raises
    ------
    InvalidInputError
        On columns that are no numbers, which a pool does not give back, on pairs, and on scores to start from.
    """
    if not is_pool(value):
        return value
    if value.num_pairs() or np.size(value.get_baseline()):
        raise InvalidInputError(
            "a Pool with pairs or a baseline asks for what is not here: pairs are made of the grades of a query, "
            "Pool(X, y, group_id=…), and scores to start from go in as a feature"
        )
    if value.get_cat_feature_indices() or value.get_text_feature_indices() or value.get_embedding_feature_indices():
        raise InvalidInputError(
            "a Pool with categories, texts or embeddings does not give them back; pass the data frame, "
            "fit(X, y, qid=qid), and name columns of categories: ObliviousBoosting(categorical=[…])"
        )
    names = value.get_feature_names()
    weights = np.asarray(value.get_weight(), dtype=np.float64)
    return RankingData(
        value.get_features(),
        value.get_label() if graded and value.has_label() else None,
        value.get_group_id_hash(),
        feature_names=names if all(names) and not all(map(str.isdigit, names)) else None,
        sample_weight=weights if (weights != 1).any() else None,
    )
