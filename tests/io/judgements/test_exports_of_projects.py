"""Judgements as projects keep them in their repositories, rebuilt by hand: read, or refused by what they are."""

import json

import pytest

from truerank import read_qrels, read_ratings
from truerank.cli import main
from truerank.core.errors import DataFileError

READ = {
    "documents of Elasticsearch": (
        '{"query_text": "a b", "_index": "t", "_id": "3", "rating": 5}\n'
        '{"query_text": "a b", "_index": "t", "_id": "9", "rating": 1}\n',
        {"a b": {"3": 5, "9": 1}},
    ),
    "recipes": (
        "query_id,recipe_id,grade,source\nq1,205,2,human\nq1,383,0,human\nq2,120,3,human\n",
        {"q1": {"205": 2, "383": 0}, "q2": {"120": 3}},
    ),
    "recipes in JSON lines": (
        '{"query_id": "q1", "recipe_id": "ga", "label": 3}\n{"query_id": "q1", "recipe_id": "ot", "label": 0}\n',
        {"q1": {"ga": 3, "ot": 0}},
    ),
    "products beside the id of the row": (
        'id,product_uid,product_title,search_term,relevance\n2,100001,"a, b",angle bracket,3\n9,100002,c,deck,1\n',
        {"angle bracket": {"100001": 3}, "deck": {"100002": 1}},
    ),
    "a median and its variance": (
        "id,query,product_title,median_relevance,relevance_variance\n1,shower,x,1,0\n2,lights,y,4,0.47\n",
        {"shower": {"1": 1}, "lights": {"2": 4}},
    ),
    "paths in a list": (
        json.dumps([{"query": "cosine", "relevant": [{"path": "s.rs", "header": "fn c", "relevance": 3}]}]),
        {"cosine": {"s.rs": 3}},
    ),
    "the LTR demo": (
        "# grade (0-4)\tqueryid\tdocId\ttitle\n#\n# qid:1: rambo\n# qid:2: rocky\n#\n4\tqid:1 #\t7555\tRambo\n"
        "0\tqid:2 #\t17711\tRocky & Bullwinkle\n",
        {"1": {"7555": 4}, "2": {"17711": 0}},
    ),
    "the notebooks of LTR": (
        "# qid:1: rambo*1\n# qid:2: war games*1\n\n4\tqid:1\t # 7555\trambo\n0\tqid:2\t # 18112\twar games\n",
        {"1": {"7555": 4}, "2": {"18112": 0}},
    ),
}


@pytest.mark.parametrize("name", READ)
def test_judgements_of_projects_are_read(tmp_path, name):
    text, expected = READ[name]
    path, written = tmp_path / "export.data", tmp_path / "out.csv"
    path.write_text(text, encoding="utf-8")
    assert read_qrels(path).to_dict() == expected
    assert main(["convert", str(path), str(written), "--to", "ratings"]) == 0
    assert read_qrels(written).to_dict() == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("query,better_choice,worse_choice\nuser research,a,b\n", "pairwise labels"),
        ('HITId,WorkerId,Input.query,Input.docA,Input.docB,Answer.radio\n1,1,"6","4","6","b"\n', "pairwise labels"),
        ("query_id,query,video,segment,relevance\na,where?,17Min,64,3\na,where?,30Min,54,0\n", "queries without doc"),
    ],
)
def test_what_is_no_judgement_of_a_document_is_refused(tmp_path, text, found):
    path = tmp_path / "export.csv"
    path.write_text(text)
    with pytest.raises(DataFileError, match=found):
        read_qrels(path)


def test_the_grade_that_judges_agreed_on_is_no_further_judge(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("query,docid,agent_1_rating,agent_2_rating,final_rating\ntv,d1,2,3,3\ntv,d2,0,0,0\n")
    ratings = read_ratings(path)
    assert sorted(set(ratings.judges)) == ["agent_1_rating", "agent_2_rating"]


def test_grades_of_documents_without_any_name_are_refused(tmp_path):
    path = tmp_path / "ratings.jsonl"
    path.write_text('{"query": "tv", "ratings": [{"rating": 3, "comment": true}, {"rating": 0}]}\n')
    with pytest.raises(DataFileError):
        read_qrels(path)
