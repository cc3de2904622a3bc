"""The tutorial for search engineers, from a Quepid export to a verified model and a second round of judging.

The engine's answers are those of OpenSearch 3.6.0 with its LTR plugin, in `search_engineer.json.xz`, and without it, in
`search_engineer_plain.json.xz`. Where TRUERANK_LTR_PLUGIN names the plugin's archive, a real server is asked.
`PYTHONPATH=src:.:tests python tests/docs/test_search_engineer.py` writes the answers anew, with that variable those of
the engine with the plugin, and prints what the commands print.
"""

import hashlib
import json
import lzma
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import pytest

from truerank import read_qrels, read_run
from truerank.cli import main
from truerank.core.errors import EngineError
from truerank.io.engine import Engine, checked

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "search-engineer.md"
ANSWERS = {
    kind: Path(__file__).parent / f"search_engineer{end}.json.xz" for kind, end in (("ltr", ""), ("painless", "_plain"))
}
SHOP = ROOT / "examples" / "shop" / "make_shop.py"
URL = "http://localhost:9200"


def commands():
    """The commands of the page with what they print: (words, lines)."""
    found = []
    for block in re.findall(
        r"runs it with the answers of an engine -->\n```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    ):
        for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            found.append((shlex.split(command), lines))
    return found


def key_of(method, path, body):
    """A request in short. The model in a request is not part of it: its last digits may differ between processors."""
    text = json.dumps(
        [method, path, None if "_createmodel" in path or "_scripts" in path else bare(body)], sort_keys=True
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def bare(body):
    """A body without the parameters of a stored script, which are the model."""
    if isinstance(body, dict):
        return {key: bare(own) for key, own in body.items() if not (key == "params" and "id" in body)}
    return [bare(one) for one in body] if isinstance(body, list) else body


def replayed(monkeypatch, kind):
    answers, sent = defaultdict(list), {}
    for key, answer in json.loads(lzma.decompress(ANSWERS[kind].read_bytes())):
        answers[key].append(answer)

    def request(engine, method, path, body=None, missing_ok=False, form=None):
        held = answers[key_of(method, path, body)]
        assert held, f"a request that was not recorded: {method} {path} {str(body)[:200]}"
        answer = held.pop(0) if len(held) > 1 else held[0]
        if path.endswith("_createmodel"):
            sent["definition"] = body["model"]["model"]["definition"]
        elif method == "PUT" and path.startswith("_scripts"):
            sent["source"] = body["script"]["source"]
        elif path.startswith("_scripts") and sent and answer:
            answer["script"]["source"] = sent["source"]
        elif path.startswith("_ltr/_model") and sent and answer:  # what the engine holds is what it was sent
            answer["_source"]["model"]["model"]["definition"] = sent["definition"]
        if isinstance(answer, str):
            raise EngineError(answer, code="engine-refused")
        return None if missing_ok and answer is None else checked(answer, form)

    monkeypatch.setattr(Engine, "request", request)


def run_all(capture, kind, url=URL):
    """Run the commands of the page; `capture` returns what was printed since it was last called.

    Without the plugin, the model is a script: the page's line of the stored model then starts with `painless`.
    """
    shop = runpy.run_path(str(SHOP))
    for words, lines in commands():
        if words[0] == "python":
            assert words[1] == "examples/shop/make_shop.py"
            if words[2] == "rate" or url != URL:
                shop["main"](words[2].replace(URL, url), words[3])
            else:
                shop["export"](shop["products"](), words[3])
            continue
        capture()
        assert main([word.replace(URL, url) for word in words[1:]]) == 0, words
        printed = ["".join(line.split()) for line in capture().replace(url, URL).splitlines()]
        for line in lines:
            line = re.sub(r"^ltr (?=.*stored)", f"{kind} ", line)
            pattern = ".*".join(re.escape("".join(piece.split())) for piece in line.split("…"))
            assert any(re.fullmatch(pattern, own) for own in printed), (words, line, printed)


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.filterwarnings("ignore")
def test_the_tutorial_with_the_answers_of_a_real_engine(monkeypatch, tmp_path, capfd, kind):
    monkeypatch.chdir(tmp_path)
    replayed(monkeypatch, kind)
    run_all(lambda: "".join(capfd.readouterr()), kind)
    before, after = (read_run(f"runs/{own}-shop-1.run").to_dict() for own in ("without", "with"))
    assert before.keys() == after.keys() == read_qrels("shop.csv").to_dict().keys()
    assert not Path("rows.parquet.missing.csv").exists()


def test_the_tutorial_has_at_most_twelve_commands():
    assert 8 <= len(commands()) <= 12


def server():
    from benchmarks.search_server import SearchServer

    plugin = os.environ.get("TRUERANK_LTR_PLUGIN")
    return SearchServer("opensearch", [Path(plugin)] if plugin else [])


@pytest.mark.skipif("TRUERANK_LTR_PLUGIN" not in os.environ, reason="TRUERANK_LTR_PLUGIN names no archive")
@pytest.mark.filterwarnings("ignore")
def test_the_tutorial_with_a_real_engine(monkeypatch, tmp_path, capfd):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(tmp_path)
    with server() as running:
        run_all(lambda: "".join(capfd.readouterr()), "ltr", running.url)


def record():
    """Run the page's commands with a real engine, print what they print, and write the answers down."""
    talk, ask = [], Engine.request

    def request(engine, method, path, body=None, missing_ok=False, form=None):
        try:
            answer = ask(engine, method, path, body, missing_ok, form)
        except EngineError as error:
            talk.append([key_of(method, path, body), str(error).replace(engine.url, URL)])
            raise
        talk.append([key_of(method, path, body), answer])
        return answer

    Engine.request = request
    with server() as running, tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for words, _ in commands():
            words = [word.replace(URL, running.url) for word in words]
            print("$", shlex.join(words).replace(running.url, URL), flush=True)
            start = time.monotonic()
            if words[0] == "python":
                subprocess.run([sys.executable, str(SHOP), *words[2:]], check=True)
            elif code := main(words[1:]):
                sys.exit(f"exit code {code}")
            print(f"[{time.monotonic() - start:.1f} s]\n", flush=True)
        os.chdir("/")
    text = json.dumps(talk, separators=(",", ":"))
    path = ANSWERS["ltr" if "TRUERANK_LTR_PLUGIN" in os.environ else "painless"]
    path.write_bytes(lzma.compress(text.encode(), preset=9))
    print(f"{len(talk)} requests, {len(text) / 1e6:.1f} MB, stored in {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    record()
