"""Documents, queries and judgements in every form, and what bad ones come to."""

from __future__ import annotations

import gzip
import io
import json
from decimal import Decimal

import pytest

from support.refusals import refused
from truerank.core.errors import DataFileError, TruerankWarning
from truerank.io import documents as module
from truerank.io.documents import BETWEEN, read_documents, read_judgements, read_queries


def lines(*records):
    return io.BytesIO(b"".join(r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in records))


def test_json_lines_keep_text_numbers_and_vectors(tmp_path):
    record = {"_id": 5, "title": "A", "text": ["one", "two"], "age": 3, "on": True, "none": None, "v": [1, 2.5]}
    path = tmp_path / "d.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(record).encode()))
    (document,) = read_documents(path)
    assert document == ("5", {"title": "A", "text": "one\ntwo"}, {"age": 3.0}, {"v": [1.0, 2.5]})


GOOD = {"id": "a", "text": "heat"}
BAD = [
    (b'{"id": "b", "text": "\xff"}\n', "line 2: the line is not UTF-8 (byte 0xff at column 22)"),
    (b"{oops\n", "line 2: the line is not JSON"),
    (b'["x"]\n', "line 2: expected a JSON object"),
    ({"text": "no id"}, "line 2: no id; expected one of id, _id"),
    ({"id": "", "text": "no id"}, "line 2: no id"),
    ({"id": "two words", "text": "x"}, "line 2: id 'two words' is not one word"),
    ({"id": "b\ud800", "text": "x"}, r"line 2: id 'b\ud800' contains half a surrogate pair"),
    ({"id": "b", "age": float("inf")}, "line 2: field 'age' must be a finite number"),
    (b"x" * 2000 + b"\n", "line 2: the line has more than"),
]


@pytest.mark.parametrize(("record", "message"), BAD)
def test_a_bad_document_stops_or_is_left_out(monkeypatch, record, message):
    monkeypatch.setattr(module, "LONGEST_LINE", 1000)
    after = {"id": "z", "text": "flow"}
    with refused(DataFileError, code="bad-document", line=2, remedy={"bad": "skip"}) as caught:
        list(read_documents(lines(GOOD, record, after)))
    assert message in str(caught.value)
    with pytest.warns(TruerankWarning, match="bad documents were left out: 1"):
        kept = list(read_documents(lines(GOOD, record, after), bad="skip"))
    assert [document.id for document in kept] == ["a", "z"]


def test_an_id_that_came_before_and_an_empty_text():
    with refused(DataFileError, code="bad-document"):
        list(read_documents(lines(GOOD, GOOD)))
    with pytest.warns(TruerankWarning, match="documents without text .1. are kept with length 0"):
        assert len(list(read_documents(lines(GOOD, {"id": "b", "text": " "})))) == 2


def test_documents_with_tags_of_html_are_said():
    tagged = {"id": "b", "text": "<P>heat</P> flow<br>"}
    with pytest.warns(TruerankWarning, match="HTML tags in 1 document are indexed as words"):
        assert len(list(read_documents(lines(GOOD, tagged, {"id": "c", "text": "a < b, x</y"})))) == 3


@pytest.mark.parametrize("content", [b"", b"\n\n", b"no documents at all <DOC"])
def test_no_documents_is_an_error(content):
    with pytest.raises(DataFileError):
        list(read_documents(io.BytesIO(content)))


def test_trec_sgml_with_open_and_nested_tags():
    text = b"<DOC>\n<DOCNO> A-1 </DOCNO>\n<HEADLINE>Big &amp; small</HEADLINE>\n<TEXT>\n<P>one</P> two\n</TEXT>\n</DOC>"
    text += b"<doc><docno>B</docno>caf\xe9 body</doc>"
    first, second = read_documents(io.BytesIO(text))
    assert first == ("A-1", {"title": "Big & small", "text": "one\ntwo"}, {}, {})
    assert second == ("B", {"text": "café body"}, {}, {})
    with refused(DataFileError, code="bad-document", line=1):
        list(read_documents(io.BytesIO(b"<DOC>text</DOC>")))
    with refused(DataFileError, code="bad-document", line=1):
        list(read_documents(io.BytesIO(b"<DOC><DOCNO>1</DOCNO>text")))


def test_trec_topics_and_the_field_that_is_asked_for():
    text = b"<top>\n<num> Number: 451\n<title> Bengals\n\n<desc> Description:\nWhat?\n<narr> Narrative: Long.\n</top>\n"
    assert read_queries(io.BytesIO(text))[0].text == {"text": "Bengals"}
    assert read_queries(io.BytesIO(text), field="desc")[0].text == {"text": "What?"}
    with refused(DataFileError, code="no-field"):
        read_queries(io.BytesIO(text), field="body")


def test_smart_records_and_queries_numbered_in_the_files_order():
    text = b".I 7\r\n.T\r\nwings\r\n.A\r\nme\r\n.W\r\nlift\r\ndrag .X\r\n.X\r\n1 2 3\r\n.I 9\r\n.W\r\nheat\r\n"
    first, second = read_documents(io.BytesIO(text))
    assert first == ("7", {"title": "wings", "author": "me", "text": "lift drag .X"}, {}, {})
    assert second.id == "9"
    assert [query.id for query in read_queries(io.BytesIO(b".I 001\n.W\nwhat\n.I 004\n.W\nwhy\n"))] == ["1", "2"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables(tmp_path, ending):
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    frame = polars.DataFrame({"id": ["01", "2"], "text": ["heat", "flow"], "age": [3, None]})
    path = tmp_path / f"d.{ending}"
    frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
    assert list(read_documents(path)) == [("01", {"text": "heat"}, {"age": 3.0}, {}), ("2", {"text": "flow"}, {}, {})]


def test_texts_of_csv_are_texts_whatever_they_look_like(tmp_path):
    (tmp_path / "films.csv").write_text("id,title,year,note\n1,1984,1984,\n2,2020-01-01,1999,\n3,true,2000,\n")
    films = list(read_documents(tmp_path / "films.csv"))
    assert [film.text["title"] for film in films] == ["1984", "2020-01-01", "true"]
    assert [film.numbers for film in films] == [{"year": 1984.0}, {"year": 1999.0}, {"year": 2000.0}]
    (tmp_path / "q.csv").write_text("qid,query\n1,2001\n2,1984\n")
    assert [query.text["text"] for query in read_queries(tmp_path / "q.csv")] == ["2001", "1984"]
    (tmp_path / "blank.csv").write_text("id,text,title\n1,,wing\n2,,flow\n")  # a column without a value is no field
    assert [list(record.text) for record in read_documents(tmp_path / "blank.csv")] == [["title"], ["title"]]
    assert [query.text["text"] for query in read_queries(tmp_path / "blank.csv")] == ["wing", "flow"]
    rows = "".join(f"{k},{k},\n" for k in range(150_000))  # more than the block that settles the types
    (tmp_path / "late.csv").write_text(f"id,text,note\n{rows}x,hello,seen\n")
    *_, last = read_documents(tmp_path / "late.csv")
    assert last.text == {"text": "hello", "note": "seen"}


def test_fields_that_are_text_hold_no_text_where_something_is_missing(tmp_path):
    """A label that is missing is no label called None or nan."""
    lines = b'{"id": 1, "text": "a", "labels": ["x", null, 1.0, true]}\n{"id": 2, "text": "b", "labels": null}'
    texts = [document.text.get("labels") for document in read_documents(io.BytesIO(lines), texts=["labels"])]
    assert texts == [BETWEEN.join(["x", "1", "true"]), None]
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"id": ["a", "b", "c"], "text": ["x"] * 3, "label": [2.0, float("nan"), None]}
    parquet.write_table(pa.table(columns), tmp_path / "d.parquet")
    found = read_documents(tmp_path / "d.parquet", texts=["label"])
    assert [document.text.get("label", "") for document in found] == ["2", "", ""]


def test_no_column_of_a_table_is_lost(tmp_path):
    """Decimals are numbers, and of two columns of one name neither is meant."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"id": ["a"], "text": ["x"], "price": [Decimal("1.5")]}), tmp_path / "d.parquet")
    assert [document.numbers for document in read_documents(tmp_path / "d.parquet")] == [{"price": 1.5}]
    (tmp_path / "twice.csv").write_text("id,text,text\n1,a,b\n")
    with refused(DataFileError, code="twice"):
        list(read_documents(tmp_path / "twice.csv"))


def test_a_line_of_text_that_begins_as_a_smart_record_is_none():
    records = list(read_documents(io.BytesIO(b".I 1\n.W\nnames of hosts\n.Inc and others\n.Iceland\n.I 2\n.W\nx\n")))
    assert [(record.id, record.text["text"]) for record in records] == [
        ("1", "names of hosts .Inc and others .Iceland"),
        ("2", "x"),
    ]


def test_three_columns_whose_best_grade_may_be_the_highest_are_said():
    with pytest.warns(TruerankWarning, match="where grade 1 is the best"):
        assert read_judgements(io.BytesIO(b"q d1 1\nq d2 4\n")).to_dict() == {"q": {"d1": 4, "d2": 1}}


def test_judgements_of_all_forms():
    assert read_judgements(io.BytesIO(b"1 0 a 2\n")).to_dict() == {"1": {"a": 2}}
    assert read_judgements(io.BytesIO(b"1 a 1 \n1 b 4\n1 a -1\n")).to_dict() == {"1": {"a": 4, "b": 1}}
    with refused(DataFileError, code="columns", line=1):
        read_judgements(io.BytesIO(b"1 a 7\n"))
    with pytest.raises(DataFileError):
        read_judgements(io.BytesIO(b"1 2 3 4 5\n"))


def test_a_collection_that_ir_datasets_does_not_know():
    pytest.importorskip("ir_datasets")
    with refused(DataFileError, code="no-collection"):
        list(read_documents("ir_datasets:no-such-collection"))


def test_a_quotation_mark_in_a_tsv_file_swallows_no_documents(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "d.tsv"
    path.write_text('id\ttext\na\tone\nb\t"two\nc\tthree"\n')
    with refused(DataFileError, code="open-quote"):
        list(read_documents(path))
    path.write_text('id\ttext\na\t"one\nmore"\nb\ttwo\n')
    assert [document.id for document in read_documents(path)] == ["a", "b"]


def test_ids_and_texts_with_tabs_need_no_names(tmp_path):
    """As in MS MARCO's queries.tsv and collection.tsv."""
    (tmp_path / "queries.tsv").write_text("1048585\twhat is paula deen's brother\n2\t1984\n", encoding="utf-8")
    found = read_queries(tmp_path / "queries.tsv")
    assert [(query.id, query.text["text"]) for query in found] == [
        ("1048585", "what is paula deen's brother"),
        ("2", "1984"),
    ]
    assert [one.id for one in read_documents(tmp_path / "queries.tsv")] == ["1048585", "2"]
    (tmp_path / "named.tsv").write_text("query_id\tquery\n2\ttv\n", encoding="utf-8")
    assert [query.id for query in read_queries(tmp_path / "named.tsv")] == ["2"]
