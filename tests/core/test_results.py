"""Every result has one face: a summary, remarks, and the same figures for people and for programs."""

from __future__ import annotations

import json

import numpy as np
import pytest

import truerank
from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.core.results import Result

RNG = np.random.default_rng(0)
Y, QID = RNG.integers(0, 3, 120), np.repeat(np.arange(12), 10)
DATA = truerank.RankingData(np.column_stack([Y + RNG.normal(size=120), RNG.normal(size=120)]), Y, QID)
SCORES = {"old": DATA.X[:, 1], "new": DATA.X[:, 0]}


def experiment(measures="nDCG@10"):
    return truerank.Experiment(DATA, SCORES, measures)


RESULTS = {
    "evaluation": lambda: experiment().evaluate()["new"],
    "evaluations": lambda: experiment("AP RR").evaluate(),
    "comparison": lambda: experiment().compare(margin=0.1),
    "comparisons": lambda: experiment("AP RR").compare(),
    "all pairs": lambda: truerank.Experiment(DATA, SCORES | {"none": Y * 0}).compare(pairs="all"),
    "power": lambda: experiment().power(0.05),
    "report": lambda: experiment("AP RR").evidence(),
    "values": lambda: truerank.Experiment.of_values({"a": RNG.random(9), "b": RNG.random(9)}).compare(),
    "cross-validation": lambda: truerank.cross_validate(truerank.RidgeRanker(), DATA, "AP", cv=3),
    "learners": lambda: truerank.cross_validate(
        {"a": truerank.RidgeRanker(), "b": truerank.RandomRanker()}, DATA, "AP", cv=3
    ).compare(about="learners"),
    "importance": lambda: truerank.permutation_importance(truerank.RidgeRanker().fit(DATA), DATA, random_state=0),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.filterwarnings("ignore:.*used for training")
def test_a_result_has_all_faces(name):
    found = RESULTS[name]()
    assert isinstance(found, Result)
    assert str(found).startswith(found.summary)
    assert "\n" not in found.summary
    told = found.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told  # JSON types alone
    assert (told["schema"].rpartition("/")[2], told["version"]) == ("1", truerank.__version__)
    assert isinstance(told["remarks"], list)
    assert "|" in found.to_markdown()
    assert r"\begin{tabular}" in found.to_latex()
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize("name", [name for name in RESULTS if name != "report"])
@pytest.mark.filterwarnings("ignore:.*used for training")
def test_a_result_is_a_frame(name):
    pytest.importorskip("pandas")
    assert len(RESULTS[name]().to_frame()) > 0


def test_the_table_of_a_paper_has_one_writer():
    found = experiment("AP RR").compare()
    text = found.to_latex()
    for part in (r"\toprule", r"\label{tab:ap-rr}", "convention ranklib", f"truerank {truerank.__version__}", "max-T"):
        assert part in text


def test_segments_divide_the_queries():
    segments = {query: "even" if query % 2 == 0 else "odd" for query in range(12)}
    whole = truerank.Experiment(DATA, SCORES, "AP", segments=segments)
    parts = whole.by_segment()
    assert {name: one.judgements.n_queries for name, one in parts.items()} == {"even": 6, "odd": 6}
    for name, one in parts.items():
        chosen = np.flatnonzero([segments[query] == name for query in DATA.query_ids.tolist()])
        np.testing.assert_array_equal(
            one.evaluate()["new"].per_query["AP"], whole.evaluate()["new"].per_query["AP"][chosen]
        )
        assert one.compare().pairs[0].queries == 6


def test_a_result_without_a_frame_says_so():
    with refused(InvalidInputError, code="no-frame"):
        RESULTS["report"]().to_frame()


def test_power_has_the_direction_of_the_comparison():
    made = experiment()
    found = made.power(0.05)
    (pair,) = made.compare().pairs
    assert found.of.systems == (pair.a, pair.b) == ("new", "old")
    assert found.of.observed == pytest.approx(pair.difference)
