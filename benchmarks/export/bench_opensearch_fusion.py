"""Learned fusion weights in a running OpenSearch: does its bool query give the order that we predict?

Indexes Cranfield in an OpenSearch server on loopback, takes the lists of two queries (the words in the title, the words
in the text) as runs, learns one weight for each on half of the topics, sends the exported bool query for the other
half, and compares the order and the scores with `RunFusion.predict`. Needs OpenSearch's integ-test zip (Maven:
`org.opensearch.distribution.integ-test-zip:opensearch:3.6.0:zip`), found in `~/.m2` or by OPENSEARCH_ZIP, a JDK of 21
or later by JAVA_HOME or under /usr/lib/jvm, and the collections that TRUERANK_DATA names. The server stops with this
program, at the latest after ten minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from truerank import RunFusion, RunPool, cross_validate_fusion
from truerank.export.fusion_weights import certify_fusion, export_fusion
from truerank.io.documents import read_documents, read_judgements, read_queries

NOBODY = 65534
DEPTH = 1400  # Cranfield's documents: every match is in the list


def server_zip() -> Path:
    """The server's archive."""
    if "OPENSEARCH_ZIP" in os.environ:
        return Path(os.environ["OPENSEARCH_ZIP"])
    folder = Path.home() / ".m2/repository/org/opensearch/distribution/integ-test-zip/opensearch"
    found = sorted(folder.glob("*/opensearch-*.zip"))
    if not found:
        sys.exit("no OpenSearch archive: fetch it by Maven or set OPENSEARCH_ZIP")
    return found[-1]


def java_home() -> Path:
    """A JDK of 21 or later."""
    homes = [Path(os.environ["JAVA_HOME"])] if "JAVA_HOME" in os.environ else []
    homes += sorted(Path("/usr/lib/jvm").glob("*"), reverse=True)
    for home in homes:
        release = home / "release"
        if release.is_file():
            version = release.read_text().partition('JAVA_VERSION="')[2].partition('"')[0]
            if version and int(version.partition(".")[0]) >= 21:
                return home
    sys.exit("no JDK of 21 or later: set JAVA_HOME")


class Server:
    """OpenSearch on a free port of loopback, in a temporary folder, as an unprivileged user."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="opensearch-"))
        with zipfile.ZipFile(server_zip()) as archive:
            archive.extractall(self.folder)
        home = next(self.folder.iterdir())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (home / "config" / "opensearch.yml").write_text(
            f"network.host: 127.0.0.1\nhttp.port: {self.port}\ntransport.port: 0\ndiscovery.type: single-node\n"
            "cluster.routing.allocation.disk.threshold_enabled: false\n"
        )
        (home / "bin" / "opensearch").chmod(0o755)
        for script in (home / "bin").iterdir():
            script.chmod(0o755)
        (self.folder / "tmp").mkdir()
        root = os.geteuid() == 0
        if root:
            for path in [self.folder, *self.folder.rglob("*")]:
                os.chown(path, NOBODY, NOBODY)
        environment = os.environ | {
            "OPENSEARCH_JAVA_HOME": str(java_home()), "JAVA_HOME": str(java_home()), "HOME": str(self.folder),
            "OPENSEARCH_TMPDIR": str(self.folder / "tmp"),
            "OPENSEARCH_JAVA_OPTS": "-Xms1g -Xmx1g",
        }  # fmt: skip
        self.process = subprocess.Popen(
            ["timeout", "600", str(home / "bin" / "opensearch")], env=environment, cwd=home,
            stdout=(self.folder / "log").open("w"), stderr=subprocess.STDOUT,
            **({"user": NOBODY, "group": NOBODY} if root else {}),
        )  # fmt: skip
        deadline = time.monotonic() + 300
        while True:
            try:
                self.version = self.ask("GET", "/")["version"]["number"]
                return
            except (urllib.error.URLError, ConnectionError):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    tail = (self.folder / "log").read_text()[-2000:]
                    self.stop()
                    sys.exit(f"the server did not start:\n{tail}")
                time.sleep(1.0)

    def ask(self, method: str, path: str, body: Any = None, *, lines: bool = False) -> Any:
        """The JSON answer to a request."""
        data = None if body is None else (body if lines else json.dumps(body)).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, method=method)
        request.add_header("Content-Type", "application/x-ndjson" if lines else "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def hits(self, query: Any) -> dict[str, float]:
        """Scores by document, best first."""
        answer = self.ask("POST", "/cranfield/_search", {"query": query, "size": DEPTH, "_source": False})
        return {hit["_id"]: hit["_score"] for hit in answer["hits"]["hits"]}

    def stop(self) -> None:
        """End the server and remove its folder."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def run() -> None:
    folder = Path(os.environ["TRUERANK_DATA"]) / "cranfield"
    topics = [(query.id, " ".join(query.text.values())) for query in read_queries(folder / "cran.qry.gz")]
    qrels = read_judgements(folder / "cranqrel.gz")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server stops then too
    server = Server()
    try:
        lines = []
        for document in read_documents(folder / "cran.all.1400.gz"):
            fields = {name: document.text.get(name, "") for name in ("title", "text")}
            lines += [json.dumps({"index": {"_id": document.id}}), json.dumps(fields)]
        server.ask("PUT", "/cranfield", {"settings": {"number_of_shards": 1, "number_of_replicas": 0}})
        answer = server.ask("POST", "/cranfield/_bulk?refresh=true", "\n".join(lines) + "\n", lines=True)
        assert not answer["errors"], answer

        def parts(text: str) -> dict[str, Any]:
            return {field: {"match": {field: text}} for field in ("title", "text")}

        lists: dict[str, dict[str, dict[str, float]]] = {"title": {}, "text": {}}
        for topic, text in topics:
            for field, query in parts(text).items():
                lists[field][topic] = server.hits(query)
        pool = RunPool(lists, qrels)
        train, test = np.arange(0, pool.n_queries, 2), np.arange(1, pool.n_queries, 2)
        model = RunFusion(nonnegative=True, features="score").fit(pool.take(train))
        weights = {name: round(weight, 4) for name, weight in model.run_weights().items()}
        print(f"OpenSearch {server.version}, {len(lines) // 2} documents, {pool.n_queries} topics; weights {weights}\n")
        held_out = pool.take(test)
        fused = model.predict(held_out, depth=None).to_dict()
        texts = dict(topics)
        ranks = same = inverted = 0
        largest = 0.0
        for topic, ours in fused.items():
            exported = export_fusion(model, "bool-query", queries=parts(texts[topic]))
            theirs = server.hits(json.loads(exported)["query"])
            assert theirs.keys() == ours.keys()
            largest = max(largest, max(abs(theirs[name] - ours[name]) for name in theirs))
            ranks += len(theirs)
            same += sum(a == b for a, b in zip(theirs, ours))
            order = np.array([ours[name] for name in theirs])
            inverted += int((np.diff(order) > 1e-5).sum())
        print(
            f"{len(fused)} held-out topics, {ranks} ranks: the same document at {same}; neighbours in the other order "
            f"by more than 1e-5: {inverted}; scores differ by at most {largest:.2g}\n"
            f"certificate: {certify_fusion(model, 'bool-query', held_out)}\n"
        )
        print(cross_validate_fusion(pool, model, measures="AP"))
    finally:
        server.stop()


if __name__ == "__main__":
    run()
