"""`truerank convert` and `truerank describe`."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import truerank
from support.refusals import refused
from truerank import read_letor, read_qrels, read_table
from truerank.cli import main
from truerank.data.samples import sample_path

TEXT = "2 qid:1 1:0.5 2:1 #docid = A x y\n0 qid:1 1:0.25 2:0 #docid = B\n1 qid:2 1:0.125 2:3 #docid = A\n"


@pytest.fixture
def letor(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow", "a.tsv.gz"])
def test_through_a_table_and_back(letor, tmp_path, name, capsys):
    pytest.importorskip("pyarrow")
    assert main(["convert", str(letor), str(tmp_path / name)]) == 0
    assert "3 rows, 2 queries, 2 features" in capsys.readouterr().err
    assert main(["convert", str(tmp_path / name), str(tmp_path / "b.txt.gz")]) == 0
    again, first = read_letor(tmp_path / "b.txt.gz"), read_letor(letor)
    assert again.X.tolist() == first.X.tolist()
    assert again.doc_ids.tolist() == first.doc_ids.tolist()
    assert again.comments.tolist() == first.comments.tolist()
    assert again.query_ids.tolist() == [1, 2]


def test_to_stdout_and_to_qrels(letor, tmp_path, capfdbinary):
    assert main(["convert", str(letor), "-"]) == 0
    assert capfdbinary.readouterr().out.decode() == TEXT
    assert main(["convert", str(letor), str(tmp_path / "q"), "--to", "qrels"]) == 0
    assert read_qrels(tmp_path / "q").to_dict() == {"1": {"A": 2, "B": 0}, "2": {"A": 1}}


def test_qrels_of_a_table_need_no_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("qid,y,docid,title\n1,2,d1,a cat\n1,0,d2,a dog\n")
    assert main(["convert", str(tmp_path / "t.csv"), str(tmp_path / "q"), "--to", "qrels"]) == 0
    assert read_qrels(tmp_path / "q").to_dict() == {"1": {"d1": 2, "d2": 0}}


@pytest.mark.parametrize(("kind", "ending"), [("lightgbm", "query"), ("xgboost", "group")])
def test_to_and_from_group_sizes(letor, tmp_path, kind, ending):
    out = tmp_path / "g.txt"
    assert main(["convert", str(letor), str(out), "--to", kind]) == 0
    assert out.read_text() == "2 1:0.5 2:1\n0 1:0.25 2:0\n1 1:0.125 2:3\n"
    assert (tmp_path / f"g.txt.{ending}").read_text() == "2\n1\n"
    back = tmp_path / "back.txt"
    assert main(["convert", str(out), str(back), "--groups", f"{out}.{ending}"]) == 0
    data = read_letor(back)
    assert data.qid.tolist() == [0, 0, 1]
    assert data.X.tolist() == read_letor(letor).X.tolist()


@pytest.mark.peers
def test_lightgbm_reads_what_convert_writes(letor, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    out = tmp_path / "g.txt"
    main(["convert", str(letor), str(out), "--to", "lightgbm"])
    dataset = lightgbm.Dataset(str(out), params={"verbose": -1, "min_data_in_bin": 1}).construct()
    assert dataset.get_group().tolist() == [2, 1]
    assert dataset.get_label().tolist() == [2, 0, 1]


def test_options_of_reading(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:1 1:NULL 2:0.1 # c d\n")
    out = tmp_path / "out.txt"
    assert main(["convert", str(path), str(out), "--missing", "nan", "--n-features", "3", "--no-comments"]) == 0
    assert out.read_text() == "1 qid:1 1:nan 2:0.1 3:0\n"
    assert main(["convert", str(path), str(out), "--missing", "nan", "--sparse", "--float32"]) == 0
    assert out.read_text() == "1 qid:1 1:nan 2:0.1 #c d\n"


def test_describe_json(tmp_path, capsys):
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_text("1 qid:1 1:1 2:5\n0 qid:2 1:2 2:5\n0 qid:1 1:3 2:5\n")
    b.write_text("2 qid:2 1:1\n")
    assert main(["describe", "--json", str(a), str(b)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["rows"], result["queries"], result["features"]) == (4, 3, 2)
    assert result["grades"] == {"0": 2, "1": 1, "2": 1}
    found = {(finding["code"], finding["count"]) for finding in result["findings"]}
    assert {("joined-query", 1), ("shared-query", 1), ("constant-feature", 1), ("different-width", 2)} <= found
    shared = next(finding for finding in result["findings"] if finding["code"] == "shared-query")
    assert shared["items"] == [2]
    assert "a.txt and " in shared["where"]


def test_describe_folds(tmp_path, capsys):
    for fold in (1, 2):
        folder = tmp_path / f"Fold{fold}"
        folder.mkdir()
        for name, query in (("train", fold), ("vali", 10 + fold), ("test", 1)):
            (folder / f"{name}.txt").write_text(f"1 qid:{query} 1:1\n0 qid:{query} 1:2\n")
    assert main(["describe", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    # Folds share queries with each other by nature; Fold1's training and test files must not.
    assert "  1  Fold1/test.txt and Fold1/train.txt: query 1\n" in out
    assert out.count(" and Fold") == 1


def test_describe_of_clean_data(tmp_path, capsys):
    path = tmp_path / "a.txt"
    path.write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    assert main(["describe", str(path)]) == 0
    assert "no remarks" in capsys.readouterr().out


def test_describe_real_folds(collections, capsys):
    assert main(["describe", "--json", str(collections / "letor4-mq2008")]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["rows"], result["queries"]) == (15_211, 784)
    counts: dict[str, int] = {}
    for finding in result["findings"]:
        counts[finding["code"]] = counts.get(finding["code"], 0) + finding["count"]
    assert counts["query-without-pairs"] == 220
    assert counts["identical-rows"] == 51
    assert counts["constant-feature"] == 30
    assert "shared-query" not in counts


@pytest.mark.parametrize("command", [["describe"], ["convert"]])
def test_small_files_need_neither_numba_nor_sklearn(command, tmp_path):
    argv = [*command, str(sample_path()), *([str(tmp_path / "o.txt")] if command == ["convert"] else [])]
    code = (
        f"import sys; from truerank.cli import main; code = main({argv!r});"
        "print(code, sorted({'numba', 'sklearn', 'pandas', 'scipy', 'pyarrow'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "0 []"


def test_tables_with_named_columns(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.csv"
    pandas.DataFrame({"topic": ["x", "x"], "rel": [1, 0], "name": ["a", "b"], "f": [0.5, np.nan]}).to_csv(
        path, index=False
    )
    columns = ["--query-column", "topic", "--grade-column", "rel", "--document-column", "name", "--missing", "nan"]
    assert main(["convert", str(path), str(tmp_path / "o.parquet"), *columns]) == 0
    data = read_table(tmp_path / "o.parquet", missing="nan")
    assert data.qid.tolist() == ["x", "x"]
    assert data.doc_ids.tolist() == ["a", "b"]
    assert main(["describe", str(path), *columns]) == 0
    assert "missing-value" in capsys.readouterr().out


def test_wide_data(tmp_path, capsys):
    path = tmp_path / "wide.txt"
    path.write_text("1 qid:1 1:1 90000:2\n0 qid:1 1:3\n")
    assert main(["describe", str(path)]) == 1
    assert "--sparse" in capsys.readouterr().err
    assert main(["describe", "--sparse", "--json", "--n-features", "90001", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["features"] == 90_001


BOOK = "query,docid,Ann,Bo\nred shoes,d1,3,2\nred shoes,d2,0,0\ntv,d3,1,\n"


def test_judgements_without_features_are_a_stage(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.csv").write_text(BOOK)
    (tmp_path / "case.json").write_text('{"queries": [{"query_text": "tv", "ratings": {"d1": 3, "d2": 0}}]}')
    (tmp_path / "ltr.txt").write_text("3 qid:1 # d1\ttv\n0 qid:1 # d2\ttv\n")
    for name in ("book.csv", "case.json", "ltr.txt"):
        assert main(["describe", name, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert "no-features" in [one["code"] for one in found["findings"]]
        assert main(["describe", name]) == 0
        assert f"truerank convert {name} rows.parquet --join" in capsys.readouterr().out
        assert main(["train", name, "--model", "m.json"]) == 1
        said = capsys.readouterr().err
        assert "no features" in said
        assert f"--qrels {name}" in said
    data = read_table(pytest.importorskip("pandas").DataFrame({"qid": [1, 1], "y": [1, 0], "docid": ["a", "b"]}))
    with refused(ValueError, code="no-features", argument="X"):
        truerank.ObliviousBoosting().fit(data)


def test_judgements_are_converted_and_joined(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.csv").write_text(BOOK)
    assert main(["convert", "book.csv", "q.txt"]) == 1
    assert "--aggregate median" in capsys.readouterr().err
    assert main(["convert", "book.csv", "q.txt", "--aggregate", "mean"]) == 0
    assert "agree for 1" in capsys.readouterr().err
    assert read_qrels("q.txt").grades.tolist() == [2.5, 0.0, 1.0]
    assert main(["convert", "q.txt", "again.csv"]) == 0
    assert read_qrels("again.csv").query_ids.tolist() == ["red shoes", "tv"]
    (tmp_path / "products.jsonl").write_text('{"sku": "d1", "price": 9.5, "stock": 3}\n{"sku": "d2", "price": null}\n')
    words = ["convert", "book.csv", "rows.csv", "--aggregate", "first", "--join", "products.jsonl", "--on", "sku"]
    assert main(words) == 0
    assert "d3" in capsys.readouterr().err  # the document that the catalogue lacks
    data = read_table(tmp_path / "rows.csv", missing="nan")
    assert data.feature_names == ["price", "stock"]
    np.testing.assert_array_equal(data.X, [[9.5, 3.0], [np.nan, np.nan]])


@pytest.mark.filterwarnings("always::UserWarning")
def test_grades_in_words_are_proposed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.csv").write_text("query,docid,rating\ntv,d1,Perfect\ntv,d2,Bad\ntv,d3,Good\ntv,d4,can't judge\n")
    assert main(["convert", "w.csv", "q.txt"]) == 1
    said = capsys.readouterr().err
    proposal = "Perfect=2 Good=1 Bad=0"
    assert f"--grades '{proposal}'" in said
    assert main(["convert", "w.csv", "q.txt", "--grades", proposal]) == 0
    assert "1 without a grade" in capsys.readouterr().err
    assert read_qrels("q.txt").to_dict() == {"tv": {"d1": 2, "d2": 0, "d3": 1}}
    assert main(["convert", "w.csv", "q.txt", "--grades", "Perfect=2 Good=1"]) == 1
    assert "line 3" in capsys.readouterr().err
    assert main(["convert", "w.csv", "q.txt", "--grades", "Perfect"]) == 1
    (tmp_path / "g.csv").write_text("query,docid,gain\ntv,d1,100\ntv,d2,10\ntv,d3,0\n")
    assert main(["convert", "g.csv", "q.txt"]) == 0
    assert "100=2" in capsys.readouterr().err


def test_commands_read_words_and_judges_themselves(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.csv").write_text(BOOK)
    (tmp_path / "r.csv").write_text("query,docid,score\nred shoes,d1,2\nred shoes,d2,1\ntv,d3,1\n")
    words = ["evaluate", "--qrels", "book.csv", "r.csv", "--measures", "nDCG@10", "--json"]
    assert main(words) == 1
    assert "Add --aggregate median" in capsys.readouterr().err
    assert main([*words, "--aggregate", "first"]) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)
    assert "Krippendorff" in found.err
    (tmp_path / "w.csv").write_text("query,docid,rating\nred shoes,d1,Good\nred shoes,d2,Bad\ntv,d3,Good\n")
    assert main(["evaluate", "--qrels", "w.csv", "r.csv", "--grades", "Good=1", "Bad=0"]) == 0
    assert main(["evaluate", "--qrels", "w.csv", "r.csv", "--explain", "tv", "--grades", "Good=1 Bad=0"]) == 0


def test_words_in_a_table_with_features(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"q{k // 4},d{k},{'Good' if k % 4 == 0 else 'Bad'},{k * 0.5}\n" for k in range(40))
    (tmp_path / "d.csv").write_text(f"qid,docid,y,bm25\n{rows}")
    assert main(["convert", "d.csv", "d.txt"]) == 1
    assert "--grades 'Good=1 Bad=0'" in capsys.readouterr().err
    assert main(["convert", "d.csv", "e.csv", "--grades", "Good=1", "Bad=0"]) == 0
    data = read_table("e.csv")
    assert (data.y[:4].tolist(), data.feature_names) == ([1.0, 0.0, 0.0, 0.0], ["bm25"])
    assert main(["describe", "d.csv", "--grades", "Good=1 Bad=0"]) == 0
    assert main(["train", "d.csv", "--model", "m.json", "--ranker", "ridge", "--grades", "Good=1 Bad=0"]) == 0
    assert main(["convert", "d.csv", "e.csv", "--grades", "Good=1"]) == 1
    assert read_table("d.csv", grades={"Good": 3, "Bad": 0}).y.max() == 3
