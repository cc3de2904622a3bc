"""Exports of other tools in the shapes that their documentation shows; all contents are made up."""

from __future__ import annotations

import json
import warnings

import pytest

from support.refusals import refused
from truerank import read_qrels, read_ratings
from truerank.core.errors import DataFileError


def label_studio(document="p1", choice="2", person=7, **more):
    result = [{"from_name": "relevance", "to_name": "text", "type": "choices", "value": {"choices": [choice]}}]
    return {"id": 11, "data": {"query": "red shoes", "doc_id": document, "text": "Red running shoes"}, "project": 3,
            "annotations": [{"id": 1, "completed_by": person, "was_cancelled": False, "result": result, **more}],
            "predictions": [], "created_at": "2026-01-05T10:00:00Z"}  # fmt: skip


NUMBER = {"from_name": "stars", "to_name": "t", "type": "rating", "value": {"rating": 3}}
SKIPPED = {"id": 2, "completed_by": 8, "was_cancelled": True, "result": []}
ARGILLA_1 = {"fields": {"query": "red shoes", "passage": "Red shoes"}, "metadata": {"doc_id": "p1"},
             "responses": [{"user_id": "u1", "status": "submitted", "values": {"relevance": {"value": 3}}}],
             "external_id": None}  # fmt: skip
ARGILLA_2 = {"id": "r1", "fields": {"query": "red shoes", "text": "Red shoes"}, "metadata": {"doc_id": "p1"},
             "suggestions": {}, "vectors": {},
             "responses": {"relevance": [{"value": "3", "user_id": "u1"}]}}  # fmt: skip
PRODIGY = {"text": "Red shoes", "meta": {"query": "red shoes", "docid": "p1"}, "_input_hash": 1, "_task_hash": 2,
           "options": [{"id": 0, "text": "bad"}, {"id": 3, "text": "good"}], "accept": [3], "answer": "accept",
           "_annotator_id": "u1", "_view_id": "choice"}  # fmt: skip
BINARY = {key: value for key, value in PRODIGY.items() if key not in ("options", "accept")}
SRW = {"took": 2, "hits": {"hits": [{"_id": "j1", "_source": {
    "id": "j1", "timestamp": "2026-01-05", "name": "list", "status": "COMPLETED", "type": "LLM_JUDGMENT",
    "metadata": {"querySetId": "q", "size": 5}, "judgmentRatings": [
        {"query": "red shoes", "ratings": [{"docId": "p1", "rating": "3.0"}]},
        {"query": "blue hat", "ratings": [], "failures": [{"docId": "p9"}]}]}}]}}  # fmt: skip
BOOK = {"team_id": 1, "book": {"name": "b", "scale": "0,1,2,3", "scale_with_labels": '{"0": "Bad"}',
    "query_doc_pairs": [
        {"query_text": "red shoes", "doc_id": "p1", "position": 1, "document_fields": '{"title": "Red"}', "notes": "n",
         "information_need": "to run", "options": "",
         "judgements": [{"rating": 3.0, "user_email": "u1@example.org"}]}]}}  # fmt: skip
RRE = {"index": "shop", "corpora_file": "shop.bulk", "id_field": "id", "topics": [{"description": "d", "query_groups": [
    {"name": "shoes", "queries": [{"template": "only_q.json", "placeholders": {"$query": "red shoes"}}],
     "relevant_documents": {"p1": {"gain": 3}}}]}]}  # fmt: skip
RANK_EVAL = {"requests": [{"id": "red shoes", "request": {"query": {"match": {"title": "red shoes"}}},
                           "ratings": [{"_index": "shop", "_id": "p1", "rating": 3}]}],
             "metric": {"precision": {"k": 5, "relevant_rating_threshold": 1}}}  # fmt: skip
UMBRELA = {"model": "judge-7b", "query": "red shoes", "passage": "Red shoes", "prediction": "##final score: 3",
           "judgment": 3, "result_status": 1, "qid": "red shoes", "docid": "p1"}  # fmt: skip
READ = {
    "Label Studio, choices": [label_studio(choice="3")],
    "Label Studio, stars and a skipped task": [label_studio(result=[NUMBER]) | {"annotations": [
        {"completed_by": {"id": 7, "email": "u1@example.org"}, "result": [NUMBER]}, SKIPPED]}],
    "Argilla 1": [ARGILLA_1], "Argilla 2": [ARGILLA_2], "Prodigy, options": [PRODIGY],
    "the Search Relevance Workbench's answer": SRW, "Quepid's book as it is sent": BOOK, "RRE, gains": RRE,
    "a _rank_eval request": RANK_EVAL, "a model judge's lines": [UMBRELA],
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_exports_are_read(tmp_path, name, form):
    value = READ[name]
    path = tmp_path / f"export.{form}"
    lines = value if isinstance(value, list) else [value]
    path.write_text(json.dumps(value, indent=1) if form == "json" else "\n".join(map(json.dumps, lines)) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the documents that the Workbench's model failed to judge
        ratings = read_ratings(path)
    query, document, grade = ratings.queries[0], ratings.documents[0], ratings.grades[0]
    assert (ratings.text(query), document, grade) == ("red shoes", "p1", 3.0)
    assert len(ratings.grades) == 1


def test_people_are_judges_and_answers_of_prodigy_are_grades(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([label_studio(person=7), label_studio(choice="0", person=8), label_studio("p2")]))
    ratings = read_ratings(path)
    assert (ratings.judges, ratings.grades) == (["7", "8", "7"], [2.0, 0.0, 2.0])
    answers = [BINARY | {"answer": answer, "meta": {"query": "red shoes", "docid": answer}} for answer in
               ("accept", "reject", "ignore")]  # fmt: skip
    path.write_text(json.dumps(answers))
    with pytest.warns(UserWarning, match="1 without a grade"):
        assert read_ratings(path).qrels().to_dict() == {"red shoes": {"accept": 1, "reject": 0}}


def test_tasks_that_do_not_tell_are_refused(tmp_path):
    path = tmp_path / "a.json"
    for task, fields in [
        (label_studio() | {"data": {"text": "Red shoes"}}, {"code": "lacks-id", "value": "query"}),
        (
            label_studio() | {"data": {"query": "red shoes", "text": "Red"}},
            {"code": "lacks-id", "value": "document id"},
        ),
        (label_studio(result=[NUMBER, NUMBER | {"from_name": "mood"}]), {"code": "several-questions"}),
    ]:
        path.write_text(json.dumps([task]))
        with refused(DataFileError, **fields):
            read_ratings(path)


def test_a_folder_of_beir(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "red shoes"}\n')
    (tmp_path / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n1\tp2\t1\n")
    assert read_qrels(tmp_path).to_dict() == {"1": {"p2": 1}}
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\tp1\t3\n")
    ratings = read_ratings(str(tmp_path))
    assert (ratings.documents, ratings.text("1")) == (["p1"], "red shoes")
    (tmp_path / "qrels" / "test.tsv").rename(tmp_path / "qrels" / "train.tsv")
    with pytest.raises(DataFileError, match=r"dev.tsv, train.tsv"):
        read_ratings(tmp_path)


@pytest.mark.parametrize("title", ["Ratings of January\n", "Ratings;;\n;;\n", "\nExport\n\n"])
def test_titles_above_the_names_of_columns(tmp_path, title):
    path = tmp_path / "sheet.csv"
    path.write_text(f"{title}query;docid;rating\nred shoes;p1;3\nblue hat;p2;0\n")
    assert read_ratings(path).qrels().to_dict() == {"red shoes": {"p1": 3}, "blue hat": {"p2": 0}}


def test_a_damaged_line_of_annotations_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(PRODIGY) + "\n" + json.dumps(PRODIGY)[:-20] + "\n")
    with refused(DataFileError, line=2):
        read_ratings(path)
