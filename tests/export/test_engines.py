"""Putting a model into an engine: what is asked of it, what is never overwritten, what errors say."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from support.refusals import refused
from truerank import (
    CalibratedRanker,
    ObliviousBoosting,
    RankBoost,
    RankerPipeline,
    RankingData,
    RidgeRanker,
    save_model,
)
from truerank.cli import main
from truerank.core.errors import EngineError, InvalidInputError
from truerank.export.deployment import deploy
from truerank.export.form import form_of
from truerank.export.run import run_painless
from truerank.export.verification import log_features, verify
from truerank.io.engine import Engine

NAMES = ["a", "b"]
DOCUMENTS = np.round(np.random.default_rng(0).normal(size=(12, 2)), 2) ** 2
QUERIES = {
    "base": {"match": {"text": "{{query}}"}},
    "features": {name: {"match": {name: "{{query}}"}} for name in NAMES},
}


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(200, 2)), 2) ** 2
    data = RankingData(X, (X[:, 0] > 1).astype(int), np.repeat(np.arange(10), 20), feature_names=NAMES)
    return {
        "linear": RidgeRanker().fit(data),
        "trees": ObliviousBoosting(leaves="constant", n_estimators=5, depth=2).fit(data),
    } | {
        f"pooled {name}": CalibratedRanker(ranker, cv=2, random_state=0).fit(data)
        for name, ranker in {
            "linear": RidgeRanker(), "stumps": RankBoost(10),
            "with a scaling": RankerPipeline("unit-deviation", RidgeRanker()),
            "polynomial": ObliviousBoosting(leaves="polynomial", n_estimators=3, depth=2),
            "fuzzy": ObliviousBoosting(leaves="fuzzy", n_estimators=3, depth=2),
        }.items()
    }  # fmt: skip


class FakeEngine(BaseHTTPRequestHandler):
    """Stores scripts and models, logs features, and rescores by the parameters of a Painless script."""

    broken = False

    def _answer(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if status in (301, 302):
            self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()
        self.wfile.write(data)

    def _handle(self):
        store, log = self.server.store, self.server.log
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        log.append((self.command, self.path, body, self.headers.get("Authorization")))
        path = self.path.split("?")[0]
        if path == "/moved":
            return self._answer({}, 302)
        if path == "/denied":
            return self._answer({"error": "no"}, 403)
        if path.endswith("/_search"):
            return self._answer(self._search(body))
        if path.startswith("/_ltr/_featureset/") and self.command == "GET":
            features = [{"name": name} for name in NAMES]
            return self._answer({"_source": {"featureset": {"features": features}}})
        if path.startswith("/_ltr/_model/") and self.command == "GET":
            there = {"found": path in store, "_source": store.get(path)}
            return self._answer(there, 200 if path in store else 404)
        if path.endswith("/_createmodel"):
            if self.server.broken:
                return self._answer({"error": "no such model"}, 400)
            path = f"/_ltr/_model/{body['model']['name']}"
        if path.endswith("model-store"):
            if self.command == "GET":
                return self._answer({"models": [own for own in store.values() if "class" in own]})
            if not self.server.broken:
                store[body["name"]] = body
            return self._answer({"responseHeader": {"status": 0}})
        if self.command == "GET":
            return self._answer({"found": path in store} | store.get(path, {}), 200 if path in store else 404)
        if self.command == "DELETE":
            store.pop(path, None)
        else:
            store[path] = body
        return self._answer({"acknowledged": True, "result": "created"})

    def _search(self, body):
        hits = [{"fields": {"id": [str(i)]}, "_score": 1.0} for i in range(len(DOCUMENTS))]
        for hit, row in zip(hits, DOCUMENTS):
            if not self.server.old:
                hit["matched_queries"] = {name: v for name, v in zip(NAMES, row) if v}
            else:
                hit["matched_queries"] = [name for name, v in zip(NAMES, row) if v]
        if "rescore" in body:
            script = body["rescore"]["query"]["rescore_query"]["script_score"]["script"]
            rows = np.array([script["params"]["table"][str(i)] for i in range(len(hits))])
            script = script | self.server.store[f"/_scripts/{script['id']}"]["script"] | {"params": script["params"]}
            score = run_painless(json.dumps({"script": script}))
            scores = score(rows) + script["params"]["shift"] - (rows[:, 0] if self.server.broken else 0)
            for hit, value in zip(hits, scores):
                hit["_score"] = float(np.float32(value))
            hits.sort(key=lambda hit: -hit["_score"])
        return {"took": 3, "hits": {"hits": hits}}

    do_GET = do_PUT = do_POST = do_DELETE = _handle

    def log_message(self, *args):
        pass


@pytest.fixture
def engine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where models that are replaced are kept
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeEngine)
    server.store, server.log, server.form, server.broken, server.old = {}, [], None, False, False
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_nothing_is_overwritten_without_replace(engine, models):
    first = deploy(models["linear"], engine.url, "m")
    assert first["kind"] == "painless"
    assert first["params"]["names"] == NAMES
    assert deploy(models["linear"], engine.url, "m")["replaced"] is False  # the same source: nothing to do
    with refused(InvalidInputError, argument="name", code="exists"):
        deploy(models["trees"], engine.url, "m")
    assert [method for method, *_ in engine.log].count("PUT") == 1
    assert deploy(models["trees"], engine.url, "m", replace=True)["replaced"] is True
    assert all(method != "DELETE" for method, *_ in engine.log)


@pytest.mark.parametrize("name", ["", "..", "-m", "modèle", "a/b", "m\n"])
def test_a_name_that_no_address_can_hold_is_refused(engine, models, name):
    asked = len(engine.log)
    with refused(InvalidInputError, argument="name"):
        deploy(models["linear"], engine.url, name, replace=True)
    assert len(engine.log) == asked


def test_solr_and_the_ltr_plugin(engine, models):
    assert deploy(models["trees"], f"{engine.url}/solr/films", "m")["kind"] == "solr"
    assert engine.store["m"]["class"].endswith("MultipleAdditiveTreesModel")
    with refused(InvalidInputError, argument="name", code="exists"):
        deploy(models["trees"], f"{engine.url}/solr/films", "m")
    with refused(InvalidInputError, argument="feature_set"):
        deploy(models["trees"], engine.url, "m", kind="ltr")
    deploy(models["linear"], engine.url, "m", kind="ltr", feature_set="films")
    stored = dict(engine.store)
    assert stored["/_ltr/_model/m"]["model"]["model"]["type"] == "model/linear"
    engine.broken = True
    with refused(EngineError, code="engine-refused"):
        deploy(models["trees"], engine.url, "m", kind="ltr", feature_set="films", replace=True)
    assert engine.store == stored  # what was there is put back
    assert [method for method, *_ in engine.log][-4:] == ["DELETE", "POST", "PUT", "GET"]
    (kept,) = Path().glob("m.*.json")
    assert json.loads(kept.read_text()) == engine.log[-2][2]  # the body that puts it there
    with refused(EngineError, code="not-confirmed"):
        deploy(models["linear"], f"{engine.url}/solr/films", "m", replace=True)
    assert engine.store == stored
    engine.store.clear()
    with refused(EngineError, code="not-confirmed"):
        deploy(models["linear"], f"{engine.url}/solr/films", "m")


def test_verify_needs_the_scores_of_named_queries(engine, models):
    engine.old = True
    with refused(EngineError, code="old-engine"):
        verify(models["linear"], engine.url, "m", "films", QUERIES, ["one"])


@pytest.mark.parametrize("name", ["linear", "trees", "pooled linear", "pooled polynomial", "pooled with a scaling"])
def test_verify_compares_with_the_model(engine, models, name):
    engine.form = form_of(models[name])
    deploy(models[name], engine.url, "m")
    own = verify(models[name], engine.url, "m", "films", QUERIES, ["one", "two"])
    assert (own.queries, own.orders_equal, own.documents) == (2, 2, 24)
    assert own.largest_difference < 1e-6
    engine.broken = True
    assert verify(models[name], engine.url, "m", "films", QUERIES, ["one"]).orders_equal == 0
    with refused(InvalidInputError, argument="queries"):
        verify(models[name], engine.url, "m", "films", {"features": {}}, ["one"])


def test_credentials_limits_and_redirects(engine, monkeypatch):
    monkeypatch.setenv("TRUERANK_ENGINE_USER", "me")
    monkeypatch.setenv("TRUERANK_ENGINE_PASSWORD", "secret")
    client = Engine(engine.url, timeout=60)
    client.request("GET", "_scripts/x", missing_ok=True)
    assert engine.log[-1][3].startswith("Basic ")
    with refused(EngineError, code="engine-refused"):
        client.request("GET", "moved")
    with refused(EngineError, code="engine-refused") as caught:
        client.request("GET", "denied")
    assert "secret" not in str(caught.value)
    with refused(InvalidInputError, argument="url"):
        Engine("http://me:secret@127.0.0.1:1")
    with refused(InvalidInputError, argument="url"):
        Engine("file:///etc/passwd")
    with refused(EngineError, code="no-answer"):
        Engine("http://127.0.0.1:9", timeout=1).request("GET", "")


def test_commands(engine, models, tmp_path, capsys):
    save_model(models["trees"], tmp_path / "model.json")
    engine.form = form_of(models["trees"])
    line = [str(tmp_path / "model.json"), "--engine", engine.url, "--name", "m"]
    assert main(["deploy", *line, "--params", str(tmp_path / "params.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "painless"
    assert json.loads((tmp_path / "params.json").read_text())["trees"] == 5
    (tmp_path / "queries.jsonl").write_text('{"id": "1", "text": "one"}\n{"id": "2", "text": "two"}\n')
    (tmp_path / "requests.json").write_text(json.dumps(QUERIES))
    more = ["--index", "films", "--queries", str(tmp_path / "queries.jsonl"), "--requests"]
    more.append(str(tmp_path / "requests.json"))
    assert main(["deploy", "--verify-only", *line, *more, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["orders_equal"] == 2
    assert main(["deploy", *line, "--replace", "--verify", *more, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["orders_equal"] == 2
    assert main(["deploy", *line, *more]) == 2
    assert "requires --verify" in capsys.readouterr().err
    engine.broken = True
    assert main(["deploy", "--verify-only", *line, *more]) == 1
    assert "0 of 2 queries" in capsys.readouterr().err


@pytest.mark.skipif("TRUERANK_OPENSEARCH" not in os.environ, reason="TRUERANK_OPENSEARCH names no live engine")
def test_a_live_engine(models):
    url = os.environ["TRUERANK_OPENSEARCH"]
    client, index = Engine(url), "truerank-test"
    fields = {"id": {"type": "keyword"}, "text": {"type": "text"}, "a": {"type": "text"}, "b": {"type": "text"}}
    client.request("PUT", index, {"mappings": {"properties": fields}})
    try:
        rng = np.random.default_rng(0)
        for number in range(30):
            words = [" ".join(rng.choice(["one", "two", "three"], 6)) for _ in NAMES]
            body = {"id": str(number), "text": "one two", "a": words[0], "b": words[1]}
            client.request("PUT", f"{index}/_doc/{number}", body)
        client.request("POST", f"{index}/_refresh")
        assert log_features(client, index, QUERIES, NAMES, "one", 20, "id")[1].shape == (20, 2)
        for number, model in enumerate(models.values()):
            deploy(model, url, f"{index}-{number}", replace=True)
            own = verify(model, url, f"{index}-{number}", index, QUERIES, ["one", "two three"], window=20)
            assert own.orders_equal == own.queries
            assert own.largest_difference < 1e-6
            client.request("DELETE", f"_scripts/{index}-{number}")
    finally:
        client.request("DELETE", index)
