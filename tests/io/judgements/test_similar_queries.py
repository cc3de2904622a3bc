"""Several judges, folders of BEIR and query texts that are nearly the same: what commands say of them."""

import json

import pytest

from truerank import read_ratings
from truerank.cli import main
from truerank.data.remarks import RemarkWarning

JUDGED = "query,docid,judge,rating\nred shoes,d1,ann,3\nred shoes,d1,bob,1\nred shoes,d2,ann,0\ntv,d1,ann,1\n"


def described(capsys, *arguments):
    assert main(["describe", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_describe_proposes_to_combine_judges(tmp_path, capsys):
    (tmp_path / "book.csv").write_text(JUDGED)
    (found,) = [one for one in described(capsys, tmp_path / "book.csv")["findings"] if one["code"] == "several-grades"]
    assert (found["count"], found["items"]) == (1, ["red shoes"])
    assert found["remedies"][0]["arguments"] == {"aggregate": "median"}
    codes = {one["code"] for one in described(capsys, tmp_path / "book.csv", "--aggregate", "median")["findings"]}
    assert not codes & {"several-grades", "duplicate-document", "conflicting-documents"}


def test_describe_reads_the_folder_of_beir(tmp_path, capsys):
    (tmp_path / "qrels").mkdir()
    for name, query in (("train", "q1"), ("test", "q2"), ("dev", "q2")):
        (tmp_path / "qrels" / f"{name}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{query}\td1\t1\n")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "red"}\n{"_id": "q2", "text": "tv"}\n')
    found = described(capsys, tmp_path)
    assert len(found["files"]) == 3
    assert [one["items"] for one in found["findings"] if one["code"] == "shared-query"] == [["q2"]]


SIMILAR = [("Red shoes", "red  shoes "), ("caf\u00e9", "CAFE\u0301"), ("ＴＶ", "tv"), ("a\u00a0b", "A b")]


@pytest.mark.parametrize(("one", "other"), SIMILAR)
def test_similar_texts_are_told_and_folded_on_demand(tmp_path, one, other):
    path = tmp_path / "lines.jsonl"
    rows = [{"query": text, "doc_id": f"d{k}", "grade": k} for k, text in enumerate((one, other, "other"))]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.warns(RemarkWarning) as caught:
        assert read_ratings(path).queries == [one, other, "other"]
    assert caught[0].message.remark.items == [one, other]
    assert read_ratings(path, fold_queries=True).queries == [one, one, "other"]


def test_texts_of_ids_are_compared_and_ids_are_not(tmp_path):
    (tmp_path / "t.csv").write_text("query_id,query,doc_id,grade\na,red,d,1\nA,Red,d,0\nb,red hat,d,0\n")
    folded = read_ratings(tmp_path / "t.csv", fold_queries=True)
    assert (folded.queries, folded.texts) == (["a", "a", "b"], {"a": "red", "b": "red hat"})
    (tmp_path / "u.csv").write_text("query_id,query,doc_id,grade\na,red,d,1\nA,blue,d,0\n")
    assert read_ratings(tmp_path / "u.csv").similar_queries() == []


def test_convert_folds_queries(tmp_path):
    (tmp_path / "book.csv").write_text(JUDGED.replace("red shoes,d2", "Red Shoes,d2"))
    out = tmp_path / "out.csv"
    assert main(["convert", str(tmp_path / "book.csv"), str(out), "--fold-queries", "--aggregate", "mean"]) == 0
    assert read_ratings(out).qrels().to_dict() == {"red shoes": {"d1": 2, "d2": 0}, "tv": {"d1": 1}}
