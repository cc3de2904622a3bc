"""Ties that move a mean are named in every form of a comparison: remark, caption, paragraph, CSV and text."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import truerank


@pytest.fixture(scope="module")
def collection():
    """Grades, queries, and scores of three systems: `round` has ties, `first` has the same order without ties."""
    rng = np.random.default_rng(3)
    grades, qid = (rng.random(600) < 0.3).astype(float), np.repeat(np.arange(30), 20)
    exact = grades + rng.normal(size=600)
    return grades, qid, {"base": rng.normal(size=600), "round": np.round(exact), "exact": exact}


def test_every_form_names_the_system_that_ties_move(collection):
    grades, qid, scores = collection
    found = truerank.compare(grades, scores, qid=qid, measures="AP", baseline="base")
    averaged = truerank.evaluate(grades, scores["round"], 'AP(ties="average")', qid=qid)
    mean = next(iter(averaged.values()))
    assert list(found.moved_by_ties) == ["round"]
    assert found.moved_by_ties["round"] == pytest.approx(mean)
    (remark,) = [one for one in found.remarks if one.code == "ties"]
    assert remark.items == ["round"]
    assert found.to_dict()["remarks"][0]["code"] == "ties"
    for text in (remark.text, found.to_latex(), found.methods_text(), str(found)):
        assert f"{mean:.4f}" in text
    table = csv.DictReader(io.StringIO(truerank.significance.paper_table.paper_table({"AP": found}, "csv")))
    by_name = {row["ranker"]: row for row in table}
    assert float(by_name["round"]["tie_averaged"]) == pytest.approx(mean)
    assert by_name["exact"]["tie_averaged"] == by_name["exact"]["mean"]


def test_without_ties_nothing_is_said(collection):
    grades, qid, scores = collection
    found = truerank.compare(grades, {name: scores[name] for name in ("base", "exact")}, qid=qid, measures="AP")
    assert not found.moved_by_ties
    assert "ties" not in [one.code for one in found.remarks]
    assert "ties averaged" not in found.to_latex() + str(found)
    of_round = {name: scores[name] for name in ("base", "round")}
    by_average = truerank.compare(grades, of_round, qid=qid, measures='AP(ties="average")')
    assert "ties" not in [one.code for one in by_average.remarks]
