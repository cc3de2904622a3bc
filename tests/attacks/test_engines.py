"""A search engine that lies, stalls or echoes secrets: exit code 1 and a sentence, from every command that asks one."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from support.refusals import refused
from truerank import RankingData, RidgeRanker, load_model, save_model
from truerank.cli import main
from truerank.core.errors import EngineError, InvalidInputError
from truerank.export.compared_rows import reference_scores
from truerank.export.form import form_of
from truerank.io.documents import Document
from truerank.io.engine import Engine
from truerank.io.engine_features import engine_features
from truerank.io.feature_sets import stored_set
from truerank.io.trec import as_qrels

SECRET = "pa$$word-of-mine"


class Hostile:
    """A server of one raw answer to every connection; it stops by itself after a minute.

    `drip` sends the answer byte by byte.
    """

    def __init__(self, answer: bytes, drip: bool = False) -> None:
        self.answer, self.drip, self.end = answer, drip, time.monotonic() + 60
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.listening.settimeout(0.05)
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"
        self.seen = b""
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        while time.monotonic() < self.end:
            try:
                connection, _ = self.listening.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(5)
                try:
                    self.seen = connection.recv(1 << 20)
                    answer = http("{}", "404 Not Found") if self.seen.startswith(b"GET /_ltr") else self.answer
                    for part in (bytes([b]) for b in answer) if self.drip else [answer]:
                        connection.sendall(part)
                        if self.drip and time.monotonic() < self.end:
                            time.sleep(0.05)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 16):
                        pass
                except OSError:
                    pass

    def close(self) -> None:
        self.end = 0.0
        self.thread.join()
        self.listening.close()


@pytest.fixture
def hostile():
    servers = []

    def start(answer: bytes, drip: bool = False) -> Hostile:
        servers.append(Hostile(answer, drip))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def http(content: bytes | str, status: str = "200 OK", headers: str = "") -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n{headers}\r\n".encode() + content


def hits(*found: object) -> bytes:
    return http(json.dumps({"took": 1, "hits": {"hits": list(found)}}))


def hit(name: object = "a", **more: object) -> dict[str, object]:
    return {"_id": name, "matched_queries": {"title": 1.0}} | more


ANSWERS = {
    "nothing": b"", "half a status": b"HTTP/1.1", "no HTTP": b"\x00\xff\x1b[2J\n\n", "no JSON": http("<html>"),
    "empty": http(""), "null": http("null"), "a list": http("[1, 2, 3]"), "a number": http("7"), "a text": http('"x"'),
    "no hits": http('{"took": 1}'), "hits null": http('{"hits": null}'), "hits a list": http('{"hits": []}'),
    "no inner hits": http('{"hits": {}}'), "inner hits an object": http('{"hits": {"hits": {}}}'),
    "a hit that is null": hits(None), "a hit that is a list": hits([]), "a hit without an id": hits({}),
    "an id that is null": hits(hit(None)), "an id that is a list": hits(hit(["a"])), "a nested hit": hits([[hit()]]),
    "an id that is half a surrogate pair": http('{"hits": {"hits": [{"_id": "\\ud800"}]}}'),
    "one document twice": hits(hit(), hit()), "a document that was not asked for": hits(hit("z")),
    "more documents than asked for": hits(hit("a"), hit("b"), hit("c")), "no document": hits(),
    "values null": hits(hit(matched_queries=None)), "values a text": hits(hit(matched_queries="title")),
    "a value null": hits(hit(matched_queries={"title": None})),
    "a value a text": hits(hit(matched_queries={"title": "1"})),
    "a value true": hits(hit(matched_queries={"title": True})),
    "a value a list": hits(hit(matched_queries={"title": [1.0]})),
    "a value nan": http('{"hits": {"hits": [{"_id": "a", "matched_queries": {"title": NaN}}]}}'),
    "a value 1e999": http('{"hits": {"hits": [{"_id": "a", "matched_queries": {"title": 1e999}}]}}'),
    "a value of 400 digits": hits(hit(matched_queries={"title": 10**400})),
    "names alone": hits(hit(matched_queries=["title"])),
    "in part": http('{"timed_out": true, "hits": {"hits": []}}'),
    "timed_out a text": http('{"timed_out": "no", "hits": {"hits": []}}'),
    "shards failed": http('{"_shards": {"failed": 1}, "hits": {"hits": []}}'),
    "shards a list": http('{"_shards": [], "hits": {"hits": []}}'),
    "nested too deeply": http("[" * 100_000), "half of the content": http("x" * 50)[:-30],
    "a chunk of a wrong size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
    "too many headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 1000 + b"\r\n",
    "no UTF-8": http(b'{"hits": "\xff"}'), "redirected": http("", "302 Found", "Location: http://127.0.0.1:1/\r\n"),
    "refused": http("no", "403 Forbidden"),
    "a chunk of negative size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
}  # fmt: skip


@pytest.fixture
def words(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"id": "1", "text": "heat"}\n')
    (tmp_path / "qrels").write_text("1 0 a 2\n1 0 b 0\n")
    (tmp_path / "spec.json").write_text('{"index": "i", "features": {"title": {"match": {"t": "{{query}}"}}}}')
    line = ["features", "--features", str(tmp_path / "spec.json"), "-o", str(tmp_path / "out.txt"), "--engine"]
    return ["--queries", str(tmp_path / "q.jsonl"), "--qrels", str(tmp_path / "qrels")], line


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds, sleep=time.sleep: sleep(min(seconds, 0.05)))


@pytest.mark.parametrize("name", ANSWERS)
def test_features_of_an_engine_that_lies(hostile, words, tmp_path, capsys, name):
    more, line = words
    assert main([*line, hostile(ANSWERS[name]).url, *more]) == 1
    error = capsys.readouterr().err
    assert error.startswith("truerank features: ")
    assert "inside truerank" not in error
    assert "\x1b" not in error
    assert not (tmp_path / "out.txt").exists()


def plugin_log(*entries):
    log = [{"log": [{"name": name, "value": value} for name, value in entries]}]
    return hits({"_id": "a", "fields": {"_ltrlog": log}})


def solr_log(features):
    return http(json.dumps({"response": {"docs": [{"id": "a", "features": features}]}}))


MISNAMED = {
    "a query that is no feature": ("named-queries", hits(hit(matched_queries={"titel": 1.0}))),
    "a feature twice in the plugin's log": ("ltr-log", plugin_log(("title", 1.0), ("title", 2.0))),
    "another feature in the plugin's log": ("ltr-log", plugin_log(("titel", 1.0))),
    "a feature twice in Solr's log": ("solr", solr_log("title=1.0,title=2.0")),
    "another feature in Solr's log": ("solr", solr_log("titel=1.0")),
    "a number that only Python reads": ("solr", solr_log("title=1_0")),
}


@pytest.mark.parametrize("name", MISNAMED)
def test_features_under_other_names_are_refused(hostile, words, tmp_path, capsys, name):
    """Some were read as 0, or as the last of two values."""
    kind, answer = MISNAMED[name]
    features = {"title": {"match": {"t": "{{query}}"}}}
    spec = {"kind": kind, "index": "i", "featureset": "f", "batch": 9, "features": features}
    queries, qrels = (
        [
            Document("1", {"text": "heat"}, {}, {}),
        ],
        as_qrels({"1": {"a": 2, "b": 0}}),
    )
    with pytest.raises(EngineError):
        engine_features(Engine(hostile(answer).url), spec, queries, qrels)


@pytest.mark.parametrize("solr", [False, True])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_feature_set_of_an_engine_that_lies(scripted, name, solr):
    server = scripted(("GET", "", ANSWERS[name]))
    with suppress(EngineError):
        assert stored_set(Engine(server.url, 2.0), "f", solr=solr) is None


def test_forty_kinds_of_answers_are_among_them():
    assert len(ANSWERS) >= 40


@pytest.mark.parametrize("part", ["status", "headers", "content", "chunks"])
def test_a_server_that_drips_is_left_at_the_deadline(hostile, part):
    """The answer takes two minutes, and each of its bytes comes in time."""
    head = {"status": b"HTTP/1.1 200 ", "headers": b"HTTP/1.1 200 OK\r\na: ", "content": http("x" * 2400)[:-2400]}
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 500
    answer = chunks if part == "chunks" else head[part] + b"x" * 2400
    with refused(EngineError, code="no-answer"):  # the deadline is for all tries together
        Engine(hostile(answer, drip=True).url, 0.5, retries=5).request("GET", "")


def test_credentials_that_are_echoed_are_masked_and_control_characters_escaped(hostile, monkeypatch):
    monkeypatch.setenv("TRUERANK_ENGINE_USER", "me")
    monkeypatch.setenv("TRUERANK_ENGINE_PASSWORD", SECRET)
    server = hostile(http(f"\x1b[2J\u202e bWU6cGEkJHdvcmQtb2YtbWluZQ== {SECRET}", "403 Forbidden"))
    with pytest.raises(EngineError) as caught:
        Engine(server.url).request("GET", "")
    assert b"bWU6cGEkJHdvcmQtb2YtbWluZQ==" in server.seen  # what was sent, and must not be printed
    assert SECRET not in str(caught.value)
    assert "bWU6" not in str(caught.value)
    assert str(caught.value).isprintable()
    assert "\\x1b[2J\\u202e *** ***" in str(caught.value)


ECHOES = {
    "shards": lambda text: {"_shards": {"failed": 1, "why": text}, "hits": {"hits": []}},
    "a document": lambda text: {"hits": {"hits": [hit(text)]}},
    "a document twice": lambda text: {"hits": {"hits": [hit(text), hit(text)]}},
    "a value": lambda text: {"hits": {"hits": [hit(matched_queries={"title": text})]}},
    "a name": lambda text: {"hits": {"hits": [hit(matched_queries={text: None})]}},
    "an answer of another form": lambda text: {"hits": text},
}


@pytest.mark.parametrize("name", ECHOES)
@pytest.mark.parametrize("cut", [0, 60, 70, 75, 130, 180, 190, 290])
def test_credentials_in_an_answer_are_masked_before_it_is_cut(hostile, words, monkeypatch, capsys, name, cut):
    monkeypatch.setenv("TRUERANK_ENGINE_API_KEY", SECRET)
    more, line = words
    answer = ECHOES[name]("x" * cut + SECRET + "\x1b[2J")
    assert main([*line, hostile(http(json.dumps(answer))).url, *more]) == 1
    error = capsys.readouterr().err
    assert "pa$$" not in error
    assert "\x1b" not in error


def test_a_feature_set_that_echoes_credentials(scripted, model, monkeypatch, capsys):
    monkeypatch.setenv("TRUERANK_ENGINE_API_KEY", SECRET)
    echo = json.dumps({"_source": {"featureset": {"features": [{"name": f"{SECRET}\x1b[2J"}]}}})
    server = scripted(("GET /_ltr/_featureset", "", http(echo)), ("", "", http("{}", "404 Not Found")))
    assert deployed(model, "ltr", server.url) == 1
    assert "pa$$" not in sentence(capsys, "deploy")


@pytest.mark.parametrize("key", ["of-mine\n", "na\u00efve"])
def test_a_key_that_no_header_can_hold_is_not_printed(hostile, monkeypatch, key):
    monkeypatch.setenv("TRUERANK_ENGINE_API_KEY", key)
    with refused(InvalidInputError, code="credentials") as caught:
        Engine(hostile(http("{}")).url).request("GET", "")
    assert key.strip() not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://[::1", "http://me:secret@[::1", "http://me:secret@host", "http://me:se/cret@host", "me:secret@host",
        "http://me:se?cret@host", "http://host/?api_key=secret", "http://host/#secret", "http://host:99999",
        "http://host:port", "http://", "file:///etc/passwd", "http://ho st", "http://host\n", "http://h\u00f6st",
    ],
)  # fmt: skip
def test_addresses_that_are_refused_and_what_of_them_is_printed(url):
    with refused(InvalidInputError, argument="url") as caught:
        Engine(url)
    assert "cret" not in str(caught.value)


def test_an_address_in_capitals_is_encrypted_too(hostile):
    server = hostile(http("{}"))
    with refused(EngineError, code="no-answer"):
        Engine(server.url.replace("http", "HTTPS"), 2.0).request("GET", "")
    assert b"GET" not in server.seen


@pytest.mark.parametrize("timeout", [float("inf"), float("nan"), 0.0, -1.0, 1e300])
def test_time_limits_that_are_none(timeout):
    with refused(InvalidInputError, argument="timeout"):
        Engine("http://127.0.0.1:9", timeout)


def test_answers_of_an_earlier_run_that_somebody_else_has_laid_there(hostile, words, tmp_path, capsys):
    """A link was followed, and the file that it named was replaced."""
    more, line = words
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    (tmp_path / "out.txt.partial").symlink_to(victim)
    assert main([*line, hostile(hits(hit())).url, *more]) == 1
    assert "symbolic link" in capsys.readouterr().err
    assert victim.read_text() == "precious\n"
    (tmp_path / "out.txt.partial").unlink()
    (tmp_path / "out.txt.partial").write_text("precious\n")
    assert main([*line, hostile(hits(hit())).url, *more]) == 1
    assert "of another kind" in capsys.readouterr().err
    assert (tmp_path / "out.txt.partial").read_text() == "precious\n"


class Scripted(BaseHTTPRequestHandler):
    """An engine of a script: the first of its rules (words of method and address, of the body) that fits answers."""

    def _handle(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self.server.log.append((self.command, self.path, body))
        for line, part, answer in self.server.rules:
            if line in f"{self.command} {self.path}" and part in body:
                self.wfile.write(answer(body) if callable(answer) else answer)
                break
        self.close_connection = True

    do_GET = do_PUT = do_POST = do_DELETE = _handle

    def log_message(self, *args):
        pass


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    servers = []

    def start(*rules):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
        server.rules, server.log = rules, []
        server.url = f"http://127.0.0.1:{server.server_port}"
        server.thread = threading.Thread(target=server.serve_forever, daemon=True, args=(0.05,))
        server.thread.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
        server.thread.join()


def sentence(capsys, command):
    """The error of a command that failed, which must be one of a person's."""
    error = capsys.readouterr().err
    assert error.splitlines()[-1].startswith(f"truerank {command}: ")
    assert "inside truerank" not in error
    assert "\x1b" not in error
    return error


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rows = np.arange(24.0).reshape(12, 2) % 7
    data = RankingData(rows, rows[:, 0] > 2, np.repeat([0, 1], 6), feature_names=["title", "text"])
    path = tmp_path_factory.mktemp("model") / "model.json"
    save_model(RidgeRanker().fit(data), path)
    return str(path)


ROWS = {"a": [3.0, 1.0], "b": [1.0, 2.0], "c": [0.0, 5.0]}


def logged(*names):
    return hits(*({"fields": {"id": [name]}, "_score": 1.0, "matched_queries": dict(zip(["title", "text"], ROWS[name]))}
                  for name in names))  # fmt: skip


def honest(model, change=lambda found: found):
    """Rescored documents of a request, as the model scores them, and what was changed."""

    def answer(body):
        params = json.loads(body)["rescore"]["query"]["rescore_query"]["script_score"]["script"]["params"]
        table = params["table"]
        scores = reference_scores(form_of(load_model(model)), np.array(list(table.values()))) + params["shift"]
        found = [{"fields": {"id": [name]}, "_score": float(np.float32(s))} for name, s in zip(table, scores)]
        found = change(sorted(found, key=lambda hit: -hit["_score"]))
        return found if isinstance(found, bytes) else hits(*found)

    return answer


def verified(model, tmp_path, url, *more):
    (tmp_path / "q.jsonl").write_text('{"id": "1", "text": "heat"}\n')
    requests = {
        "base": {"match": {"t": "{{query}}"}},
        "features": {n: {"match": {n: "{{query}}"}} for n in ("title", "text")},
    }
    (tmp_path / "requests.json").write_text(json.dumps(requests))
    line = [
        "deploy",
        "--verify-only",
        model,
        "--engine",
        url,
        "--name",
        "m",
        "--index",
        "i",
        "--queries",
        str(tmp_path / "q.jsonl"),
    ]
    return main([*line, "--requests", str(tmp_path / "requests.json"), *more])


def scored(value):
    return lambda found: [{"fields": hit["fields"], "_score": value} for hit in found]


LIES = {
    "nothing found": (hits(), None), "one document less": (None, lambda found: found[1:]),
    "another document": (None, lambda found: [*found[1:], {"fields": {"id": ["z"]}, "_score": 0.0}]),
    "a key that is not unique": (logged("a", "a", "b"), None),
    "a document twice": (None, lambda found: [*found[:2], found[0]]),
    "a score nan": (None, lambda found: http('{"hits": {"hits": [{"fields": {"id": ["a"]}, "_score": NaN}]}}')),
    "a score 1e999": (None, lambda found: http('{"hits": {"hits": [{"fields": {"id": ["a"]}, "_score": 1e999}]}}')),
    "scores null": (None, scored(None)), "scores a text": (None, scored("1")), "scores a list": (None, scored([1.0])),
    "scores true": (None, scored(True)), "scores that are too large": (None, scored(1e300)), "all scores 0": (None, scored(0.0)),  # noqa: E501
    "no scores": (None, lambda found: [{"fields": hit["fields"]} for hit in found]),
    "the model's order, and other scores": (None, lambda found: [h | {"_score": 2 * h["_score"] + 1} for h in found]),
    "another order": (None, lambda found: found[::-1]),
    "keys of two": (None, lambda found: [hit | {"fields": {"id": ["a", "b"]}} for hit in found]),
    "keys of none": (None, lambda found: [hit | {"fields": {"id": []}} for hit in found]),
    "keys null": (None, lambda found: [hit | {"fields": {"id": [None]}} for hit in found]),
    "keys an object": (None, lambda found: [hit | {"fields": {"id": {}}} for hit in found]),
    "no fields": (None, lambda found: [{"_score": 1.0} for hit in found]),
    "one document": (logged("a"), None),
    "the same features of all": (
        hits(*({"fields": {"id": [n]}, "_score": 1.0, "matched_queries": {"title": 3.0, "text": 1.0}} for n in "abc")),
        None,
    ),
    "features of other sorts": (hits({"fields": {"id": ["a"]}, "_score": 1.0, "matched_queries": {"title": "x"}}), None),  # noqa: E501
    "features near the end of numbers": (
        hits({"fields": {"id": ["a"]}, "_score": 1.0, "matched_queries": {"title": 1.6e308, "text": 1.6e308}}), None,
    ),
}  # fmt: skip


def test_verify_of_an_honest_engine(scripted, model, tmp_path, capsys):
    """Without which the lies below would show nothing."""
    server = scripted(("_search", '"rescore"', honest(model)), ("_search", "", logged("a", "b", "c")))
    assert verified(model, tmp_path, server.url, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["passed"], found["documents"], found["empty"], found["tolerance"]) == (True, 3, 0, 1e-5)
    assert found["share"] < 1e-6
    assert verified(model, tmp_path, server.url) == 0
    assert "(tolerance 1e-05)" in capsys.readouterr().err


@pytest.mark.parametrize("name", LIES)
def test_verify_of_an_engine_that_lies(scripted, model, tmp_path, capsys, name):
    features, change = LIES[name]
    rescored = honest(model, change or (lambda found: found))
    server = scripted(("_search", '"rescore"', rescored), ("_search", "", features or logged("a", "b", "c")))
    assert verified(model, tmp_path, server.url) == 1
    error = capsys.readouterr().err
    assert "inside truerank" not in error
    assert "Traceback" not in error
    assert error.startswith(("truerank deploy: ", "1 of 1 queries", "0 of 1 queries"))


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("asked", ["features", "rescored", "base", "everything in Solr"])
def test_verify_of_an_engine_that_answers_anything(scripted, model, tmp_path, capsys, asked, name):
    rescored, features = honest(model), logged("a", "b", "c")
    rules = {
        "features": [("_search", '"rescore"', rescored), ("_search", "", ANSWERS[name])],
        "rescored": [("_search", '"rescore"', ANSWERS[name]), ("_search", "", features)],
        "base": [("_search?", "", features), ("_search", '"rescore"', rescored), ("_search", "", ANSWERS[name])],
        "everything in Solr": [("select", "", ANSWERS[name])],
    }
    server = scripted(*rules[asked])
    more = []
    if asked == "everything in Solr":
        (tmp_path / "solr.json").write_text('{"base": {"q": "{{query}}"}}')
        more = ["--kind", "solr", "--requests", str(tmp_path / "solr.json")]
    assert verified(model, tmp_path, server.url, *more) == 1
    sentence(capsys, "deploy")


def test_documents_that_another_shard_rescored(scripted, model, tmp_path, capsys):
    server = scripted(("_search", '"rescore"', honest(model, lambda found: found[:2])), ("_search", "", logged(*ROWS)))
    assert verified(model, tmp_path, server.url) == 1
    assert "Rescoring works by shard" in sentence(capsys, "deploy")


def test_the_tolerance_decides(scripted, model, tmp_path, capsys):
    off = honest(model, lambda found: [hit | {"_score": hit["_score"] * 1.001} for hit in found])
    server = scripted(("_search", '"rescore"', off), ("_search", "", logged(*ROWS)))
    assert verified(model, tmp_path, server.url) == 1
    assert "1 of 1 queries have the model's order" in capsys.readouterr().err
    assert verified(model, tmp_path, server.url, "--tolerance", "0.01") == 0
    for wrong in ("nan", "-1", "inf"):
        assert verified(model, tmp_path, server.url, "--tolerance", wrong) == 1
        assert "tolerance must be" in sentence(capsys, "deploy")


def test_verify_and_deploy_leave_a_server_that_drips(hostile, model, tmp_path, capsys):
    url = hostile(http("x" * 2400), drip=True).url
    assert verified(model, tmp_path, url, "--timeout", "0.5") == 1
    assert "no answer within 0.5 s" in sentence(capsys, "deploy")
    assert main(["deploy", model, "--engine", url, "--name", "m", "--timeout", "0.5"]) == 1
    assert "no answer within 0.5 s" in sentence(capsys, "deploy")


OLD = {
    "painless": {"script": {"lang": "painless", "source": "return 1;"}},
    "ltr": {"model": {"name": "m", "model": {"type": "model/linear", "definition": '{"title": 1.0}'}}},
    "solr": {"name": "m", "class": "org.apache.solr.ltr.model.LinearModel", "params": {"weights": {"title": 1.0}}},
}
FEATURE_SET = http('{"_source": {"featureset": {"features": [{"name": "title"}, {"name": "text"}]}}}')
CONFIRMED = http('{"acknowledged": true, "result": "created", "responseHeader": {"status": 0}}')


def there(kind, own):
    """What an engine says of a model that it has."""
    parts = {"painless": own, "ltr": {"_source": own}, "solr": {"models": [own]}}
    return http(json.dumps(parts[kind] | {"found": True}))


def deployed(model, kind, url, *more):
    words = ["--kind", kind, "--name", "m", *(["--feature-set", "f"] if kind == "ltr" else [])]
    return main(["deploy", model, "--engine", url, *words, *more])


UNCONFIRMED = ANSWERS | {
    "not acknowledged": http('{"acknowledged": false, "result": "noop", "responseHeader": {"status": 1}}'),
    "acknowledged by a text": http('{"acknowledged": "true", "result": true, "responseHeader": {"status": "0"}}'),
    "took": http('{"took": 1}'), "an empty object": http("{}"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNCONFIRMED)
@pytest.mark.parametrize("kind", OLD)
@pytest.mark.parametrize("asked", ["PUT", "GET"])
def test_deploy_to_an_engine_that_answers_anything(scripted, model, capsys, asked, kind, name):
    nothing = http('{"models": []}') if kind == "solr" else http("{}", "404 Not Found")
    server = scripted(
        *([(asked, "", UNCONFIRMED[name])] if asked == "GET" else []),
        ("GET /_ltr/_featureset", "", FEATURE_SET), ("GET", "", nothing),
        ("", "", UNCONFIRMED[name]),
    )  # fmt: skip
    assert deployed(model, kind, server.url) == 1
    sentence(capsys, "deploy")


@pytest.mark.parametrize("kind", OLD)
def test_deploy_reads_back_what_an_engine_confirms(scripted, model, capsys, kind):
    server = scripted(
        ("GET /_ltr/_featureset", "", FEATURE_SET), ("GET", "", there(kind, OLD[kind])), ("", "", CONFIRMED)
    )
    assert deployed(model, kind, server.url, "--replace") == 1
    assert "did not confirm that it holds 'm'" in sentence(capsys, "deploy")


def kept_in(folder):
    (path,) = folder.glob("m.*.json")
    return json.loads(path.read_text())


@pytest.mark.parametrize("kind", OLD)
def test_an_interrupt_while_a_model_is_replaced_puts_the_old_one_back(scripted, model, tmp_path, kind):
    """The interrupt comes while the engine takes its time over the new model."""
    state = {"own": OLD[kind]}

    def removed(body):
        state["own"] = None
        return CONFIRMED

    def taken(body):
        if json.loads(body) == OLD[kind]:
            state["own"] = OLD[kind]
            return CONFIRMED
        signal.raise_signal(signal.SIGINT)
        return b""

    def shown(body):
        nothing = http('{"models": []}') if kind == "solr" else http("{}", "404 Not Found")
        return there(kind, state["own"]) if state["own"] else nothing

    server = scripted(
        ("GET /_ltr/_featureset", "", FEATURE_SET), ("GET", "", shown), ("DELETE", "", removed), ("", "", taken),
    )  # fmt: skip
    assert deployed(model, kind, server.url, "--replace") == 130
    assert state["own"] == OLD[kind]
    assert kept_in(tmp_path) == OLD[kind]


@pytest.mark.parametrize("kind", OLD)
@pytest.mark.parametrize("name", ["nothing", "a list", "refused"])
def test_a_model_that_cannot_be_put_back_is_in_a_file_that_is_named(scripted, model, tmp_path, capsys, kind, name):
    server = scripted(
        ("GET /_ltr/_featureset", "", FEATURE_SET), ("GET", "", there(kind, OLD[kind])), ("DELETE", "", CONFIRMED),
        ("", "", ANSWERS[name]),
    )  # fmt: skip
    if kind == "solr":  # which would see that the old one is there
        shown = iter([there("solr", OLD["solr"]), there("solr", OLD["solr"])])
        server.rules = (("GET", "", lambda body: next(shown, http('{"models": []}'))), *server.rules[2:])
    assert deployed(model, kind, server.url, "--replace") == 1
    error = sentence(capsys, "deploy")
    assert "could not be restored" in error
    assert next(tmp_path.glob("m.*.json")).name in error
    assert kept_in(tmp_path) == OLD[kind]
