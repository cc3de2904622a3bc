"""Pool bias: against loops that leave each group's own documents out, files of groups, the command."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reference.pools import without_group
from support.refusals import refused
from truerank import compare, evaluate, pool_bias
from truerank.cli import main
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.io.trec import as_qrels, as_run, write_qrels, write_run


@pytest.fixture(scope="module")
def collection():
    rng = np.random.default_rng(0)
    topics = [f"{t}" for t in range(6)]
    qrels = {t: {f"d{d}": int(rng.integers(0, 3)) for d in range(25)} for t in topics}
    runs = {
        name: {t: {f"d{d}": float(rng.random()) for d in rng.permutation(40)[:15]} for t in topics[: 6 - (name == "c")]}
        for name in "abcde"
    }
    return qrels, runs, {"a": "X", "b": "X", "c": "Y", "d": "Z", "e": "Z"}


@pytest.mark.parametrize("measure", ["AP", "nDCG@5", "P@3"])
@pytest.mark.parametrize("depth", [1, 4, 100])
def test_losses_are_those_of_judgements_without_each_group(collection, measure, depth):
    qrels, runs, groups = collection
    found = pool_bias(qrels, runs, groups, measure, depth=depth)
    whole = evaluate(qrels, runs, measure, convention="trec", topics="all")
    assert [one.worst.loss.estimate for one in found.groups] == sorted(
        (one.worst.loss.estimate for one in found.groups), reverse=True
    )
    for group in found.groups:
        left = without_group(qrels, runs, groups, group.group, depth)
        assert group.unique == sum(len(qrels[t]) - len(left[t]) for t in qrels)
        assert group.relevant == sum(qrels[t][d] > 0 for t in qrels for d in set(qrels[t]) - set(left[t]))
        reduced = evaluate(left, runs, measure, convention="trec", topics="all")
        for run in group.runs:
            assert run.value == pytest.approx(whole[run.run][measure])
            assert run.reduced == pytest.approx(reduced[run.run][measure])
            assert run.loss.estimate == pytest.approx(run.value - run.reduced)
            others = [own[measure] for name, own in whole.items() if name != run.run]
            assert run.reduced_rank == 1 + sum(other > run.reduced for other in others)


def test_a_topic_whose_judgements_all_go_counts_zero():
    qrels, runs = {"1": {"x": 1}, "2": {"y": 1}}, {"a": {"1": {"x": 1.0}, "2": {"y": 1.0}}, "b": {"2": {"y": 1.0}}}
    found = {one.group: one.worst for one in pool_bias(qrels, runs, {"a": "A", "b": "B"}).groups}
    assert (found["A"].value, found["A"].reduced, found["A"].rank, found["A"].reduced_rank) == (1.0, 0.5, 1, 1)
    assert (found["B"].value, found["B"].loss.estimate) == (0.5, 0.0)


def test_groups_must_be_known(collection, tmp_path):
    qrels, runs, groups = collection
    with refused(InvalidInputError, argument="groups"):
        pool_bias(qrels, runs, {name: group for name, group in groups.items() if name != "e"})
    with refused(InvalidInputError, argument="groups"):
        pool_bias(qrels, runs, dict.fromkeys(runs, "X"))
    (tmp_path / "g.csv").write_text("name,group\na,X\n")
    with refused(DataFileError, code="columns"):
        pool_bias(qrels, runs, tmp_path / "g.csv")


def test_the_command_prints_the_same(collection, tmp_path, capsys):
    qrels, runs, groups = collection
    write_qrels(as_qrels(qrels), tmp_path / "q")
    for name, own in runs.items():
        write_run(as_run(own, name), tmp_path / f"{name}.run")
    (tmp_path / "g.csv").write_text("run,group\n" + "".join(f"{name},{group}\n" for name, group in groups.items()))
    files = [str(tmp_path / f"{name}.run") for name in runs]
    command = ["judge", "pool", *files, "--qrels", str(tmp_path / "q"), "--groups", str(tmp_path / "g.csv")]
    assert main([*command, "--depth", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == pool_bias(qrels, runs, groups, depth=4).to_dict()
    options_first = [*command[:2], *command[7:], *files]
    assert main(options_first) == 0
    assert "only here" in capsys.readouterr().out
    assert main(command[:-2]) == 2


def test_a_comparison_says_which_system_did_not_feed_the_pool():
    qrels = {f"{t}": {"a": 1, "b": 0, "c": 0} for t in range(12)}
    fed = {t: {"a": 3.0, "b": 2.0, "c": 1.0} for t in qrels}
    new = {t: {"x": 3.0, "a": 2.0, "y": 1.0} for t in qrels}
    (remark,) = compare(qrels, {"fed": fed, "new": new}, "P@3").remarks
    assert remark.code == "unjudged-documents"
    assert "new probably did not contribute to the pool" in remark.text
    both = compare(qrels, {"new": new, "other": {t: {"z": 3.0, "a": 2.0, "w": 1.0} for t in qrels}}, "P@3")
    assert not any("contribute to the pool" in remark.text for remark in both.remarks)


def test_no_loss_is_no_worst_run():
    qrels = {t: {"x": 1, "y": 1, "z": 0} for t in "123"}
    own = {t: {"x": 2.0, "y": 1.0} for t in "123"}
    assert pool_bias(qrels, {"a": own, "b": own}, {"a": "A", "b": "B"}).summary.startswith("No run loses")
