"""The base layer, NumPy and SciPy alone, does what the installation page promises, with the output of a full one."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import truerank
from truerank.cli import main
from truerank.cli.fuse import METHODS
from truerank.core.checks import as_array
from truerank.core.errors import DataFileError
from truerank.data.columns import take_columns
from truerank.io import tables

RUNNER = Path(__file__).parents[1] / "support" / "layers.py"


def run(layers: str, folder: Path, *code: str, commands: list[str] | None = None) -> subprocess.CompletedProcess:
    """Run commands, or code, in a process that finds no library outside the layers."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", str(RUNNER), layers, *code], input=json.dumps(commands),
        cwd=folder, env=os.environ | {"PYTHONPATH": ""}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A folder with runs, qrels, rows as LETOR text and as CSV, scores, and files of trained systems."""
    folder = tmp_path_factory.mktemp("files")
    with contextlib.chdir(folder), contextlib.redirect_stderr(io.StringIO()):
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(["sample", "."]) == 0
            promise = ["--at-most", "0.3", "-o", "cutoff.json"]
            assert main(["cutoff", "fit", "--runs", "bm25.run", "--qrels", "qrels.txt", *promise]) == 0
            assert main(["judge", "plan", "few-bm25.run", "few-latent.run", "-o", "judge.csv"]) == 0
        data = truerank.read_letor("test.txt.gz")
        few = take_columns(data, [0, 1, 2])
        for name in ("rows.csv", "rows.tsv", "rows.parquet"):
            truerank.write_table(few, name)
        truerank.write_letor(few, "rows.txt")
        Path("scores.txt").write_text("".join(f"{score!r}\n" for score in data.restore(data.X[:, 1]).tolist()))
        truerank.save_model(truerank.RidgeRanker().fit(few), "model.json")
    return folder


BASE = {
    "evaluate": "evaluate bm25.run --qrels qrels.txt --measures AP nDCG@10 RR bpref --per-query",
    "evaluate conventions": "evaluate bm25.run --qrels qrels.txt --every-convention",
    "evaluate explained": "evaluate bm25.run --qrels qrels.txt --explain 1",
    "evaluate CSV": "evaluate --data rows.csv --scores scores.txt --json",
    "evaluate TSV by a column": "evaluate --data rows.tsv --scores bm25.porter-stop.all",
    "evaluate rows": "evaluate --data test.txt.gz --scores scores.txt",
    **{
        f"compare, {test}": f"compare bm25.run latent.run --qrels qrels.txt --test {test}"
        for test in ("randomisation", "t", "wilcoxon", "sign")
    },
    **{
        f"compare, {how}": f"compare bm25.run latent.run feedback.run --qrels qrels.txt --all-pairs --correction {how}"
        for how in ("max-t", "holm", "bonferroni", "benjamini-hochberg", "none")
    },
    "compare CSV": "compare --data rows.csv --scores scores.txt --baseline bm25.porter-stop.all --margin 0.02",
    "compare, LaTeX": "compare bm25.run latent.run --qrels qrels.txt --format latex",
    "power": "power bm25.run latent.run --qrels qrels.txt",
    "judge plan": "judge plan few-bm25.run few-latent.run --budget 50 -o OUT.csv",
    "judge estimate": "judge estimate few-bm25.run few-latent.run --plan judge.csv --human few-human.txt",
    "judge agree": "judge agree few-human.txt few-judge.txt",
    "trec-eval": "trec-eval -q -m all_trec qrels.txt bm25.run",
    **{f"fuse, {rule}": f"fuse few-bm25.run few-latent.run --method {rule}" for rule in METHODS},
    "cutoff fit": "cutoff fit --runs bm25.run --qrels qrels.txt --at-most 0.3 -o OUT.cutoff.json",
    "cutoff fit on CSV": "cutoff fit --data rows.csv --scores scores.txt --loss missed-relevant --at-most 0.5 -o OUT.j",
    "cutoff apply": "cutoff apply cutoff.json --runs bm25.run",
    "judging page": "judge plan few-bm25.run few-latent.run -o OUT.2.csv --page OUT.html",
    "gate": "gate bm25.run --baseline latent.run --gold qrels.txt --at-least nDCG@10=0.1 --margin 0.5",
    "describe CSV": "describe rows.csv",
    "split CSV": "split rows.csv --test 0.2 -o OUT.parts --replace",
    "convert to CSV": "convert rows.txt OUT.csv",
    "convert from CSV": "convert rows.csv OUT.txt",
}


@pytest.fixture(scope="module")
def in_base(files) -> dict[str, tuple[int, str, str]]:
    done = run("base", files, commands=[command.replace("OUT", "base") for command in BASE.values()])
    assert done.returncode == 0, done.stderr
    return dict(zip(BASE, json.loads(done.stdout)))


@pytest.mark.parametrize("name", BASE)
def test_a_command_of_the_base_has_the_output_of_a_full_installation(name, files, in_base, capsys, monkeypatch):
    monkeypatch.chdir(files)
    code = main(BASE[name].replace("OUT", "full").split())
    out, err = capsys.readouterr()
    assert code == 0, err
    code, own, err = in_base[name]
    assert (code, own.replace("base.", "full.")) == (0, out), err


CELLS = (
    "1", "0", "-3", "007", " 1 ", "\t2", "0x1F", "9223372036854775807", "9223372036854775808", "9007199254740993",
    "1.5", ".5", "2.", "+.5", "1e5", "1E-3", "inf", "-inf", "nan", "NaN", "NA", "", "null", "true", "False", "TRUE",
    "x", "12:30", "2020-01-01", "2020-01-01 10:00", '"a,b"', '"a""b"', '""', '"1"', '"tw\no"', 'a"b', '"a"b', "ü",
    "1_0",
    "- 1", "0xFFFFFFFFFFFFFFFF", "#N/A", "1e400", "nan(1)", "1,5", "1;5", " ", "\x0b1",
)  # fmt: skip


def text_of_a_table(rng: random.Random) -> bytes:
    n, mark, end = rng.randint(1, 4), rng.choice(",,;\t"), rng.choice(["\n", "\r\n"])
    pools = [rng.sample(CELLS, rng.randint(1, 3)) for _ in range(n)]
    lines = [rng.sample(["qid", "y", "docid", "a b", '"q,x"', "s"], n)]
    for _ in range(rng.randint(1, 6)):
        lines.append([rng.choice(pool) for pool in pools])
        if rng.random() < 0.05:
            lines[-1].append("more")
        if rng.random() < 0.05:
            lines.append([])
    return (rng.choice(["", "", "", "\ufeff"]) + end.join(map(mark.join, lines)) + rng.choice(["", end])).encode()


def test_the_readers_of_both_layers_agree_on_a_thousand_random_tables(tmp_path, monkeypatch):
    rng, accepted = random.Random(0), 0
    path = tmp_path / "table.csv"
    for _ in range(1_000):
        path.write_bytes(text_of_a_table(rng))
        texts, found = rng.sample(["qid", "docid"], rng.randint(0, 2)), []
        for there in (True, False):
            with monkeypatch.context() as patch:
                patch.setattr(tables, "find_spec", lambda name, there=there: there or None)
                try:
                    table = tables.read_file(path, "csv", texts)
                except DataFileError:
                    found.append(None)
                else:
                    columns = [as_array(table.column(k), "") for k in range(table.num_columns)]
                    found.append([list(table.column_names), *((own.dtype.kind, own.tolist()) for own in columns)])
        assert repr(found[0]) == repr(found[1]), path.read_bytes()
        accepted += found[0] is not None
    assert 500 < accepted < 1_000


def test_rows_written_by_either_layer_are_read_as_the_same_rows(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    special = [0.0, 1.0, 2.5, np.nan, 1e15, 1e16, 99999999.5, 1e-5, 1e300, 5e-324, 1 / 3]
    for dtype in (np.float32, np.float64):
        for qid in ([1, 1, 2, 2, 3], ["a", "a", "b,c", 'd"e', "ü"]):
            with np.errstate(over="ignore"):
                X = np.where(np.isinf(X := rng.choice(special, (5, 3)).astype(dtype)), 0, X)
            data = truerank.RankingData(
                X, [0, 1, 2, 0, 1], qid, doc_ids=list("abcde"), comments=["x,y", '"', "z", "", "w"]
            )
            read = []
            for there in (True, False):
                with monkeypatch.context() as patch:
                    patch.setattr(tables, "find_spec", lambda name, there=there: there or None)
                    truerank.write_table(data, tmp_path / "rows.csv")
                read.append(truerank.read_table(tmp_path / "rows.csv", missing="nan", dtype=dtype))
            for one in read:
                np.testing.assert_array_equal(one.X, data.X)
                assert (one.y.tolist(), one.qid.tolist(), one.doc_ids.tolist(), one.comments.tolist()) == (
                    data.y.tolist(), data.qid.tolist(), data.doc_ids.tolist(), data.comments.tolist()
                )  # fmt: skip


def test_the_decisions_of_probabilities_are_functions_of_the_base(files):
    code = """
import json, truerank
from truerank.calibration.decisions import cost_threshold, decide, expected_relevant
p = [0.1, 0.2, 0.7]
cutoff = truerank.Cutoff("missed-relevant", at_most=0.25).fit([0.9, 0.7, 0.4, 0.8, 0.3, 0.6], [1, 0, 1, 1, 0, 1],
                                                               qid=[1, 1, 1, 2, 2, 3])
print(json.dumps([cost_threshold(cost_fn=5), decide(p, cost_fn=5).tolist(),
                  expected_relevant(p, 2).tolist(), cutoff.depth([0.9, 0.5, 0.2], qid=[7, 7, 8]).tolist()]))
"""
    done = run("base", files, code)
    assert done.returncode == 0, done.stderr
    threshold, decisions, expected, depth = json.loads(done.stdout)
    assert threshold == pytest.approx(1 / 6)
    assert (decisions, expected, depth) == ([0, 1, 1], [pytest.approx(0.9)], [2, 0])
