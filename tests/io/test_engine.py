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
from truerank.io.engine_features import engine_features
from truerank.io.feature_sets import agreed, feature_set, made_of_index, read_feature_set, stored_set
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
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
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

            do_GET = do_PUT = do_POST

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
    if path.startswith("/_ltr"):
        return 404, {}
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
OWN = {"index": "articles", "features": SPEC["features"] | {"phrase": {"match_phrase": {"text": "so {{query}}!"}}}}


def test_named_queries_become_columns(serve, monkeypatch):
    monkeypatch.setenv("TRUERANK_ENGINE_USER", "me")
    monkeypatch.setenv("TRUERANK_ENGINE_PASSWORD", "p@ss")
    server = serve(opensearch)
    engine = Engine(server.url)
    data, missing, unasked = engine_features(engine, SPEC, QUERIES, read_judgements(io.BytesIO(QRELS + b"3 0 a 1\n")))
    assert (missing, unasked) == ([("2", "gone")], ["3"])
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
    data, missing, _ = engine_features(Engine(serve(answer).url + "/solr"), spec | {"batch": 9}, QUERIES, qrels)
    assert (data.X.tolist(), missing) == ([[0.5, 2.0], [0.0, 0.0]], [("1", "c")])


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
    for code in (400, 302):
        with refused(EngineError, code="engine-refused"):
            engine_features(Engine(serve(lambda path, body, c=code: (c, {})).url), SPEC, QUERIES, qrels)
    with refused(EngineError, code="engine-refused"):
        engine_features(Engine(serve(lambda path, body: (200, {"hits": []})).url), SPEC, QUERIES, qrels)


@pytest.mark.parametrize("by", ["names", "status"])
def test_engines_that_score_no_named_queries_are_asked_for_each_feature(serve, by):
    def answer(path, body):
        if "named" in path and by == "status":
            return 400, {"error": "unrecognized parameter: [include_named_queries_score]"}
        documents = [own for own in body["query"]["bool"]["filter"][0]["ids"]["values"] if own != "gone"]
        hits = [{"_id": own, "matched_queries": ["title"]} for own in documents]
        if must := body["query"]["bool"].get("must"):
            kind = next(iter(must[0]))
            hits = [{"_id": own, "_score": 1.0 + ord(own)} for own in documents if kind == "match" or own != "b"]
        return 200, {"hits": {"hits": hits}}

    server = serve(answer)
    found = engine_features(Engine(server.url), SPEC, QUERIES, read_judgements(io.BytesIO(QRELS)))
    assert found.data.X.tolist() == [[98, 98], [99, 0], [100, 100], [98, 98]]
    assert found.missing == [("2", "gone")]
    assert len(server.requests) == 1 + 3 * 3  # one in vain, then each batch: the documents and two features


@pytest.fixture
def files(tmp_path):
    (tmp_path / "q.jsonl").write_text("\n".join(json.dumps({"id": q.id, **q.text}) for q in QUERIES))
    (tmp_path / "qrels").write_bytes(QRELS)
    (tmp_path / "spec.json").write_text(json.dumps(OWN))
    return tmp_path


def test_a_command_that_stopped_goes_on_where_it_was(serve, files, capsys):
    server = serve(opensearch)
    good = server.answer
    server.answer = lambda path, body: good(path, body) if len(server.requests) < 3 else (400, {})
    out = files / "out.txt"
    words = ["features", "--engine", server.url, "--features", str(files / "spec.json"), "-o", str(out)]
    words += ["--queries", str(files / "q.jsonl"), "--qrels", str(files / "qrels")]
    assert main(words) == 1
    assert not out.exists()
    partial = files / "out.txt.partial"
    kept = partial.read_bytes()
    partial.write_bytes(kept + b'{"a": [1.0')  # as a kill leaves it
    server.answer = good
    assert main(words) == 0
    assert len(server.requests) == 5
    assert not partial.exists()
    assert read_letor(out).X.tolist() == [[1, 2], [2, 0], [3, 4], [1, 2]]
    err = capsys.readouterr().err
    assert "1 of 2 requests were answered in an earlier run" in err
    assert "the engine lacks 1 judged documents (gone)" in err
    assert (files / "out.txt.missing.csv").read_text() == "query,docid\n2,gone\n"
    partial.write_bytes(kept)
    (files / "spec.json").write_text(json.dumps(OWN | {"index": "other"}))
    assert main(words) == 1
    assert "the file was written for other requests" in capsys.readouterr().err


TEMPLATE = {"match": {"title": "{{keywords}}"}}
SET = {"name": "shop", "features": [{"name": "t", "params": ["keywords"], "template": TEMPLATE}]}
STORE = [{"name": "t", "class": "org.apache.solr.ltr.feature.SolrFeature", "params": {"q": "{!field f=t}${query}"}}]


def test_the_forms_of_feature_sets(files):
    def read(content, name="spec.json"):
        (files / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return read_feature_set(files / name)

    queries = {"t": {"match": {"title": "{{query}}"}}}
    as_text = SET | {"features": [SET["features"][0] | {"template": json.dumps(TEMPLATE)}]}
    for form in (SET, {"featureset": SET}, {"_source": {"featureset": SET}, "found": True}, {"featureset": as_text}):
        own = read(form)
        assert (own.name, own.names, own.params) == ("shop", ["t"], {"keywords": "{{query}}"})
        assert own.spec(logged=False)["features"] == queries
        assert own.spec(logged=True)["featureset"] == "shop"
        again = read(own.as_json())
        assert again == own
    own = read({"index": "i", "id": "sku", "base": {"match_all": {}}, "params": {"keywords": "x {{query}}"}} | SET)
    assert own.requests()["features"] == {"t": {"match": {"title": "x {{query}}"}}}
    assert read(own.as_json()) == own
    solr = read([STORE[0] | {"store": "mine"}])
    assert solr.for_solr
    assert solr.spec(logged=True) == {
        "index": None, "batch": 200, "kind": "solr", "store": "mine", "efi": {"query": "{{query}}"}, "features": ["t"]
    }  # fmt: skip
    script = SET | {"features": [SET["features"][0] | {"template_language": "derived_expression", "template": "t * 2"}]}
    assert read(script).needs_plugin
    for wrong, code in [
        ({"features": []}, "no-features"),
        ({"features": [{"name": "t"}]}, "no-query"),
        ({"features": SET["features"] * 2}, "feature-names"),
        ({"features": [SET["features"][0], STORE[0] | {"name": "s"}]}, "mixed"),
        ({"features": [SET["features"][0] | {"params": ["keywords", "latitude"]}]}, "parameter"),
        ("{", "not-json"),
    ]:
        with refused(DataFileError, code=code):
            read(wrong)
    pytest.importorskip("yaml")
    assert read("index: x\nfeatures:\n  a: {match: {t: '{{query}}'}}\n", "s.yaml").index == "x"
    with refused(DataFileError, code="not-yaml"):
        read("{", "s.yaml")
    bad = SPEC | {"features": {"a": {"match": {"t": "x {{nothing}}"}}}}
    with refused(InvalidInputError, code="unknown-field"):
        engine_features(Engine("http://127.0.0.1:1"), bad, QUERIES, read_judgements(io.BytesIO(QRELS)))
    with refused(InvalidInputError, argument="url"):
        Engine("localhost:9200")


def test_features_are_made_of_the_fields_of_an_index(serve):
    fields = {
        "title": {"type": "text", "fields": {"raw": {"type": "keyword"}, "en": {"type": "text"}}},
        "maker": {"properties": {"name": {"type": "text"}}},
        "price": {"type": "scaled_float"}, "delta": {"type": "integer"}, "never": {"type": "long"},
        "day": {"type": "date"}, "new": {"type": "boolean"}, "place": {"type": "geo_point"},
        "price_2": {"type": "nested", "properties": {"x": {"type": "text"}}}, "a b": {"type": "float"},
        "a.b": {"type": "float"},
    }  # fmt: skip

    def answer(path, body):
        if path.endswith("_mapping"):
            return 200, {"v1": {"mappings": {"properties": fields}}, "v2": {"mappings": {}}}
        fields_asked = {key: own["min"]["field"] for key, own in body["aggs"].items()}
        lowest = {"delta": -2.0, "never": None}
        return 200, {"aggregations": {key: {"value": lowest.get(own, 1.0)} for key, own in fields_asked.items()}}

    own, left_out = made_of_index(Engine(serve(answer).url), "shop", None, solr=False)
    assert own.names == ["base", "a_b", "a_b_2", "day", "maker_name", "maker_name_phrase", "new", "price", "title",
                         "title_phrase", "title_en", "title_en_phrase"]  # fmt: skip
    assert [one.partition(" ")[0] for one in left_out] == ["delta", "never", "place", "price_2"]
    queries = own.requests()["features"]
    assert queries["base"] == own.base == {"multi_match": {"query": "{{query}}", "fields": [
        "maker.name", "title", "title.en"]}}  # fmt: skip
    assert queries["title_en_phrase"] == {"match_phrase": {"title.en": "{{query}}"}}
    assert queries["price"]["function_score"]["query"] == {"exists": {"field": "price"}}
    assert (own.index, own.name, own.needs_plugin) == ("shop", "shop", False)


def test_features_are_made_of_the_schema_of_solr(serve):
    types = [{"name": "t", "class": "solr.TextField"}, {"name": "f", "class": "solr.FloatPointField"},
             {"name": "d", "class": "solr.DatePointField"}, {"name": "s", "class": "solr.StrField"},
             {"name": "fs", "class": "solr.FloatPointField", "multiValued": True}]  # fmt: skip
    fields = [{"name": name, "type": kind} for name, kind in
              [("title", "t"), ("price", "f"), ("day", "d"), ("id", "s"), ("sizes", "fs"),
               ("_root_", "s")]]  # fmt: skip
    server = serve(lambda path, body: (200, {"schema": {"fields": fields, "fieldTypes": types}}))
    own, left_out = made_of_index(Engine(server.url + "/solr/c"), None, "mine", solr=True)
    assert own.names == ["base", "day", "price", "title", "title_phrase"]
    assert own.base == {"q": "{!dismax qf='title' mm=1 v=$words}", "words": "{{query}}"}
    assert own.features[0]["params"] == {"q": "{!dismax qf='title' mm=1}${query}"}
    assert len(left_out) == 2
    assert own.requests()["store"] == "mine"


def test_what_the_engine_holds_is_never_replaced(serve):
    held = {}

    def answer(path, body):
        if path == "/_ltr":
            return 200, {"stores": {"_default_": {}}}
        if body:
            held[path] = body
        return (200, {"_source": held[path]}) if path in held else (404, {})

    engine = Engine(serve(answer).url)
    own = feature_set(SET)
    assert not agreed(engine, own, put=False)
    assert stored_set(engine, "shop", solr=False) is None
    assert agreed(engine, own, put=True)
    assert agreed(engine, own, put=False)
    assert stored_set(engine, "shop", solr=False).names == ["t"]
    other = SET | {"features": [SET["features"][0] | {"template": {"match_phrase": {"title": "{{keywords}}"}}}]}
    for differs in (other, SET | {"features": [*SET["features"], SET["features"][0] | {"name": "more"}]}):
        with refused(InvalidInputError, code="other-features"):
            agreed(engine, feature_set(differs), put=True)
    script = {"name": "s", "features": [SET["features"][0] | {"template_language": "script_feature", "template": "1"}]}
    with refused(InvalidInputError, code="not-stored"):
        agreed(engine, feature_set(script), put=False)
