"""Surface: names of files that are not UTF-8, or that hold control characters."""

from __future__ import annotations

import os

import numpy as np
import pytest

from support.processes import truerank
from truerank import RidgeRanker, load_sample, save_model, write_letor

NAMES = [b"caf\xe9", b"\xff\xfe", b"a\nb\t\x1b[2J"]
COMMANDS = [
    "report --qrels q --run {a}.run b.run -o {a}.html",
    "report {a}.json --data {a}.txt --title {a} -o r.html",
    "fuse {a}.run b.run --method rrf -o {a}.fused",
    "fuse {a}.run b.run --qrels q --model m.json --json -o {a}.fused",
    "compare --qrels q {a}.run b.run",
    "compare --qrels q b.run {a}.run --baseline {a} --json",
    "compare {a}.json --data {a}.txt --scores {a}.scores",
    "evaluate --qrels q {a}.run --json --per-query",
    "evaluate {a}.json --data {a}.txt --json",
    "judge plan {a}.run b.run --budget 24 -o {a}.csv --page {a}.page",
    "predict {a}.json {a}.txt -o {a}.out",
    "export {a}.json --to solr -o {a}.out --json",
    "text features --runs {a}.run b.run -o {a}.out",
    "train {a}.txt --ranker ridge --model {a}.new --json",
    "split {a}.txt -o {a}.folder --json",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = os.fsencode(tmp_path_factory.mktemp("names"))
    train, data = (load_sample().take_queries(np.arange(start, start + 12)) for start in (0, 12))
    run = b"".join(b"%d Q0 %s 1 2 x\n%d Q0 %s 2 1 x\n" % (q, a, q, b) for q in range(12) for a, b in [(b"x", b"y")])
    for name in (*NAMES, b"b"):
        for ending, content in ((b".run", run), (b".scores", b"1\n" * data.n_rows)):
            try:
                with open(os.path.join(folder, name + ending), "wb") as stream:
                    stream.write(content)
            except OSError as error:
                pytest.skip(f"{name!r} is no name of a file here: {error.strerror}")
        save_model(RidgeRanker().fit(train), os.fsdecode(os.path.join(folder, name + b".json")))
        write_letor(data, os.fsdecode(os.path.join(folder, name + b".txt")))
    with open(os.path.join(folder, b"q"), "wb") as stream:
        stream.write(b"".join(b"%d 0 x %d\n%d 0 y %d\n" % (q, q % 2, q, 1 - q % 2) for q in range(12)))
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_no_name_of_a_file_is_an_error_inside(made, command):
    if command.startswith("report"):
        pytest.importorskip("vl_convert")
    name = NAMES[COMMANDS.index(command) % len(NAMES)]
    words = [os.fsdecode(word.encode().replace(b"{a}", name)) for word in command.split()]
    done = truerank(*words, cwd=made)
    assert done.returncode in (0, 3), (words, done.stderr)
    done.stdout.decode("utf-8")
