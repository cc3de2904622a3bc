"""Features from engines: what is asked, what is read, retries, resuming. The engine is a small server on loopback."""

from __future__ import annotations

import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from support.refusals import refused
from truerank.cli import main
from truerank.core.errors import DataFileError, EngineError, InvalidInputError
from truerank.io.documents import Document, read_judgements
from truerank.io.engine import Engine
from truerank.io.engine_features import engine_features, read_spec
from truerank.io.letor.read import read_letor

QUERIES = [Document("1", {"text": 'heat "flow"'}, {}, {}), Document("2", {"text": "wing"}, {}, {})]
QRELS = b"1 0 a 2\n1 0 b 0\n1 0 c -1\n2 0 a 1\n2 0 gone 1\n"


class Server:
    """Answers like an engine; `fail` is how many requests get 503 first."""

    def __init__(self, answer):
        self.requests, self.fail, self.answer = [], 0, answer
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append((self.path, body, self.headers.get("Authorization")))
                if server.fail > 0:
                    server.fail -= 1
                    self.send_response(503)
                    self.end_headers()
                    return
                code, content = server.answer(self.path, body)
                self.send_response(code)
                if code == 302:
                    self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()
                self.wfile.write(json.dumps(content).encode())

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def serve():
    servers = []

    def start(answer):
        servers.append(Server(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def opensearch(path, body):
    hits = []
    for name in body["query"]["bool"]["filter"][0]["ids"]["values"]:
        if name != "gone":
            scores = {
                q["bool"]["_name"]: float(ord(name) - 96 + k) for k, q in enumerate(body["query"]["bool"]["should"])
            }
            if name == "b":
                scores.pop("phrase")
            hits.append({"_id": name, "matched_queries": scores})
    return 200, {"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": hits}}


SPEC = {
    "kind": "named-queries",
    "index": "articles",
    "batch": 2,
    "features": {"title": {"match": {"title": "{{query}}"}}, "phrase": {"match_phrase": {"text": "so {{text}}!"}}},
}


def test_named_queries_become_columns(serve, monkeypatch):
    monkeypatch.setenv("TRUERANK_ENGINE_USER", "me")
    monkeypatch.setenv("TRUERANK_ENGINE_PASSWORD", "p@ss")
    server = serve(opensearch)
    engine = Engine(server.url)
    data, missing = engine_features(engine, SPEC, QUERIES, read_judgements(io.BytesIO(QRELS)))
    assert missing == 1
    assert data.feature_names == ["title", "phrase"]
    assert data.X.tolist() == [[1, 2], [2, 0], [3, 4], [1, 2]]
    assert data.y.tolist() == [2, 0, 0, 1]
    assert data.doc_ids.tolist() == ["a", "b", "c", "a"]
    path, body, authorization = server.requests[0]
    assert path == "/articles/_search?include_named_queries_score=true"
    should = body["query"]["bool"]["should"]
    assert should[0] == {"bool": {"must": [{"match": {"title": 'heat "flow"'}}], "_name": "title"}}
    assert should[1]["bool"]["must"][0]["match_phrase"]["text"] == 'so heat "flow"!'
    assert authorization == "Basic bWU6cEBzcw=="
    assert len(server.requests) == 3


def test_the_log_of_the_plugins(serve):
    def answer(path, body):
        assert body["query"]["bool"]["filter"][0]["sltr"]["params"] == {"keywords": "wing"}
        log = [{"name": "f1", "value": 1.5}, {"name": "f2"}]
        return 200, {"hits": {"hits": [{"_id": "a", "fields": {"_ltrlog": [{"log": log}]}}]}}

    spec = {"kind": "ltr-log", "index": "i", "featureset": "s", "params": {"keywords": "{{query}}"}, "batch": 9}
    spec["features"] = ["f1", "f2"]
    qrels = read_judgements(io.BytesIO(b"2 0 a 1\n"))
    assert engine_features(Engine(serve(answer).url), spec, QUERIES, qrels)[0].X.tolist() == [[1.5, 0.0]]
    with refused(EngineError, code="no-feature"):
        engine_features(Engine(serve(answer).url), spec | {"features": ["f1", "f3"]}, QUERIES, qrels)


def test_features_of_solr(serve):
    def answer(path, body):
        assert path == "/solr/c/select?wt=json"
        assert body["params"]["fl"] == "id,features:[features format=dense store=s efi.text='heat \"flow\"']"
        assert body["params"]["fq"].endswith("a\tb\tc")
        docs = [{"id": "a", "features": "f1=0.5,f2=2"}, {"id": "b", "features": "f1=0.0,f2=0.0"}]
        return 200, {"response": {"docs": docs}}

    spec = {"kind": "solr", "index": "c", "store": "s", "efi": {"text": "{{query}}"}, "features": ["f1", "f2"]}
    qrels = read_judgements(io.BytesIO(b"1 0 a 1\n1 0 b 0\n1 0 c 0\n"))
    data, missing = engine_features(Engine(serve(answer).url + "/solr"), spec | {"batch": 9}, QUERIES, qrels)
    assert (data.X.tolist(), missing) == ([[0.5, 2.0], [0.0, 0.0]], 1)


def test_busy_engines_are_asked_again_and_refusals_are_told(serve):
    server = serve(opensearch)
    engine = Engine(server.url, retries=2)
    engine.wait = 0.001
    server.fail = 2
    qrels = read_judgements(io.BytesIO(QRELS))
    assert engine_features(engine, SPEC, QUERIES, qrels)[0].n_rows == 4
    server.fail = 3
    with refused(EngineError, code="no-answer"):
        engine_features(engine, SPEC, QUERIES, qrels)
    for code, message in ((400, "status 400"), (302, "status 302")):
        with pytest.raises(EngineError, match=message):
            engine_features(Engine(serve(lambda path, body, c=code: (c, {})).url), SPEC, QUERIES, qrels)
    with refused(EngineError, code="engine-refused"):
        engine_features(Engine(serve(lambda path, body: (200, {"hits": []})).url), SPEC, QUERIES, qrels)
    old = {"hits": {"hits": [{"_id": "a", "matched_queries": ["title"]}]}}
    with refused(EngineError, code="old-engine"):
        engine_features(Engine(serve(lambda path, body: (200, old)).url), SPEC, QUERIES, qrels)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "q.jsonl").write_text("\n".join(json.dumps({"id": q.id, **q.text}) for q in QUERIES))
    (tmp_path / "qrels").write_bytes(QRELS)
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    return tmp_path


def test_a_command_that_stopped_goes_on_where_it_was(serve, files, capsys):
    server = serve(opensearch)
    good = server.answer
    server.answer = lambda path, body: good(path, body) if len(server.requests) < 3 else (400, {})
    out = files / "out.txt"
    words = ["text", "features", "--engine", server.url, "--spec", str(files / "spec.json"), "-o", str(out)]
    words += ["--queries", str(files / "q.jsonl"), "--qrels", str(files / "qrels")]
    assert main(words) == 1
    assert not out.exists()
    partial = files / "out.txt.partial"
    kept = partial.read_bytes()
    partial.write_bytes(kept + b'{"a": [1.0')  # as a kill leaves it
    server.answer = good
    assert main(words) == 0
    assert len(server.requests) == 4
    assert not partial.exists()
    assert read_letor(out).X.tolist() == [[1, 2], [2, 0], [3, 4], [1, 2]]
    err = capsys.readouterr().err
    assert "2 of 3 requests were answered before" in err
    assert "the engine lacks 1 of the judged documents" in err
    partial.write_bytes(kept)
    (files / "spec.json").write_text(json.dumps(SPEC | {"index": "other"}))
    assert main(words) == 1
    assert "the file is for other requests" in capsys.readouterr().err


def test_specifications_are_checked(files):
    def spec(content, name="spec.json"):
        (files / name).write_text(content)
        return read_spec(files / name)

    with refused(DataFileError, code="unknown-key"):
        spec('{"indexes": "x"}')
    with refused(DataFileError, code="lost-key"):
        spec('{"index": "x", "features": []}')
    with refused(DataFileError, code="lost-key"):
        spec('{"kind": "ltr-log", "index": "x", "features": ["f"]}')
    with refused(DataFileError, code="batch"):
        spec('{"index": "x", "features": {"a": {}}, "batch": 0}')
    pytest.importorskip("yaml")
    assert spec("index: x\nfeatures:\n  a: {match: {t: '{{query}}'}}\n", "s.yaml")["batch"] == 200
    with refused(DataFileError, code="not-yaml"):
        spec("{", "s.yaml")
    bad = SPEC | {"features": {"a": {"match": {"t": "x {{nothing}}"}}}}
    with refused(InvalidInputError, code="unknown-field"):
        engine_features(Engine("http://127.0.0.1:1"), bad, QUERIES, read_judgements(io.BytesIO(QRELS)))
    with refused(InvalidInputError, argument="url"):
        Engine("localhost:9200")
