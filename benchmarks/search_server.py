"""OpenSearch or Elasticsearch on loopback for a benchmark: started from its archive, stopped and removed at the end.

The archives are the integ-test zips of Maven Central: `org.opensearch.distribution.integ-test-zip:opensearch:3.6.0:zip`
and `org.elasticsearch.distribution.integ-test-zip:elasticsearch:8.19.21:zip`. They are found in `~/.m2` or by
OPENSEARCH_ZIP and ELASTICSEARCH_ZIP. A JDK of 21 or later is found by JAVA_HOME or under /usr/lib/jvm.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NOBODY = 65534
SECONDS = 900  # after which the server stops by itself


def archive_of(engine: str) -> Path:
    """The server's archive."""
    variable = f"{engine.upper()}_ZIP"
    if variable in os.environ:
        return Path(os.environ[variable])
    folder = Path.home() / f".m2/repository/org/{engine}/distribution/integ-test-zip/{engine}"
    found = sorted(folder.glob(f"*/{engine}-*.zip"))
    if not found:
        sys.exit(f"no archive of {engine}: fetch it by Maven or set {variable}")
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


class SearchServer:
    """A server on a free port of loopback, in a temporary folder, as an unprivileged user.

    Parameters
    ----------
    engine : {"opensearch", "elasticsearch"}
    plugins : sequence of paths
        Archives of plugins, put where the engine looks for them.
    """

    def __init__(self, engine: str = "opensearch", plugins: Sequence[Path] = ()) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"{engine}-"))
        with zipfile.ZipFile(archive_of(engine)) as archive:
            archive.extractall(self.folder)
        home = next(self.folder.iterdir())
        for plugin in plugins:
            with zipfile.ZipFile(plugin) as archive:
                archive.extractall(home / "plugins" / plugin.stem)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        (home / "config" / f"{engine}.yml").write_text(
            f"network.host: 127.0.0.1\nhttp.port: {self.port}\ntransport.port: 0\ndiscovery.type: single-node\n"
            "cluster.routing.allocation.disk.threshold_enabled: false\n"
            + "xpack.security.enabled: false\n"
            * (engine == "elasticsearch")
        )
        for script in (home / "bin").iterdir():
            script.chmod(0o755)
        (self.folder / "tmp").mkdir()
        root = os.geteuid() == 0
        if root:
            for path in [self.folder, *self.folder.rglob("*")]:
                os.chown(path, NOBODY, NOBODY)
        short = {"opensearch": "OPENSEARCH", "elasticsearch": "ES"}[engine]
        environment = os.environ | {
            f"{short}_JAVA_HOME": str(java_home()), "JAVA_HOME": str(java_home()), "HOME": str(self.folder),
            f"{short}_TMPDIR": str(self.folder / "tmp"), f"{short}_JAVA_OPTS": "-Xms1g -Xmx1g",
        }  # fmt: skip
        with (self.folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                ["timeout", str(SECONDS), str(home / "bin" / engine)], env=environment, cwd=home, stdout=log,
                stderr=subprocess.STDOUT, **({"user": NOBODY, "group": NOBODY} if root else {}),
            )  # fmt: skip
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server stops with the benchmark then too
        deadline = time.monotonic() + 600
        while True:
            try:
                nodes = self.ask("GET", "/_nodes?filter_path=nodes.*.version")["nodes"]  # not all archives serve /
                self.version = f"{engine} {next(iter(nodes.values()))['version']}"
                return
            except (urllib.error.URLError, ConnectionError):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    tail = (self.folder / "log").read_text()[-3000:]
                    self.stop()
                    sys.exit(f"the server did not start:\n{tail}")
                time.sleep(1.0)

    def __enter__(self) -> SearchServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(self, method: str, path: str, body: Any = None, *, lines: bool = False) -> Any:
        """The JSON answer to a request."""
        data = None if body is None else (body if lines else json.dumps(body)).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        request.add_header("Content-Type", "application/x-ndjson" if lines else "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def hits(self, index: str, query: Any, size: int, **more: Any) -> dict[str, float]:
        """Scores by document, best first; `more` joins the body of the request."""
        answer = self.ask("POST", f"/{index}/_search", {"query": query, "size": size, "_source": False} | more)
        return {hit["_id"]: hit["_score"] for hit in answer["hits"]["hits"]}

    def stop(self) -> None:
        """End the server and remove its folder."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
