"""Depth of reranking: against a plain definition, its rule against the validation's, and the command."""

import json

import numpy as np
import pytest
from validation.depth import chosen_depths

import truerank
from support.refusals import refused
from truerank import reranking_depth
from truerank.cli import main
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.experiments.depth import chosen_depth
from truerank.io.trec import as_run, write_run
from truerank.significance.intervals import verdict

RNG = np.random.default_rng(8)


def world(m=40, n=30, scored=20, gain=1.0, seed=0):
    rng = np.random.default_rng(seed)
    qrels, first, second = {}, {}, {}
    for q in map(str, range(m)):
        names = [f"d{k}" for k in range(n)]
        grades = (rng.random(n) < 0.2).astype(int)
        qrels[q] = dict(zip(names, grades.tolist()))
        own = grades + rng.normal(0, 1.0, n)
        first[q] = dict(zip(names, own.tolist()))
        best = sorted(names, key=lambda name: -first[q][name])[:scored]
        second[q] = {name: gain * qrels[q][name] + float(rng.normal(0, 0.5)) for name in best}
    return first, second, qrels


def plain(first, second, qrels, measure, depth):
    """The ranking by its definition, one query at a time."""
    runs = {}
    for q, own in first.items():
        order = sorted(own, key=lambda name: (-own[name], [-ord(c) for c in name]))
        head = [name for name in order[:depth] if name in second[q]]
        head.sort(key=lambda name: -second[q][name])
        rest = [name for name in order if name not in head]
        runs[q] = {name: -float(place) for place, name in enumerate(head + rest)}
    return truerank.evaluate(qrels, runs, measure).per_query[measure]


@pytest.mark.parametrize("measure", ["nDCG@10", "AP", "P@5"])
def test_values_by_depth_equal_the_definition(measure):
    first, second, qrels = world()
    second["3"] = dict(list(second["3"].items())[3:])  # gaps in the reranker's list
    found = reranking_depth(first, second, qrels, measure, depths=[3, 7, 20], margin=0.05)
    assert [line.depth for line in found.lines] == [0, 3, 7, 20]
    for column, depth in enumerate([0, 3, 7, 20]):
        expected = plain(first, second, qrels, measure, depth)
        assert found.values[:, column] == pytest.approx(expected, abs=1e-12)
        assert found.lines[column].mean == pytest.approx(expected.mean(), abs=1e-12)
    kinds = [verdict(found.values[:, k] - found.values[:, -1], 0.05, baseline=found.values[:, -1]).not_worse
             for k in range(3)]  # fmt: skip
    assert found.chosen == [0, 3, 7, 20][chosen_depth(kinds)]
    assert [line.not_worse for line in found.lines] == [line.depth >= found.chosen for line in found.lines]


@pytest.mark.parametrize("margin", [0.004, 0.02, 0.1])
def test_the_validation_has_the_same_rule(margin):
    first, second, qrels = world(m=300)
    values = reranking_depth(first, second, qrels, depths=[2, 5, 10, 20]).values
    drawn = np.array([RNG.permutation(300)[:60] for _ in range(40)])
    drawn[0] = drawn[0][0]  # equal differences
    expected = [
        chosen_depth([
            verdict(values[own, k] - values[own, -1], margin, baseline=values[own, -1]).not_worse for k in range(4)
        ]) for own in drawn
    ]  # fmt: skip
    assert chosen_depths(values, drawn, margin).tolist() == expected


def test_a_reranker_that_does_not_pay_is_a_result():
    first, second, qrels = world(gain=0.0, m=80)
    found = reranking_depth(first, second, qrels)
    assert not found.pays.better
    assert "pay" in found.summary or "worse" in found.summary
    equal = reranking_depth(first, first, qrels, margin=0.05)
    assert (equal.chosen, equal.pays.better) == (0, False)


def test_costs():
    first, second, qrels = world(m=200, n=12, scored=10)
    found = reranking_depth(first, second, qrels, depths=[5, 10], cost=2.0, fixed_cost=1.5)
    assert [line.cost for line in found.lines] == [0.0, 11.5, 21.5]
    found = reranking_depth(first, second, qrels, depths=[5, 10], cost={5: 0.3, 10: 0.4})
    assert [line.cost for line in found.lines] == [0.0, 0.3, 0.4]
    with pytest.raises(InvalidInputError) as caught:
        reranking_depth(first, second, qrels, depths=[5, 10], cost={5: 0.3})
    assert caught.value.argument == "cost"


@pytest.mark.parametrize(
    ("changed", "value"),
    [("depths", [50]), ("depths", [0]), ("margin", 0.0), ("margin", None), ("cost", -1.0), ("measure", "tau")],
)
def test_settings_that_cannot_be(changed, value):
    with pytest.raises(InvalidInputError):
        reranking_depth(*world(), **{changed: value})


def test_runs_that_do_not_belong_together():
    first, _, qrels = world()
    for pair in ((first, {q: {"x": 1.0} for q in first}), ({"other": {"a": 1.0}}, {"other": {"a": 1.0}})):
        with pytest.raises(InvalidInputError):
            reranking_depth(*pair, qrels)


def test_the_command(tmp_path, capsys):
    first, second, qrels = world(m=60)
    for name, run in (("first", first), ("second", second)):
        write_run(as_run(run, name), tmp_path / f"{name}.run")
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, own in qrels.items() for d, g in own.items()))
    words = [
        "depth",
        *(str(tmp_path / name) for name in ("first.run", "second.run")),
        "--qrels",
        str(tmp_path / "qrels"),
    ]
    assert main([*words, "--margin", "0.05", "--cost", "3"]) == 0
    shown = capsys.readouterr().out
    expected = reranking_depth(first, second, qrels, margin=0.05, cost=3.0)
    assert shown.startswith(expected.summary)
    assert main([*words, "--margin", "0.05", "--json", "--measured-costs", "5=1", "20=3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "depth/1"
    assert [line["depth"] for line in found["lines"]] == [0, 5, 20]
    assert main([*words, "--measured-costs", "five=1"]) == 2
    assert main([*words, "--measured-costs", "5=1", "--depths", "5"]) == 2
    capsys.readouterr()


def test_a_depth_below_one_that_fails_is_not_called_not_worse():
    """Depth 2 moves the relevant document to the second place, and the full depth moves it back."""
    qrels = {str(q): {"a": 1} for q in range(200)}
    first = {q: {"a": 3.0, "b": 2.0, "c": 1.0} if int(q) % 2 else {"b": 3.0, "c": 2.0, "a": 1.0} for q in qrels}
    second = {q: {"a": 1.0, "b": 2.0, "c": 0.0} if int(q) % 10 == 1 else {"a": 3.0, "b": 1.0, "c": 2.0} for q in qrels}
    found = reranking_depth(first, second, qrels, "RR", margin=0.32, depths=[1, 2])
    assert found.pays.better
    assert [line.mean for line in found.lines] == pytest.approx([2 / 3, 2 / 3, 0.6167, 0.95], abs=1e-3)
    assert found.chosen == found.full == 3
    assert [line.not_worse for line in found.lines] == [False, False, False, True]
    assert found.summary.endswith("At depth 2, a loss above 0.32 cannot be excluded.")


def test_reranking_that_pays_less_than_the_margin_is_not_advised():
    qrels = {str(q): {"a": 1} for q in range(400)}
    first = {q: {"a": 2.0, "b": 1.0} if int(q) % 20 else {"a": 1.0, "b": 2.0} for q in qrels}
    found = reranking_depth(first, {q: {"a": 1.0, "b": 0.0} for q in qrels}, qrels, "RR", margin=0.06)
    assert (found.chosen, found.pays.better) == (0, True)
    assert found.summary.startswith("Reranking pays by at most 0.06: RR is 1.0000 with reranking and 0.9750 without")


def skewed(m=500, seed=4):
    """Queries whose first stage is right where its best score is far above the next, and wrong elsewhere."""
    rng = np.random.default_rng(seed)
    sure = rng.random(m) < 0.5
    qrels = {str(q): {"a": 1} for q in range(m)}
    first = {str(q): {"a": 2.0, "b": 1.0, "c": 0.0} if one else {"a": 1.9, "b": 2.0, "c": 1.95}
             for q, one in enumerate(sure)}  # fmt: skip
    return first, {query: {"a": 1.0, "b": 0.0, "c": 0.0} for query in qrels}, qrels, sure


def test_queries_that_need_no_reranking_are_found_with_a_promise():
    first, second, qrels, sure = skewed()
    found = reranking_depth(first, second, qrels, "RR", depths=[2])
    assert found.gaps == pytest.approx(np.where(sure, 1.0, 0.05))
    cutoff = found.by_query(0.05, confidence=0.9)
    assert cutoff.answers(found.gaps).tolist() == sure.tolist()
    assert cutoff.answered_ == pytest.approx(sure.mean())
    by_name = found.by_query(0.05, score=sure.astype(float) + 3.0)
    assert by_name.answers([4.0, 3.0]).tolist() == [True, False]
    losses = np.maximum(found.values[:, 2] - found.values[:, 1], 0)
    assert found.by_query(0.9, depth=2).answered_ == (1.0 if losses.mean() < 0.5 else 0.0)


def test_a_promise_by_query_that_cannot_be_made_is_refused_or_told():
    first, second, qrels, _ = skewed(60)
    found = reranking_depth(first, second, qrels, "RR", depths=[2])
    with refused(InvalidInputError, code="too-few-queries"):
        found.by_query(0.01)
    with refused(InvalidInputError, argument="depth"):
        found.by_query(0.1, depth=7)
    swapped = reranking_depth(*skewed(200)[:3], "RR", depths=[2])
    with pytest.warns(TruerankWarning, match="no query will be answered"):
        assert not swapped.by_query(0.05, score=-swapped.gaps).answers([-1.0, 0.0]).any()


def test_queries_without_a_value_do_not_move_the_others():
    first, second, qrels, sure = skewed(80)
    qrels["3"] = {"z": 0}
    found = reranking_depth(first, second, qrels, "RR", depths=[2], convention="ranklib")
    assert len(found.query_ids) == len(found.gaps) == len(found.values)
    rows = [int(query) for query in found.query_ids]
    assert found.gaps == pytest.approx(np.where(sure, 1.0, 0.05)[rows])


def test_the_command_prints_the_promise(tmp_path, capsys):
    first, second, qrels, sure = skewed()
    for name, run in (("first", first), ("second", second)):
        write_run(as_run(run, name), tmp_path / f"{name}.run")
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, own in qrels.items() for d, g in own.items()))
    words = ["depth", str(tmp_path / "first.run"), str(tmp_path / "second.run"), "--qrels", str(tmp_path / "qrels"),
             "--measure", "RR", "--by-query", "0.05"]  # fmt: skip
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["by_query"]
    assert told["share"] == pytest.approx(sure.mean())
    assert main(words) == 0
    assert "By query: rerank 0 documents if" in capsys.readouterr().out
    assert main([*words[:-2], "--shallow", "2"]) == 2


def test_a_pool_reads_judgements_from_a_path(tmp_path):
    (tmp_path / "qrels").write_text("1 0 d1 1\n1 0 d2 0\n")
    runs = {"a": {"1": {"d1": 2.0, "d2": 1.0}}}
    named = truerank.RunPool(runs, {"1": {"d1": 1, "d2": 0}})
    assert truerank.RunPool(runs, tmp_path / "qrels").grades.tolist() == named.grades.tolist()
