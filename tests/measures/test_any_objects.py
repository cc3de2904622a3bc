"""evaluate and compare over whatever holds qrels and runs."""

from __future__ import annotations

import numpy as np
import pytest

import truerank.measures
from support.refusals import refused
from truerank import compare, evaluate, read_qrels, read_run, write_qrels, write_run
from truerank.core.errors import InvalidInputError
from truerank.io.trec import as_qrels, as_run

QRELS = {"1": {"a": 2, "b": 0, "c": 1}, "2": {"a": 1, "d": 0}}
RUN = {"1": {"a": 1.0, "b": 3.0, "c": 2.0}, "2": {"d": 2.0, "a": 1.5}}
OTHER = {"1": {"a": 3.0, "c": 2.0}, "2": {"a": 2.0, "d": 1.5}}
MEASURES = ["AP", "nDCG@10"]


@pytest.fixture
def files(tmp_path):
    write_qrels(as_qrels(QRELS), tmp_path / "qrels.txt")
    for name, lists in (("mine", RUN), ("other", OTHER)):
        run = as_run(lists, name)
        write_run(run, tmp_path / f"{name}.run", tag=name)
    return tmp_path


def frame_of(lists, names, module):
    rows = [(query, document, value) for query, inside in lists.items() for document, value in inside.items()]
    columns = dict(zip(names, zip(*rows)))
    return module.DataFrame({name: list(values) for name, values in columns.items()})


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_whole_floats_name_what_integers_name(library):
    """A column of ids with gaps was made floats, and its documents counted as not judged."""
    module = pytest.importorskip(library)
    make = getattr(module, "DataFrame", None) or module.table
    run = make({"qid": [1.0, 1.0], "docid": [7.0, 8.0], "score": [1, 2]})
    assert evaluate({1: {7: 1, 8: 0}}, run, "AP")["AP"] == 0.5
    assert as_run({1.0: {7.0: 1.0, 7.5: 2.0}}).to_dict() == {"1": {"7": 1.0, "7.5": 2.0}}


def test_paths_objects_dicts_and_frames_agree(files):
    expected = evaluate(QRELS, RUN, MEASURES)
    assert expected["AP"] == pytest.approx(np.mean([(1 / 2 + 2 / 3) / 2, 1 / 2]))
    given = [
        (str(files / "qrels.txt"), files / "mine.run"),
        (read_qrels(files / "qrels.txt"), read_run(files / "mine.run")),
    ]
    for library in ("pandas", "polars"):
        module = pytest.importorskip(library)
        given.append(
            (
                frame_of(QRELS, ("query_id", "doc_id", "relevance"), module),
                frame_of(RUN, ("qid", "docno", "score"), module),
            )
        )
    for qrels, run in given:
        result = evaluate(qrels, run, MEASURES)
        assert dict(result) == dict(expected)
        assert result.convention == "trec"


def test_objects_of_ir_measures_and_ranx(files):
    ir_measures = pytest.importorskip("ir_measures")
    expected = evaluate(QRELS, RUN, MEASURES)
    qrels = list(ir_measures.read_trec_qrels(str(files / "qrels.txt")))
    run = list(ir_measures.read_trec_run(str(files / "mine.run")))
    assert dict(evaluate(qrels, run, MEASURES)) == dict(expected)
    assert list(evaluate(qrels, run, [ir_measures.AP, ir_measures.nDCG @ 10]).values()) == list(expected.values())


def test_several_runs_at_once(files):
    pandas = pytest.importorskip("pandas")
    results = evaluate(files / "qrels.txt", [files / "mine.run", files / "other.run"], MEASURES)
    assert list(results) == ["mine", "other"]
    frame = results.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc["other", "AP"] == 1.0
    assert results.to_frame(per_query=True).loc[("mine", "2"), "AP"] == 0.5
    assert results.to_markdown().splitlines()[0] == "| run | AP | nDCG@10 |"
    assert r"other & 1.0000 & 1.0000 \\" in results.to_latex()
    assert str(results).splitlines()[-1].split() == ["other", "1.0000", "1.0000"]
    assert list(evaluate(QRELS, {"x": RUN, "y": read_run(files / "other.run")}, "AP")) == ["x", "y"]
    one = evaluate(QRELS, RUN, "AP")
    assert one.to_frame().shape == (1, 1)
    assert one.to_frame(per_query=True).index.tolist() == ["1", "2"]
    assert one.to_markdown().splitlines()[2] == f"| {one['AP']:.4f} |"


def test_runs_are_compared_by_name(files):
    paths = [files / "mine.run", files / "other.run"]
    result = compare(files / "qrels.txt", paths, "AP")
    assert (result.pairs[0].a, result.pairs[0].wins, result.convention) == ("other", 2, "trec")
    lacking = compare(QRELS, {"whole": RUN, "half": {"1": OTHER["1"]}}, "AP", topics="all")
    assert (lacking.pairs[0].wins, lacking.pairs[0].losses) == (1, 1)


def test_what_is_no_run_is_explained():
    pandas = pytest.importorskip("pandas")
    with refused(InvalidInputError, code="columns"):
        evaluate(pandas.DataFrame({"a": [1]}), RUN, "AP")
    twice = pandas.DataFrame({"qid": ["1", "1"], "docno": ["a", "a"], "score": [1.0, 2.0]})
    with refused(InvalidInputError, code="twice"):
        evaluate(QRELS, twice, "AP")
    with refused(InvalidInputError, argument="qrels"):
        evaluate(QRELS, RUN, "AP", qid=[1, 2])


def test_truerank_provides_what_gdeval_prints():
    ir_measures = pytest.importorskip("ir_measures")
    from truerank.measures.ir_measures_provider import provider

    ours = provider("gdeval")
    assert ir_measures.providers.registry["truerank-gdeval"] is ours
    qrels = {"1": {"a": 0, "b": 2, "c": 1}}
    run = {"1": {"a": 3.0, "c": 2.0, "b": 1.0}}
    found = ours.calc_aggregate([ir_measures.nDCG @ 2, ir_measures.ERR @ 2], qrels, run)
    gained, ideal = 1 / np.log2(3), 3 + 1 / np.log2(3)
    assert found[ir_measures.nDCG @ 2] == round(gained / ideal, 5)
    assert found[ir_measures.ERR @ 2] == round(1 / 16 / 2, 5)
    assert ours.supports(ir_measures.nDCG(dcg="exp-log2") @ 5)
    # What gdeval computes when it is asked for nDCG@5 is not what that name says, so it is not offered under it.
    for other in (ir_measures.nDCG, ir_measures.nDCG @ 5, ir_measures.nDCG(judged_only=True) @ 5, ir_measures.AP @ 5):
        assert not ours.supports(other)


def test_truerank_provides_the_measures_of_ir_measures():
    ir_measures = pytest.importorskip("ir_measures")
    from truerank.measures.ir_measures_provider import provider

    ours = provider()
    assert ir_measures.providers.registry["truerank"] is ours
    measures = [ir_measures.AP, ir_measures.nDCG @ 10, ir_measures.RR, ir_measures.P @ 2, ir_measures.Judged @ 2]
    assert not ours.supports(ir_measures.alpha_nDCG @ 10)
    # The docstring's example, which no doctest runs where ir_measures is missing.
    assert ours.calc_aggregate([ir_measures.RR], {"1": {"a": 1, "b": 0}}, {"1": {"b": 2.0, "a": 1.0}}) == {
        ir_measures.RR: 0.5
    }
    pytest.importorskip("pytrec_eval")
    theirs = ir_measures.calc_aggregate(measures, QRELS, RUN)
    for measure, value in ours.calc_aggregate(measures, QRELS, RUN).items():
        assert value == pytest.approx(theirs[measure], abs=1e-9)
    half = {"1": RUN["1"]}
    assert ours.calc_aggregate(measures, QRELS, half) == pytest.approx(
        ir_measures.calc_aggregate(measures, QRELS, half)
    )


def test_topics_without_an_accuracy_are_left_out_as_there():
    ir_measures = pytest.importorskip("ir_measures")
    from truerank.measures.ir_measures_provider import provider

    qrels = {"1": {"a": 1, "b": 0}, "2": {"c": 1, "d": 0}, "3": {"e": 0}, "4": {"f": 1}}
    run = {"1": {"b": 2.0, "a": 1.0, "z": 0.5}, "2": {"d": 1.0}, "3": {"e": 1.0}}
    measures = [ir_measures.Accuracy(), ir_measures.P @ 1]
    for lists in (run, {}):
        found = sorted(provider().iter_calc(measures, qrels, lists), key=str)
        theirs = ir_measures.accuracy.iter_calc(measures[:1], qrels, lists)
        zeros = [ir_measures.Metric(topic, measures[1], 0.0) for topic in qrels]
        assert found == sorted([*theirs, *zeros], key=str)


def test_set_recall_of_the_first_documents_is_recall():
    result = evaluate(QRELS, OTHER, "SetR@2 R@2 SetR R@9")
    assert result["SetR@2"] == result["R@2"]
    assert result["SetR"] == result["R@9"]
    assert evaluate(QRELS, OTHER, "SetR@1")["SetR@1"] == 0.75


def test_judgements_come_first():
    qrels, run = {"q": {"d": 1}}, {"q": {"d": 0.5}}
    for measures in ("AP nDCG@10", truerank.measures.AP):
        with refused(InvalidInputError, code="order"):
            evaluate(measures, qrels, run)


def test_arguments_by_name(files):
    expected = evaluate(QRELS, RUN, MEASURES)
    assert evaluate(measures=MEASURES, judgements=QRELS, systems=RUN) == expected
    assert evaluate(QRELS, files / "mine.run", MEASURES) == expected
    assert list(evaluate(QRELS, {"one": RUN, "two": OTHER}, "AP")) == ["one", "two"]


def test_runs_are_compared_by_several_measures():
    both = compare(QRELS, {"mine": RUN, "other": OTHER}, "AP nDCG@10")
    assert list(both) == MEASURES
    for name, one in both.items():
        alone = compare(QRELS, {"mine": RUN, "other": OTHER}, name)
        assert one.means == alone.means
        assert [pair.p for pair in one.pairs] == [pair.p for pair in alone.pairs]
        assert (one.n_comparisons, alone.n_comparisons) == (2, 1)  # corrected over both measures
        assert list(compare(QRELS, {"mine": RUN, "other": OTHER}, [name])) == [name]
    lines = [line for line in str(both).splitlines() if "other against" in line]
    assert lines[0].split()[:4] == ["AP", "other", "against", "mine"]
    assert lines[1].split()[0] == "nDCG@10"
    assert "p corrected by max-T and Holm, 4 : 1, for 2 comparisons" in str(both)
    assert both.to_markdown().count("other against mine") == 2
    assert "other" in both["AP"].to_latex()


def test_f1_of_the_first_documents_is_that_of_their_precision_and_recall():
    for k in (1, 2, 3):
        p, r, f = (evaluate(QRELS, RUN, f"{name}@{k}").per_query[f"{name}@{k}"] for name in ("SetP", "SetR", "f1"))
        np.testing.assert_allclose(f, 2 * p * r / np.where(p + r > 0, p + r, 1.0))
