"""A learned fusion's weights in the engines' forms, and their rules against ours."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reference import fusion as reference
from support.made_up_runs import planted
from support.refusals import refused
from truerank import RunFusion, RunPool, fuse, read_run, save_model
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.export.fusion_weights import ENGINES, certify_fusion, configured_scores, engine_scores, export_fusion
from truerank.features.engine_norms import TECHNIQUES
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


EVERY = [(engine, technique) for engine, techniques in TECHNIQUES.items() for technique in techniques]


def random_runs(seed):
    """Lists of one document, of equal scores, of zeros, and of scores of very different size."""
    rng, runs = np.random.default_rng(seed), {}
    for name in ("sparse", "dense"):
        runs[name] = {}
        for topic in range(8):
            chosen = rng.permutation(30)[: [1, 2, 2, 20, 20, 7, 12, 25][topic]]
            scale = rng.choice([0.01, 1.0, 300.0])
            values = [0.7] * 2 if topic == 1 else [0.0] * 2 if topic == 2 else rng.normal(5, 2, len(chosen)) * scale
            runs[name][f"t{topic}"] = dict(zip((f"d{k}" for k in chosen), map(float, values)))
    return runs


@pytest.mark.parametrize(("engine", "technique"), EVERY)
@pytest.mark.parametrize("seed", range(4))
def test_normalisations_equal_the_documented_formulas(engine, technique, seed):
    runs, k, weights = random_runs(seed), 1 + 29 * seed, [0.3, 0.7]
    text = f"engine-scores(engine={engine}, technique={technique}, k={k})"
    fused = fuse(runs, text, depth=None, weights=weights).to_dict()
    for topic, own in fused.items():
        expected = {}
        for weight, run in zip(weights, runs.values()):
            for name, value in reference.engine_normalised(run[topic], engine, technique, k).items():
                expected[name] = expected.get(name, 0.0) + weight * value
        assert own == pytest.approx(expected, rel=2e-5, abs=1e-6)


@pytest.mark.parametrize(("engine", "technique"), EVERY)
def test_learned_weights_are_served_as_they_are(runs_and_qrels, engine, technique):
    """The written configuration, computed by the engine's rule, gives the model's scores, also where lists are odd."""
    runs, qrels = runs_and_qrels
    model = RunFusion(nonnegative=True, features=f"engine-scores(engine={engine}, technique={technique}, k=7)")
    model.fit(runs, qrels)
    odd = dict(zip(model.run_names_, random_runs(5).values()))
    for given, largest in ((runs, 1e-6), (odd, 1e-3)):  # scores of up to 3,000
        certificate = certify_fusion(model, engine, given)
        assert certificate["largest_difference"] < largest
        assert certificate["topics_equal"] == certificate["topics"]
    text = export_fusion(model, engine)
    changed = configured_scores(text.replace(repr(model.run_weights()["run0"]), "0.0"), engine, RunPool(odd))
    assert engine == "weaviate" or not np.allclose(changed, engine_scores(model, engine, RunPool(odd)))
    other = "vespa" if engine != "vespa" else "opensearch"
    with refused(InvalidInputError, argument="engine"):
        export_fusion(model, other)


def test_exports_of_ranks(runs_and_qrels):
    form = "engine-scores(engine={}, technique=rrf, k=12)"
    ranks = {
        engine: RunFusion(nonnegative=True, features=form.format(engine))
        for engine in ("opensearch", "elasticsearch", "vespa")
    }
    weights = {engine: list(model.fit(*runs_and_qrels).run_weights().values()) for engine, model in ranks.items()}
    (processor,) = json.loads(export_fusion(ranks["opensearch"], "opensearch"))["phase_results_processors"]
    own = {"technique": "rrf", "rank_constant": 12, "parameters": {"weights": weights["opensearch"]}}
    assert processor == {"score-ranker-processor": {"combination": own}}
    rrf = json.loads(export_fusion(ranks["elasticsearch"], "elasticsearch"))["retriever"]["rrf"]
    assert rrf["rank_constant"] == 12
    assert [one["weight"] for one in rrf["retrievers"]] == weights["elasticsearch"]
    assert "reciprocal_rank(run_1, 12)" in export_fusion(ranks["vespa"], "vespa")


@pytest.mark.parametrize(
    "text",
    ["engine-scores(engine=solr)", "engine-scores(technique=softmax)", "engine-scores(k=0)", "score-bins",
     "engine-scores(engine=vespa, technique=l2)", "engine-scores(technique=rrf, k=1.5)"],
)  # fmt: skip
def test_features_that_no_engine_has_are_refused(text):
    with pytest.raises(InvalidInputError):
        fuse(random_runs(0), text)


def test_the_command_adds_up_a_feature(tmp_path, capsys):
    runs = random_runs(1)
    for name, run in runs.items():
        write_run(as_run(run, name), tmp_path / f"{name}.run")
    words = ["fuse", *(str(tmp_path / f"{name}.run") for name in runs), "-o", str(tmp_path / "out.run")]
    text = "engine-scores(engine=elasticsearch, technique=l2)"
    assert main([*words, "--sum", text, "--weights", "0.3", "0.7"]) == 0
    assert read_run(tmp_path / "out.run").to_dict() == fuse(runs, text, weights=[0.3, 0.7]).to_dict()
    assert main([*words, "--sum", text, "--method", "rrf"]) == 2
    assert main([*words, "--method", "rrf", "--weights", "1", "2"]) == 2
    assert main([*words, "--sum", text, "--weights", "1"]) == 1
    assert main([*words, "--sum", "min-max + score"]) == 2
    capsys.readouterr()


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
