"""What docs/development/row-order.md promises: the order of rows and queries changes models not at all, or by
rounding."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from truerank import RankingData
from truerank.models.registry import RANKERS, ranker_class

BITS, ROUNDING, DRAWS = "same bits", "same up to rounding", "another draw"
PROMISED = {
    "adarank": ROUNDING,
    "rank-boost": ROUNDING,
    "measure-svm": BITS,
    "pointwise-svm": BITS,
    "rank-svm": BITS,
    "pairwise-descent": BITS,
    "list-net": BITS,
    "nonnegative-list-net": BITS,
    "ridge": BITS,
    "oblivious-boosting": ROUNDING,
    "single-feature": ROUNDING,
    "random": BITS,
}


def collection():
    rng = np.random.default_rng(0)
    sizes = rng.integers(4, 25, 40)
    qid = np.repeat([f"q{k}" for k in range(40)], sizes)
    X = np.round(rng.normal(size=(len(qid), 5)), 1)  # many ties
    y = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=len(qid))), 0, 2)
    return X, y, qid, np.array([f"d{k}" for k in range(len(qid))]), rng.permutation(len(qid))


def fitted_scores(name, settings=None):
    """Scores of all rows by two fits, on the rows in their order and in another."""
    X, y, qid, ids, moved = collection()

    def part(rows, first, last):
        rows = rows[np.isin(qid[rows], [f"q{k}" for k in range(first, last)])]
        return RankingData(X[rows], y[rows], qid[rows], doc_ids=ids[rows])

    scores = []
    for rows in (np.arange(len(y)), moved):
        ranker = ranker_class(name)()
        ranker.set_params(**({"rel": 1} if "rel" in ranker.get_params() else {}), **(settings or {}))
        more = {"eval_set": part(rows, 30, 40)} if ranker.uses_eval_set else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores.append(ranker.fit(part(rows, 0, 30), **more).predict(X))
    return scores


@pytest.mark.parametrize("name", [name for name, kind in PROMISED.items() if kind != DRAWS])
def test_the_order_of_the_rows_changes_no_model(name):
    first, second = fitted_scores(name, {"n_estimators": 30} if name in ("oblivious-boosting", "rank-boost") else None)
    if PROMISED[name] == BITS:
        np.testing.assert_array_equal(first, second)
    else:
        np.testing.assert_allclose(first, second, rtol=0, atol=1e-9 * np.ptp(first))


DRAWN = {
    "bootstrap by row": {"bootstrap": "row"},
    "bootstrap by query": {"bootstrap": "query"},
    "a share of the rows": {"subsample": 0.5, "feature_fraction": 0.6},
    "a share of the queries": {"bootstrap": "query", "replace": False, "subsample": 0.5},
    "lambdarank": {"objective": "lambdarank"},
    "lambdarank of AP": {"objective": "lambdarank", "measure": "AP"},
    "lambdarank of ERR": {"objective": "lambdarank", "measure": "ERR", "n_estimators": 3},
    "yetirank": {"objective": "yetirank", "bootstrap": "row"},
    "pairwise-logistic": {"objective": "pairwise-logistic"},
    "softmax": {"objective": "softmax"},
}


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
@pytest.mark.parametrize("what", DRAWN)
def test_trees_draw_and_break_ties_by_content(what, leaves):
    settings = {"n_estimators": 20, "depth": 4, "leaves": leaves, **DRAWN[what]}
    first, second = fitted_scores("oblivious-boosting", settings)
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-9 * np.ptp(first))


@pytest.mark.parametrize("measure", ["AP", "nDCG@5", "RR", "ERR", "pairs(2,0)"])
def test_adarank_in_any_order_for_any_measure(measure):
    first, second = fitted_scores("adarank", {"measure": measure})
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-9 * np.ptp(first))


def test_every_ranker_says_what_it_promises():
    assert set(PROMISED) == set(RANKERS)
    page = Path(__file__).parents[2] / "docs" / "development" / "row-order.md"
    rows = [line.split("|") for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    table = {cells[1].strip().strip("`"): cells[2].strip() for cells in rows}
    assert table == PROMISED
