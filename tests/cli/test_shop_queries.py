"""Ordinary shop queries as query ids: blanks, quotation marks, emoji, Arabic, Japanese, 200 characters."""

import csv
import json
import random
import shlex
from pathlib import Path

import pytest

from truerank import read_qrels, read_run, write_qrels, write_run
from truerank.cli import main
from truerank.io.trec import as_qrels, as_run

QUERIES = [
    "red shoes", 'tv 55" 4k, cheap', "it's \"new\"", "👟 running", "أحذية حمراء", "赤い 靴", "a\tb  c ",
    "#1 gift; -50%", "wide " * 40, "plain", "'; DROP", "back\\slash \\n", "two\nlines",
]  # fmt: skip


@pytest.fixture(params=["run", "csv", "jsonl"])
def shop(request, tmp_path, monkeypatch):
    """Two runs, qrels and a click log; the runs and qrels as TREC text or as tables."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(7)
    documents = [f"sku-{k}" for k in range(12)]
    grades = {query: {one: draw.randrange(4) for one in documents} for query in QUERIES}
    write_qrels(as_qrels(grades), f"qrels.{request.param}")
    for name, noise in (("old", 3.0), ("new", 1.0)):
        run = as_run({q: {d: g + noise * draw.random() for d, g in own.items()} for q, own in grades.items()}, name)
        write_run(run, f"{name}.{request.param}", tag=name)
    rows = [
        {"impression": f"{place}-{k}", "query": query, "document": one, "position": rank + 1,
         "clicked": int(draw.random() < (grades[query][one] + 1) / (5 + rank))}
        for place, query in enumerate(QUERIES) for k in range(30)
        for rank, one in enumerate(draw.sample(documents, 5))
    ]  # fmt: skip
    Path("log.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return request.param


def test_queries_keep_their_text(shop):
    assert read_qrels(f"qrels.{shop}").query_ids.tolist() == QUERIES
    assert read_run(f"old.{shop}").query_ids.tolist() == QUERIES
    assert Path("topics.tsv").exists() == (shop == "run")
    if shop == "run":  # other programs read the same files
        lines = Path("old.run").read_text().splitlines()
        assert all(len(line.split()) == 6 for line in lines)
        assert len({line.split()[0] for line in lines}) == len(QUERIES)


def run(command, capsys):
    capsys.readouterr()
    assert main(shlex.split(command)) == 0, command
    return capsys.readouterr()


def test_every_command_shows_the_text(shop, capsys):
    runs = f"old.{shop} new.{shop}"
    found = json.loads(run(f"evaluate --qrels qrels.{shop} new.{shop} --json", capsys).out)
    assert found
    run(f"compare --qrels qrels.{shop} {runs}", capsys)
    run(f"judge plan {runs} --budget 60 -o plan.csv", capsys)
    with open("plan.csv", encoding="utf-8", newline="") as stream:
        assert {row["topic"] for row in csv.DictReader(stream)} <= set(QUERIES)
    run(f"judge estimate {runs} --plan plan.csv --human qrels.{shop}", capsys)
    run(f"judge agree qrels.{shop} qrels.{shop}", capsys)
    run(f"fuse {runs} --method rrf -o fused.{shop}", capsys)
    assert read_run(f"fused.{shop}").query_ids.tolist() == QUERIES
    run(f"clicks interleave {runs} -o lists.jsonl", capsys)
    assert [json.loads(line)["query"] for line in Path("lists.jsonl").read_text().splitlines()] == QUERIES
    value = run(f"clicks value log.jsonl --runs {runs} --cutoff 5 --json", capsys).out
    assert json.loads(value)
    pytest.importorskip("vl_convert")
    run(f"report --qrels qrels.{shop} {runs} -o page.html", capsys)
    page = Path("page.html").read_text()
    assert "أحذية حمراء" in page
    assert "赤い 靴" in page


def test_texts_are_written_once_and_never_over_others(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lists = as_run({"red shoes": {"d": 1.0}, "7": {"d": 1.0}}, "x")
    lists.write("a.run")
    first = Path("topics.tsv").read_text()
    lists.write("b.run")
    assert Path("topics.tsv").read_text() == first
    as_run({"blue hat": {"d": 1.0}}, "x").write("c.run")
    assert Path("topics.tsv").read_text().startswith(first)
    assert read_run("a.run").query_ids.tolist() == ["red shoes", "7"]
    # A file of this name of another tool has no effect on ids.
    Path("topics.tsv").write_text("7\tred shoes\nt0123456789abcdef\tother\n")
    Path("d.run").write_text("7 Q0 d 1 1 x\nt0123456789abcdef Q0 d 1 1 x\n")
    assert read_run("d.run").query_ids.tolist() == ["7", "t0123456789abcdef"]
    Path("qrels").write_text("7 0 d 1\n")
    assert read_qrels("qrels").texts == {"7": "red shoes"}
    # Ids that are lost are the same in all folders.
    assert main(["fuse", "a.run", "--method", "rrf", "-o", "-"]) == 1
    assert "topics.tsv" in capsys.readouterr().err


def test_a_folder_of_runs_may_hold_the_texts_of_its_topics(tmp_path, capsys):
    for name, best in (("a", "d1"), ("b", "d2")):
        write_run({query: {best: 2.0, "d3": 1.0} for query in ("red shoes", "blue hat")}, tmp_path / f"{name}.run")
    assert (tmp_path / "topics.tsv").is_file()
    assert main(["judge", "plan", str(tmp_path), "-o", str(tmp_path / "plan.csv"), "--budget", "6"]) == 0
    assert "red shoes" in (tmp_path / "plan.csv").read_text()
