"""Which features a ranker relies on, by what ranking loses when a feature is shuffled within queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of, stream
from truerank.data.ranking_data import RankingData
from truerank.measures import parse_measure


def permutation_importance(
    ranker: Any,
    data: RankingData,
    *,
    measure: Any = "nDCG@10",
    convention: str = "ranklib",
    repeats: int = 5,
    random_state: Any = None,
) -> np.ndarray:
    """Mean loss of a measure when one feature's values are shuffled among the documents of each query.

    Shuffling within queries keeps what a feature says about the query and destroys only what it says about its
    documents, which is all that can change a ranking.

    Parameters
    ----------
    ranker : fitted ranker
    data : RankingData
        Judged rows, best of queries that the ranker was not trained on.
    measure, convention
        What is measured.
    repeats : int, default 5
        Shuffles of each feature.
    random_state : None, int or NumPy generator

    Returns
    -------
    float64 array (p,)
        How much better the measure is on the data as they are than in the mean over the shuffled copies: the
        difference, with its sign turned for a measure of which less is better.

    Notes
    -----
    `p * repeats + 1` predictions.
    """
    repeats = check_positive_int(repeats, "repeats")
    if not isinstance(data.X, np.ndarray):
        raise InvalidInputError("permutation_importance needs dense rows; call X.toarray()")
    seed = seed_of(random_state)
    pinned, judgements = parse_measure(measure, convention=convention), data.judgements()
    query = data.query_index

    def value(X: np.ndarray) -> float:
        rows = RankingData.from_grouped(X, None, data.offsets, data.query_ids, feature_names=data.feature_names)
        return float(pinned.mean(judgements, ranker.predict(rows)))

    whole = value(data.X)
    changed = data.X.copy()
    loss = np.zeros(data.n_features)
    for k in range(data.n_features):
        for repeat in range(repeats):
            keys = stream(seed, "importance", k, repeat).random(data.n_rows)
            changed[:, k] = data.X[np.lexsort((keys, query)), k]
            loss[k] += pinned.gain_over(whole, value(changed)) / repeats
        changed[:, k] = data.X[:, k]
    return loss
