"""Runs as `{query: [document, …]}`, as retrievers return them."""

from types import SimpleNamespace

import pandas
import pytest

import truerank
from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.io.trec import as_run

QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}


def mean(found):
    return found.to_dict()["measures"]["RR"]["mean"]


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_ranked_list_is_a_run_and_a_system(kind):
    ranked = {"q1": kind(["b", "a"]), "q2": kind(["c"])}
    scored = {"q1": {"b": 2.0, "a": 1.0}, "q2": {"c": 1.0}}
    assert mean(truerank.evaluate(QRELS, ranked, "RR")) == 0.75
    both = truerank.evaluate(QRELS, {"new": ranked, "old": scored}, "RR")
    assert [mean(both[name]) for name in ("new", "old")] == [0.75, 0.75]


def test_pairs_of_id_and_score_are_ordered_by_score():
    assert mean(truerank.evaluate(QRELS, {"q1": [("b", 0.1), ("a", 0.7)], "q2": [["c", 3]]}, "RR")) == 1.0


@pytest.mark.parametrize("first", [[], ["b"]])
def test_a_query_may_have_found_nothing(first):
    assert mean(truerank.evaluate(QRELS, {"q1": first, "q2": ["c"]}, "RR", topics="all")) == 0.5


@pytest.mark.parametrize("wrong", [["a", "b", "a"], ["a", None], [("a",), ("b", 1.0)], [("a", "high")]])
def test_a_list_that_is_no_ranking_is_refused_with_its_query(wrong):
    with pytest.raises(InvalidInputError, match="q1"):
        truerank.evaluate(QRELS, {"q1": wrong, "q2": ["c"]}, "RR")


def test_a_document_that_a_frame_or_a_list_of_rows_repeats_is_refused():
    """A later row would silently replace an earlier one. Documents of other queries may have the same id."""
    rows = [("q1", "a", 2.0), ("q2", "a", 1.0), ("q1", "b", 1.0)]
    for given in (rows, [*rows, ("q1", "a", 0.0)], [*rows, ("q1", "b", 1.0)]):
        frame = pandas.DataFrame(given, columns=["query_id", "doc_id", "score"])
        for table in (frame, [SimpleNamespace(**row) for row in frame.to_dict("records")]):
            if given is rows:
                assert as_run(table).n_rows == 3
            else:
                with refused(InvalidInputError, code="twice"):
                    as_run(table)
