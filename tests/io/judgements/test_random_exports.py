"""Random exports: any usual names of columns and keys, in any order, case and spelling, nested in several ways."""

import csv
import io
import json
import random

import pytest

from truerank.io.judgements.registry import read_ratings
from truerank.io.judgements.roles import DOCUMENT, GRADE, JUDGE, QUERY, TEXT
from truerank.io.trec import read_qrels, read_run

TEXTS = ["red shoes", 'tv 55" & more', "it's; new, cheap", "قميص أحمر", "寿司 👟", "a", "7", "-50% off", "x" * 200]
IDS = ["00012", "12", "B0X-7", "a b", "魚", "http://x/1?a=b", "9" * 20]
WORDS = [name for name in TEXT if name != "q"]


def spelled(draw, name):
    """A name as people write it: product_id, Product ID, productId, PRODUCT-ID."""
    stems = ("query", "doc", "document", "product", "topic", "search", "user", "item", "passage", "corpus", "relevance",
             "judge", "rater", "worker", "annotator", "assessor", "esci", "human", "object", "article")  # fmt: skip
    stem = next((stem for stem in stems if name.startswith(stem) and name != stem), None)
    parts = [stem, name[len(stem) :]] if stem else [name]
    join = draw.choice(["_", " ", "-", ""])
    style = draw.choice([str.lower, str.upper, str.title])
    return join.join(map(style, parts))


def drawn(seed):
    """Rows (query, text, document, grade, judge) with or without ids of queries and judges."""
    draw = random.Random(seed)
    with_ids, judges = draw.random() < 0.5, draw.choice([[], ["ann@x.org"], ["Ann", "Bo"]])
    rows = []
    for place, text in enumerate(draw.sample(TEXTS, draw.randrange(2, 7))):
        query = str(100 + place) if with_ids else text
        for document in draw.sample(
            ["00012", "12", "B0X-7", "a b", "魚", "http://x/1?a=b", "9" * 20], draw.randrange(1, 5)
        ):
            grade = draw.randrange(4)
            rows += [(query, text, document, float((grade + k) % 4), judge) for k, judge in enumerate(judges or [""])]
    return draw, rows, with_ids, bool(judges)


def found_in(ratings):
    judges = ratings.judges or [""] * len(ratings.grades)
    return sorted(zip(ratings.queries, map(ratings.text, ratings.queries), ratings.documents, ratings.grades, judges))


@pytest.mark.parametrize("seed", range(150))
def test_tables_with_any_usual_names(tmp_path, seed):
    draw, rows, with_ids, with_judges = drawn(seed)
    columns = {
        spelled(draw, draw.choice(WORDS)): [row[1] for row in rows],
        spelled(draw, draw.choice(DOCUMENT[:14])): [row[2] for row in rows],
        spelled(draw, draw.choice(GRADE[:17])): [draw.choice([str(int(row[3])), str(row[3])]) for row in rows],
    }
    if with_ids:
        columns[spelled(draw, draw.choice(QUERY))] = [row[0] for row in rows]
    if with_judges:
        columns[spelled(draw, draw.choice(JUDGE))] = [row[4] for row in rows]
    if draw.random() < 0.5:
        columns["title"] = ['a, "title" of\ntwo lines'] * len(rows)
    if draw.random() < 0.3:
        columns[""] = list(map(str, range(len(rows))))
    names = draw.sample(list(columns), len(columns))
    out = io.StringIO()
    writer = csv.writer(out, delimiter=draw.choice([",", ";", "\t"]), lineterminator=draw.choice(["\n", "\r\n"]))
    writer.writerows([names, *zip(*(columns[name] for name in names))])
    path = tmp_path / draw.choice(["x", "ratings.csv", "x.txt", "export.tsv"])
    path.write_text(draw.choice(["", "\ufeff"]) + out.getvalue(), encoding="utf-8", newline="")
    assert found_in(read_ratings(path)) == sorted(rows)


@pytest.mark.parametrize("seed", range(150))
def test_json_of_any_nesting(tmp_path, seed):
    draw, rows, with_ids, with_judges = drawn(seed)
    usual = {"query": QUERY, "text": WORDS, "document": DOCUMENT[:14], "grade": GRADE[:17], "judge": JUDGE}
    name = {role: spelled(draw, draw.choice(names)) for role, names in usual.items()}

    def query_of(row):
        return {name["query"]: row[0], name["text"]: row[1]} if with_ids else {name["text"]: row[1]}

    def graded(row):
        grade = draw.choice([row[3], int(row[3]), f"{row[3]:.3f}"])
        return {name["grade"]: grade} | ({name["judge"]: row[4]} if with_judges else {}) | {"comment": None}

    flat = [
        query_of(row) | {name["document"]: row[2], "fields": {"title": "t", "price": 3}} | graded(row) for row in rows
    ]
    by_query = {}
    for row in rows:
        by_query.setdefault(row[:2], []).append(row)
    lists = draw.choice(["ratings", "judgements", "Judgments", "relevance_labels", "qrels", "ratedDocuments", "grades"])
    lists = "ratings" if lists == "ratedDocuments" else lists
    nested = [query_of(own[0]) | {"notes": None, lists: [{name["document"]: row[2]} | graded(row) for row in own]}
              for own in by_query.values()]  # fmt: skip
    value = draw.choice([flat, nested])
    form = draw.choice(["array", "indented", "lines", "wrapped", "hits"])
    wrapper = draw.choice(["queries", "items", "data"])
    texts = {
        "array": json.dumps(value), "indented": json.dumps(value, indent=2, ensure_ascii=False),
        "lines": "\n".join(json.dumps(one, ensure_ascii=False) for one in value),
        "wrapped": json.dumps({"name": "n", "scorer": {"scale": [0, 1]}, wrapper: value}),
        "hits": json.dumps({"took": 1, "hits": {"hits": [{"_id": str(k), "_score": 1.0, "_source": one}
                                                         for k, one in enumerate(value)]}}),
    }  # fmt: skip
    path = tmp_path / "x.json"
    path.write_text(texts[form], encoding="utf-8")
    assert found_in(read_ratings(path)) == sorted(rows)


@pytest.mark.parametrize("seed", range(40))
def test_runs_and_qrels_of_the_same_queries_agree(tmp_path, seed):
    draw, rows, *_ = drawn(seed)
    judged = {}
    for _, text, document, grade, _ in rows:
        judged.setdefault(text, {})[document] = grade
    names = [spelled(draw, draw.choice(names)) for names in (WORDS, DOCUMENT[:14])]
    for read, value in ((read_qrels, draw.choice(GRADE[:17])), (read_run, "score")):
        out = io.StringIO()
        cells = [[query, document, grade] for query, own in judged.items() for document, grade in own.items()]
        csv.writer(out).writerows([[*names, value], *cells])
        (tmp_path / "x.csv").write_text(out.getvalue(), encoding="utf-8", newline="")
        assert read(tmp_path / "x.csv").to_dict() == judged
