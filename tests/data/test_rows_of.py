"""Judged rows as a RankingData, a data frame or a file: every function that works on rows accepts all of them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import truerank
from support.refusals import refused
from truerank import (
    CalibratedRanker,
    ObliviousBoosting,
    RidgeRanker,
    compare,
    cross_validate,
    distil,
    evaluate,
    explain,
    explain_measure,
    export_model,
    learning_curve,
    load_sample,
    partial_dependence,
    permutation_importance,
    ranking_stability,
    removal_importance,
    retrain,
    simulate,
    to_table,
    training_queries,
    tune,
    write_letor,
    write_table,
)
from truerank.core.errors import InvalidInputError

pytest.importorskip("pandas")
TEST = load_sample().take_queries(range(20, 40))
RANKER = RidgeRanker().fit(load_sample().take_queries(range(40, 60)))
LEARN = load_sample().take_queries(range(60, 80))
QUERY = TEST.query_ids[0]
CALLS = {
    "explain": lambda rows: explain(RANKER, rows, query=QUERY).contributions,
    "permutation_importance": lambda rows: permutation_importance(RANKER, rows, repeats=1).importances_mean,
    "removal_importance": lambda rows: removal_importance(RidgeRanker(), rows, rows).importances_mean,
    "partial_dependence": lambda rows: np.stack(partial_dependence(RANKER, rows, 0, points=3)[:2]),
    "ranking_stability": lambda rows: ranking_stability(RANKER, rows, repeats=2, random_state=0),
    "cross_validate": lambda rows: cross_validate(RidgeRanker(), rows, "AP", cv=3).scores["RidgeRanker"],
    "learning_curve": lambda rows: learning_curve(RidgeRanker(), rows, rows, train_sizes=[5], draws=1).test_scores,
    "tune": lambda rows: tune(RidgeRanker, rows, {"alpha": [1.0, 10.0]}, cv=2).best_value,
    "export_model": lambda rows: export_model(RANKER, "python", certify=rows).certificate.rows,
    "explain_measure": lambda rows: explain_measure(rows, RANKER, "nDCG@5", query=QUERY).value,
    "evaluate": lambda rows: evaluate(rows, RANKER, "AP")["AP"],
    "compare": lambda rows: compare(rows, {"a": RANKER, "b": lambda X: np.asarray(X)[:, 0]}, "AP").pairs[0].difference,
    "retrain": lambda rows: retrain(RANKER, LEARN, rows).comparison.pairs[0].difference,
    "training_queries": lambda rows: training_queries(RANKER, rows).matched,
    "distil": lambda rows: distil(rows, RANKER, RidgeRanker()).predict(TEST),
    "simulate": lambda rows: simulate(rows, {"a": TEST.X[:, 0]}, impressions=50, random_state=0).clicked,
    "fit": lambda rows: RidgeRanker().fit(rows).predict(TEST),
    "fit of trees": lambda rows: ObliviousBoosting(n_estimators=2).fit(rows, eval_set=TEST).predict(TEST),
    "CalibratedRanker": lambda rows: CalibratedRanker(RANKER, "platt", cv="prefit").fit(rows).predict_proba(TEST)[:, 1],
    "calibrated function": lambda rows: (
        CalibratedRanker(lambda X: np.asarray(X)[:, 0], "platt", cv="prefit").fit(rows).predict_proba(TEST)[:, 1]
    ),
}


def test_every_public_function_on_rows_is_among_the_calls():
    """Apart from those that write rows, and `vector_features`, whose rows must have documents."""
    on_rows = {
        name
        for name in truerank.__all__
        if inspect.isfunction(one := getattr(truerank, name))
        and inspect.signature(one).parameters.keys() & {"data", "train", "held_out", "certify", "judgements"}
    }
    others = {"write_letor", "write_table", "to_table", "vector_features"}
    assert on_rows - others <= CALLS.keys()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_rows_of_a_frame_and_of_files_are_those_of_the_data(name, tmp_path):
    wanted = CALLS[name](TEST)
    frame = to_table(TEST)
    kept = frame.copy()
    np.testing.assert_array_equal(CALLS[name](frame), wanted)
    assert frame.equals(kept)
    if "fit" in name or "calibrated" in name.lower():  # a fit reads files through read_table and read_letor
        return
    write_table(TEST, tmp_path / "rows.csv")
    np.testing.assert_array_equal(CALLS[name](tmp_path / "rows.csv"), wanted)


def test_a_model_that_knows_its_columns_gets_them_from_a_frame_with_texts():
    frame = to_table(TEST).assign(title="text")
    assert permutation_importance(RANKER, frame, repeats=1).importances_mean.shape == (RANKER.n_features_in_,)
    with pytest.raises(InvalidInputError, match="'title' is not numeric"):
        cross_validate(RidgeRanker(), frame, "AP", cv=3)


def test_letor_text_is_read_too(tmp_path):
    write_letor(TEST, tmp_path / "rows.txt")
    assert len(cross_validate(RidgeRanker(), tmp_path / "rows.txt", "AP", cv=3).scores["RidgeRanker"]) == TEST.n_rows


@pytest.mark.parametrize("rows", [[1, 2], np.zeros((2, 2)), None])
def test_other_rows_are_named(rows):
    with refused(InvalidInputError, argument="data"):
        explain(RANKER, rows, query=1)


def test_a_function_has_no_formula():
    with refused(InvalidInputError, code="no-formula"):
        export_model(lambda X: X[:, 0], "python", ["a"])
