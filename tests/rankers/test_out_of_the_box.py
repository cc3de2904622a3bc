"""Held-out sense: at its defaults every learner beats the best single feature on the shipped sample."""

from __future__ import annotations

import numpy as np
import pytest

from truerank import load_sample
from truerank.measures import AP
from truerank.models.registry import RANKERS, ranker_class


def held_out_ap(name: str) -> float:
    """MAP over three folds, every third query a test query, ties averaged."""
    data = load_sample()
    values = np.full(data.n_queries, np.nan)
    for fold in range(3):
        chosen = np.arange(data.n_queries) % 3 == fold
        test = data.take_queries(chosen)
        ranker = ranker_class(name)().fit(data.take_queries(~chosen))
        values[chosen] = AP(ties="average").per_query(test.judgements(), ranker.predict(test))
    return float(np.nanmean(values))


@pytest.fixture(scope="module")
def single_feature() -> float:
    return held_out_ap("single-feature")


@pytest.mark.parametrize("name", [name for name in RANKERS if name not in ("single-feature", "random")])
def test_defaults_beat_the_best_single_feature(name, single_feature):
    assert held_out_ap(name) > single_feature
