"""`deploy` and `verify` with Solr 8.11.4 over HTTP, where Maven can fetch it; a test that is skipped says why."""

import json
import re
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

from support.refusals import refused
from truerank import (
    CalibratedRanker,
    ObliviousBoosting,
    RankBoost,
    RankingData,
    RidgeRanker,
    read_letor,
    read_table,
    save_model,
)
from truerank.cli import main
from truerank.core.errors import EngineError, InvalidInputError
from truerank.export.deployment import deploy
from truerank.export.verification import logged_by_solr, verify
from truerank.io.engine import Engine
from truerank.io.feature_sets import read_feature_set

WORDS = ["wing", "flow", "heat", "shock", "layer", "jet", "plate", "drag"]
FEATURES = {"text": "{!dismax qf=text mm=1}${query}", "title": "{!dismax qf=title mm=1}${query}", "length": None}
REQUESTS = {
    "base": {"q": "{!edismax qf='title text' mm=1 v=$words}", "words": "{{query}}"},
    "efi": {"query": "{{query}}"},
}
TEXTS = ["wing flow", "heat", "shock layer jet"]


@pytest.fixture(scope="module")
def solr(tmp_path_factory):
    folder = tmp_path_factory.mktemp("solr")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        from benchmarks.export.bench_formats import JAVA, JavaPrograms
        from benchmarks.export.solr_in_process import make_home

        java = JavaPrograms(folder, ("solr",))
        if java.missing:
            pytest.skip("left out: " + "; ".join(java.missing))
        make_home(folder / "home")
    path, source = java.paths["solr"], JAVA / "SolrServer.java"
    subprocess.run(["javac", "-cp", path, "-d", folder / "solr", source], check=True, capture_output=True, timeout=300)
    command = ["java", "-Xmx512m", "-cp", path, "SolrServer", folder / "home", "300"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as server:
        limit = threading.Timer(120, server.kill)
        limit.start()
        port = next((found[1] for line in server.stdout if (found := re.match(r"port (\d+)", line))), None)
        limit.cancel()
        assert port is not None
        yield f"http://127.0.0.1:{port}/solr/documents"
        server.stdin.close()
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()


def made_up_documents():
    rng = np.random.default_rng(0)
    return [
        {"id": str(k), "title": " ".join(rng.choice(WORDS, 3)), "text": " ".join(rng.choice(WORDS, 5 + k % 20))}
        for k in range(60)
    ]


@pytest.fixture(scope="module")
def collection(solr):
    """Sixty documents, three features in the feature store, and rows as Solr logs them to train on."""
    client = Engine(solr)
    client.request("POST", "update?commit=true", made_up_documents())
    place = "org.apache.solr.ltr.feature."
    store = [
        {"name": name, "class": place + "SolrFeature", "params": {"q": query}}
        if query
        else {"name": name, "class": place + "FieldLengthFeature", "params": {"field": "text"}}
        for name, query in FEATURES.items()
    ]
    client.request("PUT", "schema/feature-store", store)
    rows = [logged_by_solr(client, REQUESTS, list(FEATURES), text, 100, "id")[1] for text in ("wing", "jet plate")]
    X = np.concatenate(rows)
    y = (X[:, 0] > np.median(X[:, 0])).astype(int) + (X[:, 2] < np.median(X[:, 2]))
    return RankingData(X, y, np.repeat([0, 1], [len(own) for own in rows]), feature_names=list(FEATURES))


@pytest.mark.parametrize(
    "model",
    [
        RidgeRanker(), RankBoost(30), ObliviousBoosting(leaves="constant", n_estimators=20, depth=3),
        CalibratedRanker(ObliviousBoosting(leaves="constant", n_estimators=5, depth=2), "platt", cv=2),
    ],
    ids=["linear", "stumps", "trees", "calibrated"],
)  # fmt: skip
def test_the_order_is_the_models_own(solr, collection, model, request):
    name = f"m-{request.node.callspec.id}"
    model.fit(collection)
    done = {"kind": "solr", "name": name, "url": solr, "times": 1.0, "replaced": False, "previous": None}
    assert deploy(model, solr, name) == done
    own = verify(model, solr, name, None, REQUESTS, TEXTS, window=60)
    assert (own.queries, own.orders_equal) == (3, 3)
    assert own.documents > 60
    assert own.largest_difference < 4e-6 * max(1.0, np.abs(model.predict(collection)).max())


def test_features_of_judged_pairs_are_those_of_solr(solr, collection, tmp_path):
    documents = made_up_documents()
    (tmp_path / "queries.jsonl").write_text('{"id": "1", "text": "jet plate"}\n{"id": "2", "text": "it\'s a wing"}\n')
    judged = [f"{query} 0 {document['id']} {k % 3}\n" for query in "12" for k, document in enumerate(documents)]
    (tmp_path / "qrels").write_text("".join([*judged, "2 0 gone 1\n"]))
    line = ["features", "--engine", solr, "--feature-set", "_DEFAULT_", "-o", str(tmp_path / "out.txt")]
    assert main([*line, "--queries", str(tmp_path / "queries.jsonl"), "--qrels", str(tmp_path / "qrels")]) == 0
    data = read_letor(tmp_path / "out.txt")
    assert (data.n_rows, data.n_queries) == (120, 2)
    assert data.doc_ids is not None
    lengths = {document["id"]: len(document["text"].split()) for document in documents}
    assert data.X[:, 2].tolist() == [lengths[name] for name in data.doc_ids.tolist()]
    for number, (query, words) in enumerate((("jet plate", {"jet", "plate"}), ("it's a wing", {"wing"}))):
        rows = slice(int(data.offsets[number]), int(data.offsets[number + 1]))
        for name, row in zip(data.doc_ids[rows].tolist(), data.X[rows]):
            for k, field in enumerate(("text", "title")):
                assert (row[k] > 0) == bool(words & set(documents[int(name)][field].split())), (query, name, field)
        found, logged = logged_by_solr(Engine(solr), REQUESTS, list(FEATURES), query, 100, "id")
        values = dict(zip(data.doc_ids[rows].tolist(), data.X[rows].tolist()))
        assert [values[name] for name in found] == logged.tolist()


def test_features_made_of_the_schema_serve_a_model(solr, collection, tmp_path, monkeypatch, capsys):
    """From no features to a verified model, with the same definitions in training and in Solr."""
    monkeypatch.chdir(tmp_path)
    line = ["features", "--engine", solr, "-o"]
    assert main([*line, "made.json", "--feature-set", "made"]) == 0
    made = read_feature_set("made.json")
    assert made.names[0] == "base"
    assert {"text", "text_phrase", "title", "title_phrase"} <= set(made.names)
    rows = [f"{text},{k},{int(text.split()[0] in own['title'])}" for text in TEXTS
            for k, own in enumerate(made_up_documents())]  # fmt: skip
    Path("book.csv").write_text("\n".join(["query,docid,rating", *rows]) + "\n")
    collect = [*line, "rows.csv", "--features", "made.json", "--qrels", "book.csv"]
    assert main(collect) == 1
    assert "--put" in capsys.readouterr().err
    assert main([*collect, "--put"]) == 0
    data = read_table("rows.csv", document="docid")
    assert data.feature_names == made.names
    assert (data.n_rows, data.n_queries) == (180, 3)
    save_model(ObliviousBoosting(leaves="constant", n_estimators=10, depth=3).fit(data), "model.json")
    words = ["deploy", "model.json", "--engine", solr, "--name", "made-1", "--features", "made.json", "--verify"]
    assert main([*words, "--queries", "book.csv", "--window", "60", "--json"]) == 0
    own = json.loads(capsys.readouterr().out)
    assert (own["orders_equal"], own["queries"]) == (3, 3)


def test_nothing_is_overwritten_and_refusals_are_solrs_own_words(solr, collection, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where models that are replaced are kept
    linear, trees = RidgeRanker().fit(collection), RankBoost(5).fit(collection)
    deploy(linear, solr, "taken")
    with refused(InvalidInputError, argument="name", code="exists"):
        deploy(trees, solr, "taken")
    assert verify(linear, solr, "taken", None, REQUESTS, TEXTS).orders_equal == 3
    assert deploy(trees, solr, "taken", replace=True)["replaced"] is True
    assert verify(trees, solr, "taken", None, REQUESTS, TEXTS).orders_equal == 3
    with refused(EngineError, code="engine-refused"):
        deploy(linear, solr, "other", feature_names=["text", "title", "nowhere"])
    with refused(EngineError, code="no-feature"):
        verify(linear, solr, "taken", None, REQUESTS, TEXTS, feature_names=["text", "title", "nowhere"])
    with refused(EngineError, code="engine-refused"):
        verify(linear, solr, "never put there", None, REQUESTS, TEXTS)
    with refused(EngineError, code="engine-refused"):
        deploy(linear, solr.replace("documents", "elsewhere"), "m")


def test_the_commands(solr, collection, tmp_path, capsys):
    model = ObliviousBoosting(leaves="constant", n_estimators=5, depth=2).fit(collection)
    save_model(model, tmp_path / "model.json")
    line = [str(tmp_path / "model.json"), "--engine", solr, "--name", "by-command", "--json"]
    assert main(["deploy", *line]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "solr"
    lines = [json.dumps({"id": number, "text": text}) for number, text in enumerate(TEXTS)]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines))
    (tmp_path / "requests.json").write_text(json.dumps(REQUESTS))
    more = ["--queries", str(tmp_path / "queries.jsonl"), "--requests", str(tmp_path / "requests.json")]
    assert main(["deploy", "--verify-only", *line, *more]) == 0
    assert json.loads(capsys.readouterr().out)["orders_equal"] == 3
    assert main(["deploy", *line]) != 0
    assert "already has 'by-command'" in capsys.readouterr().err
