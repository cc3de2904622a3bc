"""Exports of other tools, as people have them: read by the roles of their columns and keys, or refused by name."""

import json

import pytest

from support.refusals import refused
from truerank import read_queries
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.io.judgements.registry import read_ratings
from truerank.io.trec import read_qrels, read_run

TWO = {"red shoes": {"a1": 3, "a2": 0}}
# ruff: noqa: E501
READ = {
    "labels in a studio": 'Search Query,Product ID,Human Rating,Annotator\nred shoes,a1,3,p7\nred shoes,a2,0,p7\n',
    "id and text": "topic_id\tquery text\tDocument ID\tRelevance\nred shoes\tshoes that are red\ta1\t3\nred shoes\tshoes that are red\ta2\t0\n",
    "semicolons, BOM": "\ufeffquery;docid;rating\nred shoes;a1;3\nred shoes;a2;0\n",
    "blanks after commas": "query, docid, rating\nred shoes, a1, 3\nred shoes, a2, 0\n",
    "CRLF, comment": "# exported 2026\r\nquery,docid,rating\r\nred shoes,a1,3\r\nred shoes,a2,0\r\n",
    "index of pandas": ",query,doc_id,relevance\n0,red shoes,a1,3\n1,red shoes,a2,0\n",
    "title and url": "keyword,title,sku,url,grade\nred shoes,\"Shoe, red\",a1,http://x/1,3.0\nred shoes,Hat,a2,http://x/2,0.0\n",
    "line break in a cell": 'query,title,docid,rating\nred shoes,"Shoe\nred",a1,3\nred shoes,Hat,a2,0\n',
    "query without ratings": "query,docid,rating\nnobody\nred shoes,a1,3\nred shoes,a2,0\n",
    "features beside": "query,docid,rating,bm25,ctr\nred shoes,a1,3,7.5,0.2\nred shoes,a2,0,1.5,0.1\n",
    "records": json.dumps([{"query": "red shoes", "docId": "a1", "rating": 3}, {"query": "red shoes", "docId": "a2", "rating": 0}]),
    "columns of pandas": json.dumps({"data": [{"query": "red shoes", "doc_id": "a1", "grade": 3},
                                              {"query": "red shoes", "doc_id": "a2", "grade": 0}], "schema": {"fields": []}}),
    "lines by query": '{"query": "red shoes", "judgments": [{"doc_id": "a1", "grade": 3}, {"doc_id": "a2", "grade": 0}]}\n',
    "lines by query, id": '{"id": "red shoes", "judgements": {"a1": 3, "a2": 0}}\n{"id": "x", "judgements": {}}\n',
    "nested map": json.dumps({"qrels": TWO, "name": "shop", "created": "2026"}),
    "documents with fields": json.dumps({"queries": [{"text": "x", "query": "red shoes", "documents": [
        {"id": "a1", "fields": {"title": "x"}, "rating": 3}, {"id": "a2", "fields": {"title": "y"}, "rating": 0}]}]}),
    "elastic hits": json.dumps({"hits": {"hits": [{"_id": f"{k}", "_source": {"query": "red shoes", "document_id": f"a{k}",
                                "judgment": grade}} for k, grade in ((1, 3), (2, 0))]}}),
    "RRE, list": json.dumps({"query_groups": [{"name": "g", "queries": [{"template": "t", "placeholders": {"query": "red shoes"}}],
                             "relevant_documents": [{"document_id": "a1", "gain": 3}, {"document_id": "a2", "gain": 0}]}]}),
    "ids and texts": json.dumps([{"query_id": "red shoes", "query_text": "the shoes", "doc_ratings": {"a1": 3, "a2": 0},
                                  "documents": [{"id": "a1", "fields": {"title": "AI"}}]}]),
    "pairs": json.dumps([{"query": "red shoes", "relevant_docs": [["a1", 3], ["a2", 0]]}]),
    "LTR plugin": '# qid:1: red shoes\n3\tqid:1\t# a1\tred shoes\n0\tqid:1\t# a2\tred shoes\n',
    "usual names in part": "example_id,Customer search phrase,product_uid,Relevancy (0-3)\n1,red shoes,a1,3\n2,red shoes,a2,0\n",
    "id of the document": "search_term,id,stars\nred shoes,a1,3\nred shoes,a2,0\n",
    "separator named": "sep=;\nquery;docid;rating\nred shoes;a1;3\nred shoes;a2;0\n",
    "indented objects": '{\n "query": "red shoes",\n "ratings": {"a1": 3}\n}\n{\n "query": "red shoes",\n "ratings": {"a2": 0}\n}\n',
    "plugin's sample": "# qid:1: red shoes\n#\n3\tqid:1 #\ta1\tA Shoe\n0\tqid:1 #\ta2\tHat\n",
    "LETOR": "3 qid:1 1:0.5 2:7 # a1\n0 qid:1 1:0.1 2:3 # a2\n",
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
@pytest.mark.filterwarnings("ignore:.*left out")
def test_variants_are_read(tmp_path, name):
    path = tmp_path / "export.dat"
    path.write_bytes(READ[name].encode())
    found = {}
    ratings = read_ratings(path)
    for query, document, grade in zip(ratings.queries, ratings.documents, ratings.grades):
        found.setdefault(query, {})[document] = grade
    assert found == ({"1": TWO["red shoes"]} if name in ("LTR plugin", "LETOR", "plugin's sample") else TWO)
    if name in ("LTR plugin", "plugin's sample"):
        assert ratings.texts == {"1": "red shoes"}


BINARY = {
    "embedding QA": {"queries": {"q1": "red?"}, "corpus": {"d1": "x", "d2": "y"}, "relevant_docs": {"q1": ["d1", "d2"]}},
    "gold": {"question": "red?", "expected_ids": ["d1", "d2"]},
    "gold, contexts": {"user_input": "red?", "reference_contexts_ids": ["d1", "d2"], "reference": "Red."},
    "gold, objects": {"query_id": "q1", "query": "red?", "ground_truth": [{"doc_id": "d1"}, {"doc_id": "d2"}]},
    "passages": {"query_id": "q1", "query": "red?", "positive_passages": [{"docid": "d1", "text": "t"}, {"docid": "d2"}],
                 "negative_passages": [{"docid": "d3", "text": "n"}]},
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_relevant_ids_have_grade_1(tmp_path, name):
    path = tmp_path / "gold.json"
    path.write_text(json.dumps(BINARY[name]))
    ratings = read_ratings(path)
    assert (ratings.documents, ratings.grades) == (["d1", "d2"], [1.0, 1.0])
    assert set(ratings.queries) == {"q1" if "q1" in json.dumps(BINARY[name]) else "red?"}


OTHERS = {
    "a TREC run": "1 Q0 d1 1 9.5 bm25\n1 Q0 d2 2 8.5 bm25\n",
    "a run": "query_id,doc_id,score\n1,d1,0.71\n1,d2,0.53\n",
    "a run ": "qid,docno,rank,score\n1,d1,1,12\n1,d2,2,11\n",
    "a click log": "impression,query,document,position,clicked\n1,red,d1,1,0\n1,red,d2,2,1\n",
    "UBI": '{"action_name": "click", "query_id": "x", "event_attributes": {"object": {"object_id": "d"}}}\n',
    "UBI ": '{"index": {}}\n{"query_id": "x", "user_query": "red", "query_response_hit_ids": ["d1"]}\n',
    "query set": '{"name": "s", "querySetQueries": [{"queryText": "tv"}]}',
    "corpus": '{"_id": "d1", "title": "t", "text": "x"}\n{"_id": "d2", "title": "t", "text": "y"}\n',
    "answer of a search engine": '{"took": 3, "hits": {"hits": [{"_id": "d1", "_source": {"title": "x"}}]}}',
    "error answer": '{"error": {"type": "index_not_found_exception"}, "status": 404}',
    "answer of _rank_eval": '{"metric_score": 0.4, "details": {"q1": {"metric_score": 0.4, "unrated_docs": []}}}',
    "'bm25', 'pagerank'": "query,docid,bm25,pagerank\nred,d1,7.25,0.2\nred,d2,1.5,0.11\n",
    "LETOR features": "2 qid:1 1:0.5\n0 qid:1 1:0.4\n",
    "scores": "0.25\n0.75\n",
    "web page": "<!DOCTYPE html><html><body>Log in</body></html>",
    "TREC topics": "<top>\n<num> Number: 1\n<title> red\n</top>\n",
    "a model": '{"name": "tree", "version": "v4", "tree_info": []}',
    "queries without documents": "query,category\nred shoes,shoes\n",
    "documents without queries": "docid,title\nd1,x\n",
    "'red shoes', 'd1', '3'": "red shoes,d1,3\nred shoes,d2,0\n",
    "other JSON": '{"name": "my-app", "dependencies": {"left-pad": "1.0"}}',
}  # fmt: skip


@pytest.mark.parametrize("looks", OTHERS)
def test_other_files_are_named(tmp_path, looks):
    path = tmp_path / "file"
    path.write_text(OTHERS[looks])
    with refused(DataFileError, code="no-judgements") as caught:
        read_qrels(path)
    assert looks.strip() in caught.value.value


DAMAGED = {
    "line 3": "query,docid,rating\nred,d1,3\nred,d2,x3\n",
    "line 2": 'query,docid,rating\n"red,d1,3\nred,d2,3\n',
    "line 4": '{\n"queries": [\n{"query": "red", "ratings": {"d1": 1}},\n}\n',
    "line 2 ": '{"query": "red", "relevant": ["d1"]}\n{"query": "blue", "relevant": ["d1"\n',
    "line 3 ": "1 0 d1 2\n1 0 d2 2\n1 0 d3\n",
    "line 2  ": "3 qid:1 # d1\n2 qid:1\n",
    "line 3  ": "query,docid,rating\nred,d1,3\nred,d2,3,9\n",
    "line 3   ": "query,docid,rating\nred,d1,3\n,d2,3\n",
    "line 3    ": "query,docid,rating\nred,d1,3\nred,,3\n",
    "line 4 ": '{"queries": [\n{"query_text": "red", "ratings": {\n"d1": 1,\n"d2": "abc"}}]}',
    "line 2   ": "query-id\tcorpus-id\tscore\n1\td1\tone1\n1\td2\t2\n",
}


@pytest.mark.parametrize("line", DAMAGED)
def test_damaged_files_are_refused_with_the_line(tmp_path, line):
    path = tmp_path / "file"
    path.write_text(DAMAGED[line])
    with pytest.raises(DataFileError, match=f"file, {line.strip()}\\b"):
        read_qrels(path)


def test_columns_are_named(tmp_path):
    (tmp_path / "x.csv").write_text("suche,artikel,note,rating\nred shoes,a1,3,9.5\nred shoes,a2,0,1.5\n")
    usual = {"query": "suche", "document": "artikel", "grade": "rating"}
    with refused(DataFileError, code="no-judgements", remedy=usual) as caught:
        read_ratings(tmp_path / "x.csv")
    assert "'suche', 'artikel', 'note'" in caught.value.value
    ratings = read_ratings(tmp_path / "x.csv", query="suche", document="artikel", grade="note")
    assert ratings.qrels().to_dict() == TWO
    with pytest.raises(DataFileError, match="no column 'nota'"):
        read_ratings(tmp_path / "x.csv", grade="nota")


def test_columns_in_the_order_of_ir_datasets_are_refused(tmp_path):
    (tmp_path / "q.tsv").write_text("".join(f"{k // 5}\tdoc{k}\t{k % 3}\t0\n" for k in range(30)))
    with refused(DataFileError, remedy={"query": "1", "document": "2", "grade": "3"}, code="no-judgements"):
        read_qrels(tmp_path / "q.tsv")
    (tmp_path / "q.tsv").write_text("".join(f"{k // 5}\t0\t{k % 5}\t{k % 3}\n" for k in range(30)))
    assert read_qrels(tmp_path / "q.tsv").n_rows == 30


def test_query_sets_are_queries(tmp_path):
    (tmp_path / "s.json").write_text(
        '{"name": "s", "querySetQueries": [{"queryText": "red shoes"}, {"queryText": "tv"}]}'
    )
    assert [one.id for one in read_queries(tmp_path / "s.json")] == ["red shoes", "tv"]
    (tmp_path / "q.csv").write_text("query\nred shoes\ntv\n")
    assert [(one.id, one.text["text"]) for one in read_queries(tmp_path / "q.csv")] == [
        ("red shoes", "red shoes"),
        ("tv", "tv"),
    ]


def test_what_is_no_text(tmp_path):
    for head, name in [(b"PK\x03\x04....[Content_Types].xml", "Excel"), (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Excel"),
                       (b"\x80\x04\x95", "pickle"), (b"%PDF-1.7", "PDF"), (b"SQLite format 3\0", "SQLite")]:  # fmt: skip
        (tmp_path / "file").write_bytes(head + b"\0" * 40)
        for read in (read_qrels, read_run):
            with pytest.raises(DataFileError, match=name):
                read(tmp_path / "file")


def test_runs_in_tables_and_json(tmp_path):
    expected = {"red shoes": {"a1": 9.5, "a2": 8.0}}
    by_rank = {"red shoes": {"a1": -1.0, "a2": -2.0}}
    for text, found in [
        ("query,doc_id,score\nred shoes,a1,9.5\nred shoes,a2,8\n", expected),
        ("query\tdocno\trank\tscore\nred shoes\ta2\t2\t8\nred shoes\ta1\t1\t9.5\n", expected),
        ("query;product_id;position\nred shoes;a1;1\nred shoes;a2;2\n", by_rank),
        (json.dumps(expected), expected),
        ('{"query": "red shoes", "results": [{"id": "a1", "score": 9.5}, {"id": "a2", "score": 8}]}\n', expected),
        ('{"query": "red shoes", "results": ["a1", "a2"]}\n{"query": "x", "results": []}\n', {"red shoes": {"a1": 2.0, "a2": 1.0}}),
        ('{"query_id": "red shoes", "doc_id": "a1", "score": 9.5}\n{"query_id": "red shoes", "doc_id": "a2", "score": 8}', expected),
    ]:  # fmt: skip
        (tmp_path / "run").write_text(text)
        assert read_run(tmp_path / "run").to_dict() == found
    for text, name in [
        ("1 0 d1 2\n", "judgements"),
        ("query,docid,rating\nred,d1,3\n", "judgements"),
        ("0.5\n", "scores"),
    ]:
        (tmp_path / "run").write_text(text)
        with refused(DataFileError, code="no-run") as caught:
            read_run(tmp_path / "run")
        assert name in caught.value.value


@pytest.mark.filterwarnings("ignore:.*E, S, C, I", "ignore:.*left out")
def test_grades_in_words(tmp_path):
    def read(*words, **options):
        rows = "".join(f"q,d{k},{word}\n" for k, word in enumerate(words))
        (tmp_path / "w.csv").write_text("query,docid,label\n" + rows)
        return read_ratings(tmp_path / "w.csv", **options).grades

    assert read("E", "i", "C", "S") == [3.0, 0.0, 1.0, 2.0]
    assert read("true", "False", "1") == [1.0, 0.0, 1.0]
    for words, proposal in [
        (["Exact", "Partial", "Irrelevant"], "Exact=2 Partial=1 Irrelevant=0"),
        (["Relevant", "Not relevant"], "Relevant=1 Not relevant=0"),
        (["Perfect", "Excellent", "Good", "Fair", "Bad"], "Perfect=4 Excellent=3 Good=2 Fair=1 Bad=0"),
        (["3: Perfect", "0: Poor"], "3: Perfect=3 0: Poor=0"),
        (
            ["highly_relevant", "somewhat relevant", "NOT-RELEVANT"],
            "highly_relevant=2 somewhat relevant=1 NOT-RELEVANT=0",
        ),
    ]:
        with refused(DataFileError, code="words", line=2, remedy={"grades": proposal}):
            read(*words)
        found = read(*words, grades=proposal)
        assert found == sorted(found, reverse=True)
    with refused(DataFileError, code="words", line=2):
        read("blue", "green")
    with refused(DataFileError, code="comma", line=2):
        (tmp_path / "d.csv").write_text('query,docid,label\nq,d,"0,75"\n')
        read_ratings(tmp_path / "d.csv")
    assert read("A", "B", "skip", grades={"A": 2, "B": 1}) == [2.0, 1.0]
    assert read("A", "B", grades={"a": 2, "b": None}) == [2.0]
    assert read("100", "10", "0", grades="100=2 10=1 0=0") == [2.0, 1.0, 0.0]
    with refused(DataFileError, line=3):
        read("100", "7", grades="100=2 10=1 0=0")


def test_words_of_several_judges_in_columns(tmp_path):
    path = tmp_path / "book.csv"
    path.write_text("query,docid,Ann,Bo\nq,a,Perfect,Good\nq,b,Not relevant,\ntv,c,,Good\n")
    with refused(DataFileError, code="words", line=2) as caught:
        read_ratings(path)
    proposal = caught.value.remedies[0].arguments["grades"]
    assert proposal == "Perfect=2 Good=1 Not relevant=0"
    found = read_ratings(path, grades=proposal)
    assert (found.grades, found.judges) == ([2, 1, 0, 1], ["Ann", "Bo", "Ann", "Bo"])
    path.write_text("query,docid,Ann,condition\nq,a,3,Good\nq,b,0,Bad\n")
    assert read_ratings(path).judges == ["Ann", "Ann"]
    path.write_text("query,docid,title of the page\nq,a,Good\nq,b,red\n")
    with refused(DataFileError, code="no-judgements", remedy={"grade": ...}):
        read_ratings(path)


def test_several_judges(tmp_path):
    (tmp_path / "j.csv").write_text("query,docid,rating,rater\nq,a,3,x\nq,a,1,y\nq,a,1,z\nq,b,2,x\nq,b,2,y\nq,c,0,x\n")
    ratings = read_ratings(tmp_path / "j.csv")
    assert ratings.judges == ["x", "y", "z", "x", "y", "x"]
    assert "agree for 1 of 2 documents with several grades" in ratings.agreement()
    # alpha = 1 - (n - 1) * sum of squared differences within / sum of all: 16 / 2 within, 5 grades 3 1 1 2 2
    within, between = (2 * (4 + 4)) / 2 + 0.0, 2 * (5 * (9 + 1 + 1 + 4 + 4) - 81)
    assert f"{1 - within / (between / 4):.3f}" in ratings.agreement()
    for how, grade in (("mean", 5 / 3), ("median", 1.0), ("majority", 1.0), ("first", 3.0)):
        assert ratings.qrels(how).grades.tolist() == [grade, 2.0, 0.0]
    with refused(InvalidInputError, argument="aggregate"):
        ratings.qrels()
    with refused(InvalidInputError, argument="aggregate"):
        ratings.qrels("max")


def test_a_package_adds_a_format(tmp_path, monkeypatch):
    from truerank.io.judgements import registry
    from truerank.io.judgements.formats import Format
    from truerank.io.judgements.ratings import Row

    mine = Format(
        "mine", "my format", lambda content: content.text.startswith("MINE"), lambda content: [Row("q", "d", 1)]
    )
    monkeypatch.setitem(registry.FORMATS.own, "mine", mine)
    (tmp_path / "x").write_text("MINE\n")
    assert read_ratings(tmp_path / "x").format == "my format"


def test_frames_keep_words_and_judges():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"query": ["red", "red"], "docid": ["a", "a"], "rating": ["Good", "Bad"], "judge": ["x", "y"]}
    )
    with refused(InvalidInputError, code="words"):
        read_qrels(frame)
    assert read_qrels(frame, grades={"Good": 2, "Bad": 0}, aggregate="mean").to_dict() == {"red": {"a": 1}}


@pytest.mark.filterwarnings("ignore:.*without a grade")
@pytest.mark.parametrize("word", ["", "unrateable", "UNRATEABLE", "N/A", " skip", "?", "Don't know", "nan"])
@pytest.mark.parametrize("first", [True, False])
def test_a_judge_who_did_not_rate_a_document_keeps_the_other_grades(tmp_path, word, first):
    rows = [
        ["foo", "d1", "3", "2"],
        ["foo", "d2", word if first else "1", "0" if first else word],
        ["bar", "d1", "1", "1"],
    ]
    text = "\n".join(",".join(row) for row in [["query", "docid", "Ann Lee", "Bob"], *rows])
    (tmp_path / "book.csv").write_text(text + "\n")
    found = read_ratings(tmp_path / "book.csv")
    given = sorted(zip(found.queries, found.documents, found.judges, found.grades))
    expected = [
        (query, document, judge, float(cell))
        for query, document, *cells in rows
        for judge, cell in zip(["Ann Lee", "Bob"], cells)
        if cell != word
    ]
    assert given == sorted(expected)
