"""`deploy`, `verify` and `features` with the LTR plugins of OpenSearch and Elasticsearch.

The answers of OpenSearch's plugin to one conversation are in `golden/ltr_plugin.json`, and are given again here. Where
TRUERANK_LTR_PLUGIN names the archive of one of the plugins, the conversation is had with a real server too;
`PYTHONPATH=src:. python tests/export/test_ltr_plugin.py` writes the file anew.
"""

import json
import os
import random
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from support.refusals import refused
from truerank import import_model, read_letor, read_run, save_model
from truerank.cli import main
from truerank.core.errors import EngineError, InvalidInputError
from truerank.export.deployment import deploy
from truerank.export.verification import verify
from truerank.io.engine import Engine, checked
from truerank.io.feature_sets import feature_set, made_of_index, stored_set

GOLDEN = Path(__file__).parent / "golden"
NAMES = [f"f{k + 1}" for k in range(6)]
FEATURES = {name: {"match": {name: "{{query}}"}} for name in [*reversed(NAMES), "text"]}
REQUESTS = {"base": {"match": {"text": "{{query}}"}}, "params": {"query": "{{query}}"}}
WORDS = ["wing", "flow", "heat", "shock"]
TEXTS = ["wing", "flow heat", "shock"]
INDEX = "truerank-documents"


def make_index(engine):
    fields = {name: {"type": "text"} for name in FEATURES} | {"id": {"type": "keyword"}}
    engine.request("PUT", INDEX, {"settings": {"number_of_shards": 1}, "mappings": {"properties": fields}})
    rng = random.Random(0)
    for number in range(40):
        words = {name: " ".join(rng.choices(WORDS, k=rng.randint(1, 4))) for name in FEATURES}
        engine.request("PUT", f"{INDEX}/_doc/{number}", words | {"id": str(number)})
    engine.request("POST", f"{INDEX}/_refresh")


def definitions(name, features):
    own = [{"name": feature, "params": ["query"], "template": query} for feature, query in features.items()]
    return {"index": INDEX, "base": REQUESTS["base"], "featureset": {"name": name, "features": own}}


def the_models(folder):
    found = {}
    for name, own in json.loads((GOLDEN / "ranklib.json").read_text()).items():
        (folder / name).write_text(own["text"])
        found[name] = import_model(folder / name, feature_names=NAMES)
    return found


def features_of_judged_pairs(url, folder, features, *more):
    (folder / "features.json").write_text(json.dumps(features))
    (folder / "queries.jsonl").write_text("".join(f'{{"id": "{k}", "text": "{t}"}}\n' for k, t in enumerate(TEXTS)))
    (folder / "qrels").write_text("".join(f"{k} 0 {d} {d % 2}\n" for k in range(len(TEXTS)) for d in range(20)))
    line = ["features", "--engine", url, "--features", str(folder / "features.json"), "-o", str(folder / "out.txt")]
    line += ["--queries", str(folder / "queries.jsonl"), "--qrels", str(folder / "qrels"), *more]
    assert main(line) == 0
    return read_letor(folder / "out.txt").X


def converse(url, folder):
    """What is asked of the plugin, and what must come of it."""
    engine = Engine(url)
    make_index(engine)
    films = feature_set(definitions("films", FEATURES))
    named = features_of_judged_pairs(url, folder, definitions("films", FEATURES))
    assert stored_set(engine, "films", solr=False) is None
    for name, model in the_models(folder).items():
        done = deploy(model, url, name, kind="ltr", feature_set=films)
        assert (done["replaced"], done["times"]) == (False, 1.0)
        own = verify(model, url, name, INDEX, REQUESTS, TEXTS, kind="ltr", window=30)
        assert (own.queries, own.orders_equal) == (3, 3), name
        assert own.documents > 60
        assert own.largest_difference < 1e-6
    with refused(InvalidInputError, argument="name", code="exists"):
        deploy(model, url, "trees", kind="ltr", feature_set="films")
    linear = the_models(folder)["linear"]
    assert deploy(linear, url, "trees", kind="ltr", feature_set="films", replace=True)["replaced"] is True
    assert verify(linear, url, "trees", INDEX, REQUESTS, TEXTS, kind="ltr").orders_equal == 3
    assert verify(model, url, "trees", INDEX, REQUESTS, TEXTS, kind="ltr").orders_equal < 3
    with refused(InvalidInputError, argument="feature_set"):
        deploy(model, url, "m", kind="ltr", feature_set="other")
    with refused(InvalidInputError, argument="feature_set"):
        deploy(model, url, "m", kind="ltr", feature_set="films", feature_names=["nowhere", *NAMES[1:]])
    with pytest.raises(EngineError, match="status 4"):
        verify(model, url, "never put there", INDEX, REQUESTS, TEXTS, kind="ltr")
    logged = features_of_judged_pairs(url, folder, definitions("films", FEATURES))
    np.testing.assert_array_equal(logged, named)
    assert 0 < (logged == 0).mean() < 1
    with refused(InvalidInputError, code="other-features"):
        deploy(model, url, "m", kind="ltr", feature_set=feature_set(definitions("films", FEATURES | {"more": {}})))
    made, left_out = made_of_index(engine, INDEX, "made", solr=False)
    assert made.names == ["base", *(own for name in (*NAMES, "text") for own in (name, f"{name}_phrase"))]
    assert left_out == ["id (keyword)"]
    by_queries = features_of_judged_pairs(url, folder, made.as_json())
    by_plugin = features_of_judged_pairs(url, folder, made.as_json(), "--put")
    np.testing.assert_array_equal(by_queries, by_plugin)
    walk(url, folder)
    with refused(EngineError, code="no-feature"):
        verify(model, url, "linear", INDEX, REQUESTS, TEXTS, kind="ltr", feature_names=["f7", *NAMES[1:]])


def walk(url, folder):
    """Deploy with the definitions in a file, and read the runs that the verification writes."""
    (folder / "films.json").write_text(json.dumps(definitions("films", FEATURES)))
    save_model(the_models(folder)["trees"], folder / "model.json")
    line = ["deploy", str(folder / "model.json"), "--engine", url, "--features", str(folder / "films.json")]
    line += ["--name", "walk", "--verify", "--queries", str(folder / "queries.jsonl"), "--runs", str(folder / "runs")]
    assert main([*line, "--window", "30"]) == 0
    before, after = (read_run(folder / "runs" / f"{own}-walk.run").to_dict() for own in ("without", "with"))
    assert before.keys() == after.keys() == set(TEXTS)
    assert all(before[text].keys() == after[text].keys() for text in TEXTS)
    assert before != after


def key_of(method, path, body):
    return json.dumps([method, path, body], sort_keys=True)


def test_the_answers_of_the_real_plugin(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where models that are replaced are kept
    answers = defaultdict(list)
    for asked, answer in json.loads((GOLDEN / "ltr_plugin.json").read_text()):
        answers[asked].append(answer)

    def request(engine, method, path, body=None, missing_ok=False, form=None):
        answer = answers[key_of(method, path, body)].pop(0)
        if "refused" in answer:
            raise EngineError(answer["refused"])
        found = answer["answer"]
        return None if missing_ok and found is None else checked(found, form)

    monkeypatch.setattr(Engine, "request", request)
    converse("http://127.0.0.1:9200", tmp_path)
    assert not any(answers.values())


@pytest.mark.skipif("TRUERANK_LTR_PLUGIN" not in os.environ, reason="TRUERANK_LTR_PLUGIN names no archive")
def test_the_real_plugin(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    monkeypatch.chdir(tmp_path)
    with start_server() as server:
        converse(server.url, tmp_path)


def start_server():
    """The server that the plugin's archive is for."""
    from benchmarks.search_server import SearchServer

    plugin = Path(os.environ["TRUERANK_LTR_PLUGIN"])
    with zipfile.ZipFile(plugin) as archive:
        descriptor = archive.read("plugin-descriptor.properties").decode()
    return SearchServer("elasticsearch" if "elasticsearch.version" in descriptor else "opensearch", [plugin])


def record():
    """Have the conversation with the real plugin, and write its answers down."""

    talk, ask = [], Engine.request

    def request(engine, method, path, body=None, missing_ok=False, form=None):
        answer = {}
        try:
            answer["answer"] = ask(engine, method, path, body, missing_ok, form)
        except EngineError as error:
            answer["refused"] = str(error).replace(engine.url, "http://127.0.0.1:9200")
            raise
        finally:
            talk.append([key_of(method, path, body), answer])
        return answer["answer"]

    Engine.request = request
    with start_server() as server, tempfile.TemporaryDirectory() as folder:
        converse(server.url, Path(folder))
    (GOLDEN / "ltr_plugin.json").write_text(json.dumps(talk, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    record()
