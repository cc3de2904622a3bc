"""Each rule at the border of an experiment changes figures, remarks or verdicts: without it, a test here fails."""

from __future__ import annotations

import pytest

import truerank
from support.refusals import refused
from truerank import Experiment, load_sample
from truerank.core.errors import InvalidInputError, TruerankError
from truerank.rankers.baselines import RidgeRanker

TOPICS = [str(k) for k in range(12)]
QRELS = {q: {"good": 1, "bad": 0} for q in TOPICS}
RIGHT = {q: {"good": 2.0, "bad": 1.0} for q in TOPICS}
TURNED = {q: {"good": 1.0, "bad": 2.0} for q in TOPICS}
THIRD = {q: ({"good": 2.0, "bad": 1.0} if int(q) % 2 else {"good": 1.0, "bad": 2.0}) for q in TOPICS}
RUNS = {"right": RIGHT, "turned": TURNED, "third": THIRD}


def codes(result) -> list[str]:
    return [one.code for one in result.remarks]


@pytest.mark.parametrize("baseline", [None, *RUNS])
def test_the_baseline_is_the_one_that_was_named(baseline):
    experiment = Experiment(QRELS, RUNS, "RR", baseline=baseline)
    compared = experiment.compare()
    expected = baseline or "right"
    assert compared.baseline == experiment.baseline == expected
    assert {pair.b for pair in compared.pairs} == {expected}
    means = {name: one["RR"] for name, one in experiment.evaluate().items()}
    assert {p.a: p.difference for p in compared.pairs} == pytest.approx(
        {name: means[name] - means[expected] for name in RUNS if name != expected}
    )
    assert experiment.evidence().systems[0] == expected


def test_a_stated_order_turns_scores():
    y, qid = [1, 0] * 6, [k // 2 for k in range(12)]
    ranks, points = [1.5, 2.5] * 6, [2.5, 1.5] * 6
    for name, scores in (("a:ascending", ranks), ("a:descending", points)):
        found = Experiment(y, {name: scores, "b": points}, "RR", qid=qid).evaluate()
        assert found[name]["RR"] == found["b"]["RR"] == 1.0
    assert Experiment(y, {"a:descending": ranks, "b": points}, "RR", qid=qid).evaluate()["a:descending"]["RR"] == 0.5


def test_no_verdict_where_unjudged_documents_can_reverse_it():
    some = {q: {"good": 5.0, **{f"u{k}": 4.0 - k for k in range(3)}} for q in TOPICS}
    other = {q: {f"v{k}": 4.0 - k for k in range(4)} for q in TOPICS}
    compared = truerank.compare(QRELS, {"other": other, "some": some}, "P@4", test="sign")
    assert compared.pairs[0].difference == 0.25
    assert compared.pairs[0].p_adjusted < 0.05
    assert compared.summary.startswith("No verdict")
    assert "unjudged-documents" in codes(compared)
    judged = {q: dict.fromkeys([*some[q], *other[q]], 0) | QRELS[q] for q in TOPICS}
    compared = truerank.compare(judged, {"other": other, "some": some}, "P@4", test="sign")
    assert compared.summary.startswith("some is better than other")


def test_ranks_that_contradict_scores_are_a_remark(tmp_path):
    lines = [
        f"{q} Q0 {name} {rank} {score} tag" for q in TOPICS for name, rank, score in (("good", 1, 1), ("bad", 2, 2))
    ]
    (tmp_path / "turned.run").write_text("\n".join(lines) + "\n")
    found = truerank.evaluate(QRELS, str(tmp_path / "turned.run"), "RR")
    assert "contradicting-ranks" in codes(found)
    assert codes(truerank.evaluate(QRELS, TURNED, "RR")) == [
        "contradicting-ranks"
    ]  # 1, 2 in the order of the documents
    assert codes(truerank.evaluate(QRELS, RIGHT, "RR")) == []


def test_topics_are_settled_and_missing_ones_count_zero():
    half = {q: RIGHT[q] for q in TOPICS[:6]}
    with refused(InvalidInputError, argument="topics", code="different-topics"):
        Experiment(QRELS, {"right": RIGHT, "half": half}, "RR")
    both = {
        topics: Experiment(QRELS, {"right": RIGHT, "half": half}, "RR", topics=topics) for topics in ("common", "all")
    }
    means = {topics: one.evaluate()["half"]["RR"] for topics, one in both.items()}
    assert means == {"common": 1.0, "all": 0.5}
    assert both["common"].evaluate()["right"].n_queries == 6
    assert both["all"].evaluate()["right"].n_queries == 12
    assert all("missing-topics" in codes(one) for one in both.values())
    alone = Experiment(QRELS, half, "RR")
    assert (alone.coverage.used, alone.coverage.qrels) == (6, 12)
    assert "missing-topics" in codes(alone)
    with refused(InvalidInputError, code="no-shared-topic"):
        Experiment(QRELS, {"right": RIGHT, "none": {"x": {"good": 1.0}}}, "RR", topics="all")
    with refused(InvalidInputError, code="no-common-topic"):
        Experiment(QRELS, {"half": half, "rest": {q: RIGHT[q] for q in TOPICS[6:]}}, "RR", topics="common")


def test_grades_that_the_convention_reads_otherwise_are_a_remark(tmp_path):
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 good 0.5\n{q} 0 bad 2\n" for q in TOPICS))
    found = Experiment(str(tmp_path / "qrels.txt"), RIGHT, "RR")
    assert codes(found) == ["fractional-grade"]
    assert found.remarks[0].source == str(tmp_path / "qrels.txt")


def test_kept_training_queries_forbid_a_verdict_and_others_are_left_out():
    data = load_sample().take_queries(range(40))
    ranker = RidgeRanker().fit(data.take_queries(range(10)))
    systems = {"bm25": "bm25", "ridge": ranker}
    kept = Experiment(data, systems, "AP", training_queries="keep")
    assert "training-queries-kept" in codes(kept)
    assert kept.compare().summary.startswith("No verdict")
    assert kept.evaluate()["ridge"].n_queries == 40
    left = Experiment(data, systems, "AP")
    assert codes(left) == ["training-queries-left-out"]
    assert not left.compare().summary.startswith("No verdict")
    assert left.evaluate()["bm25"].n_queries == 30
    with refused(InvalidInputError, code="training-queries"):
        Experiment(data, systems, "AP", training_queries="refuse")


def test_ids_that_a_spreadsheet_has_rounded_are_a_remark():
    found = truerank.evaluate({"1": {"1.23457E+12": 1, "1e5": 0}}, {"1": {"1234570000000": 1.0}}, "RR")
    told = {one.code: one.count for one in found.remarks}
    assert told == {"no-judged-document": 1, "rounded-ids": 1}


@pytest.mark.parametrize(
    ("text", "mean"), [("1\ta\t1\n1\tgood\t2\n2\tgood\t1\n", 0.75), ("1\ta\t1\n1\tgood\t3\n", None)]
)
def test_runs_of_ms_marco_need_no_line_of_names(tmp_path, text, mean):
    (tmp_path / "run.tsv").write_text(text)
    if mean is None:  # 1 and 3 are no ranks
        with pytest.raises(TruerankError):
            truerank.evaluate(QRELS, tmp_path / "run.tsv", "RR")
    else:
        assert truerank.evaluate(QRELS, tmp_path / "run.tsv", "RR").to_dict()["measures"]["RR"]["mean"] == mean


def test_a_key_that_json_has_twice_is_refused(tmp_path):
    (tmp_path / "qrels.json").write_text('{"1": {"a": 1}, "2": {"a": 1}, "1": {"b": 1}}')
    with pytest.raises(TruerankError, match="'1' twice"):
        truerank.evaluate(tmp_path / "qrels.json", RIGHT, "RR")
