"""Features that an engine logged, in the files that shops have, are joined to judgements and trained on."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pandas
import pytest

from truerank import read_qrels
from truerank.cli import main
from truerank.core.errors import DataFileError

QUERIES = ["Gartenstuhl weiß", 'Schlauch 1/2"', "Leiter"]
DOCUMENTS = ["SKU-0012/A", "SKU-0013/B", "SKU-0014/C"]
JUDGED = [(query, document, (k + j) % 3) for k, query in enumerate(QUERIES) for j, document in enumerate(DOCUMENTS)]


def _values(query, document):
    n = len(query) + ord(document[-1])
    return {"title_bm25": n / 8, "rating_avg": None if n % 3 == 0 else n % 5 + 0.5, "stock": n}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    requests = [{"id": query, "ratings": [{"_index": "shop", "_id": document, "rating": grade}
                                          for own, document, grade in JUDGED if own == query]}
                for query in QUERIES]  # fmt: skip
    Path("judgements.json").write_text(json.dumps({"requests": requests}))
    flat = [{"query": query, "_id": document, **_values(query, document)} for query, document, _ in JUDGED]
    pandas.DataFrame([*flat, flat[0]]).to_csv("flat.csv", index=False)  # a row twice, and cells that are empty
    nested = [{"query": query, "doc_id": document, "grade": grade, "features": _values(query, document)}
              for query, document, grade in JUDGED]  # fmt: skip
    Path("nested.jsonl").write_text("\n".join(map(json.dumps, nested)))
    answers = []
    for query in QUERIES:
        hits = []
        for document in DOCUMENTS:
            log = [{"name": name, **({} if value is None else {"value": value})}
                   for name, value in _values(query, document).items()]  # fmt: skip
            hits.append({"_id": document, "_score": 1.5, "fields": {"_ltrlog": [{"main": log}]}})
        answers.append({"took": 1, "hits": {"total": {"value": 3}, "hits": hits}})
    lines = [json.dumps({"query": query, "response": answer}) for query, answer in zip(QUERIES, answers)]
    Path("answers.jsonl").write_text("\n".join(lines))
    Path("bare.jsonl").write_text("\n".join(map(json.dumps, answers)))
    return tmp_path


@pytest.mark.filterwarnings("always:.*equals the grades")
@pytest.mark.parametrize(("name", "absent"), [("flat.csv", None), ("nested.jsonl", None), ("answers.jsonl", 0)])
def test_logged_features_are_joined_without_naming_columns(shop, name, absent):
    assert main(["convert", "judgements.json", "rows.parquet", "--join", name]) == 0
    rows = pandas.read_parquet("rows.parquet")
    assert [*rows.columns] == ["qid", "y", "docid", "title_bm25", "rating_avg", "stock"]
    assert [*zip(rows.qid, rows.docid, rows.y)] == JUDGED
    for row in rows.itertuples():
        own = _values(row.qid, row.docid)
        assert (row.title_bm25, row.stock) == (own["title_bm25"], own["stock"])
        expected = absent if own["rating_avg"] is None else own["rating_avg"]
        assert pandas.isna(row.rating_avg) if expected is None else row.rating_avg == expected


def test_rows_that_differ_for_a_document_are_refused(shop, capsys):
    with Path("flat.csv").open("a") as stream:
        stream.write("Leiter,SKU-0014/C,9,9,9\n")
    assert main(["convert", "judgements.json", "rows.parquet", "--join", "flat.csv"]) == 1
    assert "'Leiter / SKU-0014/C' is in two rows" in capsys.readouterr().err


def test_answers_without_their_queries_are_refused(shop, capsys):
    assert main(["convert", "judgements.json", "rows.parquet", "--join", "bare.jsonl"]) == 1
    assert '{"query": …, "response": …}' in capsys.readouterr().err


@pytest.mark.filterwarnings("always:.*equals the grades")
def test_features_next_to_grades_are_read_by_the_proposed_command(shop, capsys):
    assert main(["train", "nested.jsonl", "--model", "model.json"]) == 1
    command = capsys.readouterr().err.partition("truerank convert ")[2]
    assert main(["convert", *shlex.split(command)]) == 0
    assert [*pandas.read_parquet("rows.parquet")][3:] == ["title_bm25", "rating_avg", "stock"]  # and no grade
    assert "'grade' is left out, because it equals the grades" in capsys.readouterr().err


def test_cells_of_several_types_become_text(shop):
    lines = [json.dumps({"_id": document, "size": size}) for document, size in zip(DOCUMENTS, ["XL", 42, 4.5])]
    Path("sizes.jsonl").write_text("\n".join(lines))
    assert main(["convert", "judgements.json", "rows.parquet", "--join", "sizes.jsonl"]) == 0
    assert pandas.read_parquet("rows.parquet")["size"].tolist() == ["XL", "42", "4.5"] * 3


def test_the_score_of_an_engine_is_no_grade(shop):
    lines = [json.dumps({"query": query, "_id": document, "_score": 1.0}) for query, document, _ in JUDGED]
    Path("scores.jsonl").write_text("\n".join(lines))
    with pytest.raises(DataFileError) as caught:
        read_qrels("scores.jsonl")
    assert caught.value.code == "no-judgements"


def test_a_table_of_features_is_not_only_taken_for_judgements(shop, capsys):
    assert main(["describe", "flat.csv"]) == 1
    assert "truerank convert JUDGEMENTS rows.parquet --join flat.csv" in capsys.readouterr().err
    assert main(["train", "flat.csv", "--qrels", "judgements.json"]) == 2
    assert "truerank convert QRELS rows.parquet --join FEATURES" in capsys.readouterr().err


def test_describe_states_the_rows_without_a_grade(shop, capsys):
    Path("case.csv").write_text("query,docid,rating\nLeiter,a,2\nLeiter,b,\nLeiter,c,0\n")
    assert main(["describe", "case.csv"]) == 0
    assert "left out 1 without a grade" in capsys.readouterr().err


def test_ids_before_a_tab_name_the_documents_of_a_run(shop, capsys):
    text = "".join(f"{grade} qid:{QUERIES.index(query) + 1} 1:{grade + k / 9} # {document}\t{query}\n"
                   for k, (query, document, grade) in enumerate(JUDGED))  # fmt: skip
    Path("rows.txt").write_text(text)
    assert main(["train", "rows.txt", "--ranker", "ridge", "--model", "model.json"]) == 0
    assert main(["predict", "model.json", "rows.txt", "--format", "run", "-o", "new.run"]) == 0
    assert "next: truerank evaluate new.run --qrels rows.txt" in capsys.readouterr().err
    assert main(["evaluate", "new.run", "--qrels", "rows.txt", "--measure", "AP"]) == 0
    assert "AP of new is 1.0000" in capsys.readouterr().out
    Path("rows.txt").write_text(text.replace("\t", " "))
    assert main(["predict", "model.json", "rows.txt", "--format", "run", "-o", "new.run"]) == 0
    assert "next:" not in capsys.readouterr().err  # no judgements name these rows


def test_files_of_results_are_named_as_habit_names_them(shop, capsys):
    for name, sign in (("old.csv", 1), ("new.csv", -1)):
        lines = [f"{query},{document},{sign * k}" for k, (query, document, _) in enumerate(JUDGED)]
        Path(name).write_text("\n".join(["query,doc_id,score", *lines]).replace('"', ""))
    Path("qrels.csv").write_text(
        "query,docid,rating\n" + "".join(f"{q},{d},{g}\n" for q, d, g in JUDGED).replace('"', "")
    )
    for baseline in ([], ["--baseline", "old.csv"]):
        first = [] if baseline else ["old.csv"]
        assert main(["compare", *first, "new.csv", "--qrels", "qrels.csv", *baseline]) == 0
        assert "(baseline)" in next(line for line in capsys.readouterr().out.splitlines() if "  old" in line)
    assert main(["gate", "new.csv", "--baseline", "old.csv", "--qrels", "qrels.csv", "--margin", "1"]) in (0, 1, 3)
    assert main(["gate", "new.csv", "--baseline", "old.csv", "--qrels", "qrels.csv", "--at-least", "0.4"]) == 2
    assert "nDCG@10=0.45" in capsys.readouterr().err
    assert main(["export", "m.json", "--to", "opensearch", "-o", "x.json"]) == 2
    assert "Did you mean 'opensearch-ltr'?" in capsys.readouterr().err


@pytest.mark.parametrize("ids", ["123", "abc"])
def test_numbers_that_equal_query_ids_are_not_queries(tmp_path, monkeypatch, ids):
    monkeypatch.chdir(tmp_path)
    judged = [(1, ids[0]), (1, ids[1]), (2, ids[0]), (2, ids[2]), (3, ids[1]), (3, ids[2])]
    Path("j.csv").write_text("query,docid,grade\n" + "".join(f"{q},{d},{q % 2}\n" for q, d in judged))
    rows = "".join(f"{own},{k},{10 * k}\n" for k, own in enumerate(ids, 1))
    Path("products.csv").write_text("docid,stars,size\n" + rows)
    assert main(["convert", "j.csv", "rows.csv", "--join", "products.csv"]) == 0
    assert pandas.read_csv("rows.csv")["size"].tolist() == [10, 20, 10, 30, 20, 30]


def test_a_log_of_mostly_other_queries_is_joined_by_query(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("j.csv").write_text("query,docid,grade\nlamp,a,2\nlamp,b,0\n")
    Path("log.csv").write_text("query,docid,bm25,size\nlamp,b,1.5,1\ndesk,a,9.5,2\nbed,c,2.5,3\nsofa,d,3.5,4\n")
    assert main(["convert", "j.csv", "rows.csv", "--join", "log.csv"]) == 0
    assert [*pandas.read_csv("rows.csv").bm25] == [1.5]


def test_large_numbers_are_joined(shop):
    lines = [json.dumps({"_id": document, "time": 1.7e18}) for document in DOCUMENTS]
    Path("times.jsonl").write_text("\n".join(lines))
    assert main(["convert", "judgements.json", "rows.parquet", "--join", "times.jsonl"]) == 0
    assert set(pandas.read_parquet("rows.parquet")["time"]) == {1.7e18}
