"""Nugget recall of answers: by hand, nuggetizer where it is installed, files and errors."""

from __future__ import annotations

import json

import numpy as np
import pytest

from support.refusals import refused
from truerank import Experiment, nugget_scores
from truerank.core.errors import DataFileError, InvalidInputError

WORDS = ("support", "partial_support", "not_support")


def drawn(seed, topics=8):
    """Records of one system with none to nine nuggets a topic."""
    rng = np.random.default_rng(seed)
    return [
        {"qid": f"q{k}", "query": "?", "nuggets": [
            {"text": "a fact", "importance": str(rng.choice(["vital", "okay"])), "assignment": str(rng.choice(WORDS))}
            for _ in range(rng.integers(0, 10))
        ]} for k in range(topics)
    ]  # fmt: skip


def test_values_of_a_small_example_by_hand():
    kinds = [("vital", "support"), ("vital", "partial_support"), ("vital", "not_support"), ("okay", "support")]
    nuggets = [{"importance": one, "assignment": other} for one, other in kinds]
    found = nugget_scores([{"qid": 1, "nuggets": nuggets}, {"qid": 2, "nuggets": nuggets[3:]}])
    assert {name: own.tolist() for name, own in found.per_query.items()} == {
        "vital": [0.5, 0.0], "all": [2.5 / 4, 1.0], "strict_vital": [1 / 3, 0.0], "strict_all": [0.5, 1.0],
    }  # fmt: skip
    assert found.query_ids == ["1", "2"]
    assert found.means["all"] == pytest.approx(0.8125)


def test_values_equal_those_of_nuggetizer():
    metrics = pytest.importorskip("nuggetizer.core.metrics")
    for seed in range(1000):
        records = drawn(seed)
        found, theirs = nugget_scores(records), metrics.calculate_global_metrics(records)
        for name, values in found.per_query.items():
            each = [
                getattr(metrics.calculate_nugget_scores(one["qid"], one["nuggets"]), f"{name}_score") for one in records
            ]
            assert values.tolist() == pytest.approx(each, abs=1e-12)
            assert found.means[name] == pytest.approx(theirs[f"{name}_score"], abs=1e-12)


def test_a_file_has_the_same_values_and_systems_are_compared(tmp_path):
    for seed in range(2):
        text = "".join(json.dumps(one) + "\n" for one in drawn(seed, 40))
        (tmp_path / f"{seed}.jsonl").write_text(text)
    found = {str(seed): nugget_scores(tmp_path / f"{seed}.jsonl") for seed in range(2)}
    assert found["1"].means == nugget_scores(drawn(1, 40)).means
    values = {name: one.per_query["vital"] for name, one in found.items()}
    compared = Experiment.of_values(values, measure="vital").compare()
    assert compared.means["0"] == pytest.approx(found["0"].means["vital"])


@pytest.mark.parametrize("wrong", [{"importance": "high", "assignment": "support"}, {"importance": "vital"},
                                   {"importance": "okay", "assignment": "maybe"}, 3])  # fmt: skip
def test_other_words_are_refused_by_line(tmp_path, wrong):
    records = [*drawn(0, 2), {"qid": "q9", "nuggets": [wrong]}]
    with refused(InvalidInputError, code="nuggets"):
        nugget_scores(records)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    with refused(DataFileError, code="nuggets", line=3):
        nugget_scores(tmp_path / "a.jsonl")


def test_no_answer_and_two_answers_to_a_topic_are_refused():
    for records in ([], [*drawn(0, 1), *drawn(1, 1)]):
        with refused(InvalidInputError, argument="answers"):
            nugget_scores(records)
