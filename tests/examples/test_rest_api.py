"""The example of a REST API: the answers of Python, errors with their fields, no file of the server is read."""

from __future__ import annotations

import json
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import truerank

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import rest_api

QRELS = {str(q): {"a": 1, "b": 0} for q in range(8)}
RUNS = {
    "old": {q: {"a": 1.0, "b": 2.0} for q in QRELS},
    "new": {q: {"a": 2.0, "b": 1.0 if q != "3" else 3.0} for q in QRELS},
}


@pytest.fixture(scope="module")
def address():
    server = rest_api.ThreadingHTTPServer(("127.0.0.1", 0), type("Quiet", (rest_api.Handler,), {"log_message": id}))
    server.RequestHandlerClass.log_message = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def asked(address, path, body):
    request = urllib.request.Request(address + path, body if isinstance(body, bytes) else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_answers_are_those_of_python(address):
    body = {"judgements": QRELS, "systems": RUNS, "measures": "RR"}
    assert asked(address, "/evaluate", body) == (200, truerank.evaluate(QRELS, RUNS, "RR").to_dict())
    found = asked(address, "/compare", body | {"baseline": "new", "test": "t"})
    assert found == (200, truerank.compare(QRELS, RUNS, "RR", baseline="new", test="t").to_dict())
    assert found[1]["schema"] == "comparison/1"


def test_errors_have_fields(address, tmp_path):
    status, found = asked(address, "/compare", {"judgements": QRELS, "systems": RUNS, "test": "student"})
    assert (status, found["argument"], found["value"]) == (422, "test", "student")
    half = RUNS | {"half": {"0": {"a": 1.0}}}
    status, found = asked(address, "/evaluate", {"judgements": QRELS, "systems": half})
    assert (status, found["code"]) == (422, "different-topics")
    (tmp_path / "secret.run").write_text("1 Q0 a 1 1 x\n")
    for systems in ({"x": str(tmp_path / "secret.run")}, str(tmp_path / "secret.run"), [1]):
        assert asked(address, "/evaluate", {"judgements": QRELS, "systems": systems})[0] == 400
    assert asked(address, "/evaluate", {"judgements": str(tmp_path), "systems": RUNS})[0] == 400
    assert asked(address, "/evaluate", b"{")[0] == 400
    assert asked(address, "/evaluate", {"systems": RUNS})[0] == 400
    assert asked(address, "/evaluate", {"judgements": QRELS, "systems": RUNS, "topic": "all"})[0] == 400
    assert asked(address, "/train", {})[0] == 404


def test_it_is_short():
    assert Path(rest_api.__file__).read_text().count("\n") <= 60
