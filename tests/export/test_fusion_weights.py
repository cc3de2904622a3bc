"""A learned fusion's weights in the engines' forms, and their rules against ours."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reference import fusion as reference
from support.made_up_runs import planted
from support.refusals import refused
from truerank import RunFusion, RunPool, save_model
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.export.fusion_weights import ENGINES, certify_fusion, engine_scores, export_fusion
from truerank.io.trec import as_run, write_run


@pytest.fixture(scope="module")
def runs_and_qrels():
    return planted(0, n_topics=12, quality=(2.0, 1.0))


@pytest.fixture(scope="module")
def model(runs_and_qrels):
    return RunFusion(nonnegative=True).fit(*runs_and_qrels)


def test_weights_stand_where_the_engines_look_for_them(model):
    weights = list(model.run_weights().values())
    assert sum(weights) == pytest.approx(1.0)
    pipeline = json.loads(export_fusion(model, "opensearch"))
    processor = pipeline["phase_results_processors"][0]["normalization-processor"]
    assert processor["normalization"] == {"technique": "min_max"}
    assert processor["combination"] == {"technique": "arithmetic_mean", "parameters": {"weights": weights}}
    knn = {"knn": {"field": "vector", "query_vector": [0.1], "k": 10}}
    linear = json.loads(export_fusion(model, "elasticsearch", queries={"run1": knn}))["retriever"]["linear"]
    assert [one["weight"] for one in linear["retrievers"]] == weights
    assert linear["retrievers"][1]["retriever"] == knn
    assert {one["normalizer"] for one in linear["retrievers"]} == {"minmax"}
    profile = export_fusion(model, "vespa", queries={"run0": "bm25(text)"}, window=77)
    assert f"{weights[0]!r} * normalize_linear(run_1)" in profile
    assert "expression: bm25(text)" in profile
    assert "rerank-count: 77" in profile
    assert profile.count("{") == profile.count("}")
    assert json.loads(export_fusion(model, "weaviate"))["hybrid"]["alpha"] == weights[1]


def test_vespa_takes_reciprocal_ranks_and_bool_queries_raw_scores(runs_and_qrels):
    ranks = RunFusion(nonnegative=True, features="reciprocal-rank(k=10)").fit(*runs_and_qrels)
    assert "reciprocal_rank(run_2, 10)" in export_fusion(ranks, "vespa")
    ranks.set_params(features="reciprocal-rank(k=60.1234567)")
    assert "reciprocal_rank(run_2, 60.1234567)" in export_fusion(ranks, "vespa")
    assert certify_fusion(ranks, "vespa", runs_and_qrels[0])["topics_equal"] == 12
    raw = RunFusion(nonnegative=True, features="score").fit(*runs_and_qrels)
    query = json.loads(export_fusion(raw, "bool-query"))["query"]["bool"]["should"]
    assert [clause["bool"]["boost"] for clause in query] == list(raw.run_weights().values())
    assert certify_fusion(raw, "bool-query", runs_and_qrels[0])["topics_equal"] == 12


@pytest.mark.parametrize("engine", ["opensearch", "elasticsearch", "weaviate", "vespa"])
def test_rules_by_hand(model, engine):
    runs = {
        "run0": {"many": {"a": 9.0, "b": 5.0, "c": 1.0}, "one": {"d": 3.0}, "tied": {"e": 2.0, "f": 2.0}},
        "run1": {"many": {"c": 4.0, "x": 2.0}, "one": {"d": 0.5}, "tied": {"e": 8.0, "g": 7.0}},
    }
    pool = RunPool(runs)
    found = engine_scores(model, engine, pool)
    weights = model.run_weights()
    for i, topic in enumerate(pool.query_ids.tolist()):
        for row in range(pool.offsets[i], pool.offsets[i + 1]):
            expected = 0.0
            for name, run in runs.items():
                documents, document = run[topic], pool.doc_ids[row]
                if document not in documents:
                    continue
                value = reference.min_max(documents)[document]
                equal = len(set(documents.values())) == 1
                if engine == "opensearch":
                    value = 1.0 if equal else value or 0.001
                elif engine == "elasticsearch" and equal:
                    value = documents[document]
                expected += weights[name] * value
            assert found[row] == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_certificates_count_what_differs(model, runs_and_qrels):
    for engine in ("elasticsearch", "weaviate", "vespa"):
        certificate = certify_fusion(model, engine, runs_and_qrels[0], depth=20)
        assert certificate["topics_equal"] == certificate["topics"] == 12
        assert certificate["rank_agreement"] == 1.0
        assert certificate["largest_difference"] < 1e-6
    lowest = certify_fusion(model, "opensearch", runs_and_qrels[0])
    assert 1e-4 < lowest["largest_difference"] <= 0.0011  # .001 in place of 0 at the foot of a list
    assert certify_fusion(model, "opensearch", runs_and_qrels[0], depth=10)["rank_agreement"] == 1.0
    # A list of one score: OpenSearch counts it 1, we 0.
    odd = {"run0": {"q": {"a": 5.0}}, "run1": {"q": {"b": 2.0, "c": 1.0}}}
    expected = 0 if model.run_weights()["run0"] > model.run_weights()["run1"] else 1
    assert certify_fusion(model, "opensearch", odd)["topics_equal"] == expected


def test_what_an_engine_does_not_compute_is_refused(runs_and_qrels, model):
    percentiles = RunFusion(nonnegative=True, features="percentile").fit(*runs_and_qrels)
    for engine in ENGINES:
        with refused(InvalidInputError, argument="model"):
            export_fusion(percentiles, engine)
    with refused(InvalidInputError, code="negative-weights"):
        export_fusion(RunFusion(features="min-max").fit(*runs_and_qrels), "opensearch")
    with refused(InvalidInputError, argument="engine"):
        export_fusion(model, "solr")
    with refused(InvalidInputError, argument="queries"):
        export_fusion(model, "vespa", queries={"bm26": "x"})
    three = RunFusion(nonnegative=True).fit(*planted(1, n_topics=6))
    with refused(InvalidInputError, code="two-runs"):
        export_fusion(three, "weaviate")


def test_the_command_writes_weights_and_certificate(tmp_path, runs_and_qrels, model, capsys):
    names = []
    for name, documents in runs_and_qrels[0].items():
        run = as_run(documents, name)
        write_run(run, tmp_path / f"{name}.run")
        names.append(str(tmp_path / f"{name}.run"))
    save_model(model, tmp_path / "m.json")
    command = ["fuse", "--model", str(tmp_path / "m.json"), "--runs", *names, "--export", "opensearch"]
    assert main([*command, "-o", str(tmp_path / "pipeline.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["topics"] == 12
    written = json.loads((tmp_path / "pipeline.json").read_text())
    assert written == json.loads(export_fusion(model, "opensearch"))
    assert main(command) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == written
    assert "of 12 topics in our order" in captured.err
    assert main(["fuse", "--runs", *names, "--method", "rrf", "--export", "vespa"]) == 2
    assert np.isfinite(engine_scores(model, "opensearch", RunPool(runs_and_qrels[0]))).all()
