"""Judgements in the shapes of other tools: small files made by hand, read, written and read again."""

import json

import pytest

from support.refusals import refused
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.io.judgements.registry import FORMATS, read_ratings, write_ratings
from truerank.io.trec import read_qrels, write_qrels

SHOES, TV, SHIRT, SUSHI = "red shoes", 'tv 55" & more, cheap', "قميص أحمر", "寿司 👟"
# query, text, document, grade, judge; ids are the texts where a format has no others
BY_TEXT = [(SHOES, "00012", 3), (SHOES, "12", 0), (TV, "B0-7", 2), (SHIRT, "d;1", 1), (SUSHI, "魚", 3)]


def lists(number=lambda grade: grade):
    found = {}
    for query, document, grade in BY_TEXT:
        found.setdefault(query, {})[document] = number(grade)
    return found


def dumped(value):
    return json.dumps(value, ensure_ascii=False, indent=1)


QUEPID_CASE = "query,docid,rating\n" + "".join(
    f'"{query.replace(chr(34), chr(34) * 2)}",{document},{grade}\n' for query, document, grade in BY_TEXT
)
QUEPID_CASE_JSON = dumped({
    "case_name": "shop", "owned": False, "scorer": {"name": "nDCG@10", "scale": [0, 1, 2, 3]},
    "queries": [{"arranged_at": 0, "query_text": query, "options": None, "notes": "a note", "information_need": None,
                 "ratings": [{"doc_id": document, "rating": grade} for document, grade in own.items()]}
                for query, own in lists().items()],
    "try": {"name": "Try 1", "query_params": '{"query": {"match": {"title": "#$query##"}}}', "search_endpoint": None},
})  # fmt: skip
QUEPID_RATINGS_JSON = dumped({"queries": [{"query": query, "ratings": own} for query, own in lists().items()]})
QUEPID_BOOK_JSON = dumped({
    "name": "book", "show_rank": False, "scorer": {"scale": [0, 3], "scale_with_labels": {"0": "bad", "3": "good"}},
    "query_doc_pairs": [
        {"query_text": query, "doc_id": document, "position": 1, "document_fields": '{"title": "x", "rating": 5}',
         "judgements": [{"rating": float(grade), "unrateable": False, "judge_later": False,
                         "user_email": "ann@example.org", "explanation": None}]}
        for query, document, grade in BY_TEXT],
})  # fmt: skip
SRW = dumped({
    "name": "list", "type": "IMPORT_JUDGMENT", "judgmentRatings": [
        {"query": query, "ratings": [{"docId": document, "rating": f"{grade:.3f}"} for document, grade in own.items()]}
        for query, own in lists().items()],
})  # fmt: skip
SRW_OLD = dumped({"judgmentRatings": {
    query: [{"docId": document, "rating": str(grade)} for document, grade in own.items()]
    for query, own in lists().items()
}})  # fmt: skip
SRW_HITS = dumped({"took": 3, "hits": {"total": {"value": 1}, "hits": [
    {"_index": "search-relevance-judgment", "_id": "x", "_score": 1.0, "_source": json.loads(SRW)}]}})  # fmt: skip
RRE = dumped({"index": "i", "corpora_file": "c.bulk", "id_field": "id", "topics": [{"query_groups": [
    {"name": query, "queries": [{"template": "q.json", "placeholders": {"$query": query}}],
     "relevant_documents": {document: {"gain": grade} for document, grade in own.items()}}
    for query, own in lists().items()]}]})  # fmt: skip
RRE_QUEPID = dumped({"id_field": "id", "index": "i", "template": "template.json", "queries": [
    {"placeholders": {"$query": query}, "relevant_documents": {
        str(grade): [document for document, other in own.items() if other == grade] for grade in sorted(own.values())}}
    for query, own in lists().items()]})  # fmt: skip
RANX = dumped(lists())
GOLD = "".join(
    json.dumps({"query_id": query, "relevant": own, "segment": "head"}, ensure_ascii=False) + "\n"
    for query, own in lists().items()
)
JSON_LINES = "".join(
    json.dumps({"query": query, "doc_id": document, "grade": grade}) + "\n" for query, document, grade in BY_TEXT
)
BULK = "".join(
    '{"index": {"_index": "ratings"}}\n' + json.dumps({"query": query, "docId": document, "rating": grade}) + "\n"
    for query, document, grade in BY_TEXT
)
SEMICOLONS = "Suchbegriff;query;product_id;label\n" + "".join(
    f'x;"{query.replace(chr(34), chr(34) * 2)}";"{document}";{grade},0\n' for query, document, grade in BY_TEXT
)
OF_TEXT = {
    "quepid": QUEPID_CASE, "quepid case": QUEPID_CASE_JSON, "quepid ratings": QUEPID_RATINGS_JSON,
    "quepid book": QUEPID_BOOK_JSON, "srw": SRW, "srw old": SRW_OLD, "srw hits": SRW_HITS, "rre": RRE,
    "rre quepid": RRE_QUEPID, "ranx": RANX, "gold": GOLD, "json lines": JSON_LINES, "bulk": BULK,
    "semicolons": SEMICOLONS,
}  # fmt: skip

IDS = {"7": SHOES, "q-8": TV, "9": SHIRT, "10": SUSHI}
OF = {text: query for query, text in IDS.items()}
SNAPSHOT = dumped({
    "id": 3, "name": "snap", "docs": {OF[query]: [{"id": document, "explain": None} for document in own]
                                      for query, own in lists().items()},
    "queries": [{"query_id": OF[query], "query_text": query, "ratings": own} for query, own in lists().items()],
    "scores": [{"query_id": "7", "score": 0.5, "all_rated": True}],
})  # fmt: skip
RANK_EVAL = dumped({
    "requests": [{"id": OF[query],
                  "request": {"query": {"multi_match": {"query": query, "fields": ["title^2", "body"]}}},
                  "ratings": [{"_index": "shop", "_id": document, "rating": grade} for document, grade in own.items()]}
                 for query, own in lists().items()],
    "metric": {"dcg": {"k": 10}},
})  # fmt: skip
LETTERS = "ICSE"
ESCI = "example_id,query,query_id,product_id,product_locale,esci_label,small_version,split\n" + "".join(
    f'{row},"{query.replace(chr(34), chr(34) * 2)}",{OF[query]},{document},us,{LETTERS[grade]},0,train\n'
    for row, (query, document, grade) in enumerate(BY_TEXT)
)
PYTERRIER = "qid,docno,label,query,iteration\n" + "".join(
    f'{OF[query]},{document},{grade},"{query.replace(chr(34), chr(34) * 2)}",0\n' for query, document, grade in BY_TEXT
)
IR_MEASURES = "query_id\tdoc_id\trelevance\tquery\n" + "".join(
    f"{OF[query]}\t{document}\t{grade}\t{query}\n" for query, document, grade in BY_TEXT
)
RANKLIB = "".join(f"{grade} qid:{OF[query]} # {document}\t{query}\n" for query, document, grade in BY_TEXT)
QUEPID_LTR = "\n".join(f"\n{grade} qid:{OF[query]} # {document} {query}\n" for query, document, grade in BY_TEXT)
QUEPID_TEXT = "\n".join(f'{grade}    qid:{OF[query]} #    {document}; "{query}"' for query, document, grade in BY_TEXT)
OF_IDS = {
    "snapshot": SNAPSHOT, "rank eval": RANK_EVAL, "esci": ESCI, "pyterrier": PYTERRIER, "ir-measures": IR_MEASURES,
    "ranklib": RANKLIB, "quepid ltr": QUEPID_LTR, "quepid text": QUEPID_TEXT,
}  # fmt: skip


def written(folder, text, name="file"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def rows_of(ratings):
    texts = map(ratings.text, ratings.queries)
    return sorted(zip(ratings.queries, texts, ratings.documents, ratings.grades, ratings.judges or [""] * 99))


def without_judges(rows):
    return [row[:4] for row in rows]


@pytest.mark.parametrize("name", [*OF_TEXT, *OF_IDS])
@pytest.mark.filterwarnings("ignore:.*E, S, C, I")
def test_nothing_is_lost_on_the_way_to_qrels_and_back(tmp_path, name):
    ratings = read_ratings(written(tmp_path, (OF_TEXT | OF_IDS)[name]))
    with_ids = [(OF.get(query), query, document, grade) for query, document, grade in BY_TEXT]
    expected = sorted((query if name in OF_TEXT else own, query, *rest) for own, query, *rest in with_ids)
    assert without_judges(rows_of(ratings)) == [(*row[:3], float(row[3])) for row in expected]
    if name == "quepid book":
        assert set(ratings.judges) == {"ann@example.org"}
    (tmp_path / "out").mkdir()
    write_qrels(ratings.qrels(), tmp_path / "out" / "qrels.txt")
    assert len((tmp_path / "out" / "qrels.txt").read_text().split("\n")[0].split()) == 4
    again = read_ratings_of_qrels(tmp_path / "out" / "qrels.txt")
    assert without_judges(rows_of(again)) == without_judges(rows_of(ratings))


def read_ratings_of_qrels(path):
    from truerank.io.judgements.ratings import Ratings

    return Ratings.of(read_qrels(path))


WRITERS = [name for name in FORMATS.own if FORMATS[name].write is not None]
ENDINGS = {
    "ratings": ["x.csv", "x.tsv", "x.parquet", "x.jsonl", "x.csv.gz"],
    "beir": ["qrels.tsv"],
    "ms-marco": ["qrels.dev.tsv"],
}


@pytest.mark.parametrize(("name", "ending"), [(name, end) for name in WRITERS for end in ENDINGS.get(name, ["x.out"])])
@pytest.mark.parametrize("source", ["snapshot", "quepid"])
@pytest.mark.filterwarnings("ignore:.*E, S, C, I", "ignore:.*cannot store both")
def test_each_format_is_written_and_read(tmp_path, name, ending, source):
    if ending.endswith("parquet"):
        pytest.importorskip("pyarrow")
    ratings = read_ratings(written(tmp_path, (OF_TEXT | OF_IDS)[source]))
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / ending
    if name == "ms-marco" and source == "quepid":
        with pytest.raises((DataFileError, InvalidInputError)):
            write_ratings(ratings, path, name)
        return
    write_ratings(ratings, path, name)
    again = read_ratings(path) if name != "qrels" else read_ratings_of_qrels(path)
    if name != "ranklib" and (FORMATS[name].texts or source == "quepid"):
        assert rows_of(again) == rows_of(ratings)
    assert sorted(row[1:] for row in rows_of(again)) == sorted(
        (text if FORMATS[name].texts or name != "ranx" else query, *rest) for query, text, *rest in rows_of(ratings)
    )


def test_judges_are_columns_of_a_book_and_kept(tmp_path):
    text = 'query,docid,Ann,"Bo, B.",Unknown\nred shoes,d1,3,2,\nred shoes,d2,,,0\n =sum,d3,1,,\nnobody,d4,,,\n'
    with pytest.warns(UserWarning, match="1 without a grade"):
        ratings = read_ratings(written(tmp_path, text))
    assert rows_of(ratings) == [
        ("=sum", "=sum", "d3", 1.0, "Ann"), ("red shoes", "red shoes", "d1", 2.0, "Bo, B."),
        ("red shoes", "red shoes", "d1", 3.0, "Ann"), ("red shoes", "red shoes", "d2", 0.0, "Unknown"),
    ]  # fmt: skip
    for name, ending in [("quepid", "x.csv"), ("quepid-json", "x.json"), ("ratings", "x.csv"), ("ratings", "x.jsonl")]:
        write_ratings(ratings, tmp_path / ending, name)
        assert rows_of(read_ratings(tmp_path / ending)) == rows_of(ratings), name
    for name in sorted(set(WRITERS) - {name for name in FORMATS.own if FORMATS[name].judges} - {"esci"}):
        with refused(InvalidInputError, argument="aggregate"):
            write_ratings(ratings, tmp_path / "refused", name)
        assert not (tmp_path / "refused").exists()


def test_beir_and_ms_marco_bring_their_queries(tmp_path):
    folder = tmp_path / "scifact"
    (folder / "qrels").mkdir(parents=True)
    written(
        folder, '{"_id": "1", "text": "red shoes", "metadata": {}}\n{"_id": "2", "text": "تلفاز"}\n', "queries.jsonl"
    )
    written(folder, '{"_id": "d1", "title": "", "text": "x"}\n', "corpus.jsonl")
    path = written(folder / "qrels", "query-id\tcorpus-id\tscore\n1\td1\t1\n2\t31\t2\n", "test.tsv")
    ratings = read_ratings(path)
    assert rows_of(ratings) == [("1", "red shoes", "d1", 1.0, ""), ("2", "تلفاز", "31", 2.0, "")]
    marco = written(tmp_path, "1\t0\td1\t1\n2\t0\t31\t2\n", "qrels.dev.tsv")
    written(tmp_path, "1\tred shoes\n2\tتلفاز\n", "queries.dev.tsv")
    assert rows_of(read_ratings(marco)) == rows_of(ratings)
    with refused(DataFileError, code="no-judgements"):
        read_ratings(folder / "corpus.jsonl")


def test_ranx_in_parquet_and_lz4(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"q_id": ["1", "1"], "doc_id": ["007", "7"], "score": [2, 0]}
    parquet.write_table(arrow.table(columns), tmp_path / "no-ending")
    with arrow.CompressedOutputStream(str(tmp_path / "q.lz4"), "lz4") as stream:
        stream.write(b'{"1": {"007": 2, "7": 0}}')
    for name in ("no-ending", "q.lz4"):
        assert read_qrels(tmp_path / name).to_dict() == {"1": {"007": 2, "7": 0}}
    (tmp_path / "cut.lz4").write_bytes((tmp_path / "q.lz4").read_bytes()[:-9])
    with refused(DataFileError, code="damaged-archive"):
        read_qrels(tmp_path / "cut.lz4")
