"""Judgements as projects keep them in their repositories, rebuilt by hand: read, or refused by what they are."""

import json

import pytest

from support.refusals import refused
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
    "chunks with their texts": (
        'query,docid,contents,modality,relevant\nlamp,p1_c4,"off, then on",text,1\nlamp,i3.png,figure,image,0\n',
        {"lamp": {"p1_c4": 1, "i3.png": 0}},
    ),
    "where a grade is from": (
        "qid\tdoc_id\tgrade\tsource\nz1\ta.pdf\t3\tdataset\nz1\tb.pdf\t2\tdataset\n", {"z1": {"a.pdf": 3, "b.pdf": 2}},
    ),
    "annotations": ("qid,pid,annotation\n1,197,0\n1,236,1\n", {"1": {"197": 0, "236": 1}}),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_judgements_of_projects_are_read(tmp_path, name):
    text, expected = READ[name]
    path, written = tmp_path / "export.data", tmp_path / "out.csv"
    path.write_text(text, encoding="utf-8")
    assert read_qrels(path).to_dict() == expected
    assert main(["describe", str(path)]) == 0
    assert main(["convert", str(path), str(written), "--to", "ratings"]) == 0
    assert read_qrels(written).to_dict() == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("query,better_choice,worse_choice\nuser research,a,b\n", "pairwise labels"),
        ('HITId,WorkerId,Input.query,Input.docA,Input.docB,Answer.radio\n1,1,"6","4","6","b"\n', "pairwise labels"),
    ],
)
def test_what_is_no_judgement_of_a_document_is_refused(tmp_path, text, found):
    path = tmp_path / "export.csv"
    path.write_text(text)
    with refused(DataFileError, code="no-judgements", value=found):
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


@pytest.mark.parametrize(
    ("text", "proposal"),
    [
        ("query,doc_id,doc_url,language,relevant,annotator\ntea,0a,x.org,en,yes,mo\ntea,9c,x.org,bn,no,mo\n", "yes no"),
    ],
)
def test_commands_ask_for_the_numbers_of_words_and_for_no_columns(tmp_path, capsys, text, proposal):
    path = tmp_path / "export.tsv"
    path.write_text(text)
    relevant, other = proposal.split()
    assert main(["describe", str(path)]) == 1
    assert f"--grades '{relevant}=1 {other}=0'" in capsys.readouterr().err
    assert main(["describe", str(path), "--grades", f"{relevant}=1", f"{other}=0"]) == 0


def test_ranks_without_names_are_no_grades(tmp_path):
    path = tmp_path / "run.tsv"
    path.write_text("1\t17\t1\n1\t4\t2\n2\t17\t1\n2\t5\t2\n")
    with refused(DataFileError, code="no-judgements") as caught:
        read_qrels(path)
    assert "without names of columns" in caught.value.value


def test_a_table_with_numbers_or_a_column_y_still_has_features(tmp_path, capsys):
    for rows in ("qid,docid,grade,price\n1,a,1,0.5\n1,b,0,\\N\n", "qid,docid,y,maker\n1,a,1,Acme\n1,b,0,Best\n"):
        path = tmp_path / "rows.csv"
        path.write_text(rows)
        main(["describe", str(path)])
        shown = capsys.readouterr()
        assert "judgements without features" not in shown.out + shown.err


def test_the_word_of_a_label_is_no_document(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("question_id,label,notes\n1,fully_correct,x\n2,wrong,y\n")
    with refused(DataFileError, code="no-judgements") as caught:
        read_qrels(path)
    assert "queries without documents" in caught.value.value


def test_what_an_object_wraps_is_named(tmp_path):
    path = tmp_path / "labels.json"
    path.write_text('{"_meta": {"of": "x"}, "labels": [{"patient_id": 2, "trial": "N1", "expected_verdict": "NO"}]}')
    with refused(DataFileError, code="no-judgements") as caught:
        read_qrels(path)
    assert "'labels.patient_id', 'labels.trial', 'labels.expected_verdict'" in caught.value.value
