"""Columns whose names say nothing: roles by their cells, and a command that reads the file as it was made."""

import csv
import json
import random
import re
import shlex
import statistics
from collections import Counter, defaultdict

import pytest

from truerank import read_qrels, read_ratings
from truerank.cli import main
from truerank.core.errors import DataFileError

NAMES = ["job_id", "cv_id", "anfrage", "treffer", "kb_entry", "fit", "stufe", "wer", "urteil", "hotel", "claim", "seed", "lot", "asset", "nr", "kanal", "ka", "mori", "tane", "luso", "col1", "col7"]  # fmt: skip  # noqa: E501
SCALES = [["0", "1"], ["0", "1", "2", "3"], ["1", "2", "3", "4", "5"], ["no", "yes"], ["Bad", "Fair", "Good"],
          ["irrelevant", "partially relevant", "relevant"], ["0", "10", "100"]]  # fmt: skip
FORMS = ["csv", "tsv", "bare", "json", "jsonl", "wrapped", "nested"]


def text(draw, words):
    return " ".join("".join(draw.choices(["ka", "mo", "ri", "ta", "ne", "lu"], k=3)) for _ in range(words))


def table(draw):
    """Rows of a query, its documents, their grades, and columns of no use; the grades of judges are rows or columns."""
    scale, judges = draw.choice(SCALES), draw.choice(["one", "one", "rows", "columns"])
    kind, pool = draw.choice(["text", "id", "number"]), draw.choice([None, 30])
    form = draw.choice(["D%04d", "https://x.org/%d", "file_%d.txt", "1%04d"])
    rows, number = [], 0
    for query in range(draw.randint(4, 12)):
        name = {"text": text(draw, draw.randint(2, 5)), "id": f"Q{query + 1}", "number": str(query + 1)}[kind]
        for _ in range(draw.randint(2, 7)):
            number += 1
            document = form % (draw.randrange(pool) if pool else number)
            if any(own[:2] == (name, document) for own in rows):
                continue
            base = draw.randrange(len(scale))
            near = [scale[min(len(scale) - 1, max(0, base + draw.choice([0, 0, 1])))] for _ in range(3)]
            rows.append((name, document, near))
    columns = {"query": [], "document": [], "grade": []}
    if judges == "columns":
        columns = {"query": [], "document": [], "rater1": [], "rater2": [], "rater3": []}
    if judges == "rows":
        columns["judge"] = []
    for query, document, near in rows:
        for judge in range(3 if judges == "rows" else 1):
            cells = near if judges == "columns" else [near[judge]]
            for name, cell in zip(columns, (query, document, *cells, f"W{judge}")):
                columns[name].append(cell)
    length = len(columns["query"])
    others = [[text(draw, 7) for _ in range(length)], [f"{draw.random():.3f}" for _ in range(length)],
              [f"2026-01-{1 + k % 28:02d}" for k in range(length)], ["v1"] * length]  # fmt: skip
    return columns, others, scale


def write(path, form, names, rows):
    records = [dict(zip(names, row)) for row in rows]
    if form in ("csv", "tsv", "bare"):
        with open(path, "w", newline="") as stream:
            out = csv.writer(stream, delimiter="," if form == "csv" else "\t")
            out.writerows([*([] if form == "bare" else [names]), *rows])
    elif form == "jsonl":
        path.write_text("".join(json.dumps(one) + "\n" for one in records))
    elif form == "nested":
        groups = defaultdict(list)
        for one in records:
            groups[one.pop(names[0])].append(one)
        path.write_text(json.dumps([{names[0]: query, "treffer_x": own} for query, own in groups.items()]))
    else:
        path.write_text(json.dumps(records if form == "json" else {"made": "2026-01-02", "rows": records}))


def planted(columns, scale):
    grades = {cell: float(cell) if re.match(r"\d", cell) else float(scale.index(cell)) for cell in scale}
    given = defaultdict(lambda: defaultdict(list))
    for name in columns.keys() - {"query", "document", "judge"}:
        for query, document, cell in zip(columns["query"], columns["document"], columns[name]):
            given[query][document].append(grades[cell])
    return {query: {name: statistics.median(own) for name, own in lists.items()} for query, lists in given.items()}


def grades_of(path):
    found = read_ratings(path)
    given = defaultdict(dict)
    for query, document, grade in zip(found.queries, found.documents, found.grades):
        given[found.text(query)][document] = grade
    return given


@pytest.mark.filterwarnings("ignore")
def test_the_proposed_command_reads_what_was_planted_and_nothing_is_read_wrong_without_it(tmp_path, capsys):
    outcomes, path, target = Counter(), tmp_path / "f.txt", tmp_path / "o.csv"
    for seed in range(60):
        draw = random.Random(seed)
        columns, others, scale = table(draw)
        form = draw.choice(FORMS)
        more = [] if form == "bare" else draw.sample(others, draw.randint(0, 3))
        cells = [*columns.values(), *more]
        names = draw.sample(NAMES, len(cells))
        names = [name if name.startswith("rater") else own for name, own in zip([*columns, *[""] * len(more)], names)]
        write(path, form, names, list(zip(*cells)))
        target.unlink(missing_ok=True)
        code = main(["convert", str(path), str(target), "--to", "ratings"])
        message, expected = capsys.readouterr().err, planted(columns, scale)
        if code == 0:
            assert grades_of(target) == expected, (seed, form)  # the names said it
            continue
        command = re.search(r"Type: truerank (.*?)(, or type: |$)", message, re.M)
        outcomes["refused" if command is None else "proposed"] += 1
        if command:
            words = shlex.split(command[1])
            words[2] = str(target)
            assert main(words) == 0, (seed, message, capsys.readouterr().err)
            outcomes["exact"] += grades_of(target) == expected
            capsys.readouterr()
    assert outcomes["exact"] >= 0.9 * (outcomes["proposed"] + outcomes["refused"]) > 30, outcomes


FILES = {
    "ids": ("1 184\n1 29\n2 12\n2 184\n3 5\n", {"1": {"184": 1, "29": 1}, "2": {"12": 1, "184": 1}, "3": {"5": 1}}),
    "jobs": ("job_id,cv_id,fit\nj1,cv_01.txt,3\nj1,cv_02.txt,0\nj2,cv_01.txt,1\n", {
        "j1": {"cv_01.txt": 3, "cv_02.txt": 0}, "j2": {"cv_01.txt": 1}}),
    "words without names": ("chess\t32\tGood\nchess\t55\tBad\nred boat\t12\tBad\t\n", {
        "chess": {"32": 1, "55": 0}, "red boat": {"12": 0}}),
    "numbers without names": ("1\t17\t2\n1\t4\t1\n2\t17\t1\n2\t5\t1\n\n", {
        "1": {"17": 2, "4": 1}, "2": {"17": 1, "5": 1}}),
    "an object around the list": (
        json.dumps({"_meta": {"of": "x", "rules": ["a", "b"]}, "labels": [
            {"patient": 2, "trial": "N1", "verdict": "no", "at": "2026-01-02"},
            {"patient": 2, "trial": "N2", "verdict": "yes", "at": "2026-01-02"},
            {"patient": 3, "trial": "N1", "verdict": "yes", "at": "2026-01-03"}]}),
        {"2": {"N1": 0, "N2": 1}, "3": {"N1": 1}},
    ),
    "a map in an object": ('{"version": 1, "fragen": {"q-1": ["a1", "a2"], "q-2": ["b1"]}}', {
        "q-1": {"a1": 1, "a2": 1}, "q-2": {"b1": 1}}),
    "lists of other names": (
        '{"id": "q1", "pregunta": "¿a qué hora?", "secciones": ["F#1"], "notas": null}\n'
        '{"id": "q2", "pregunta": "¿dónde está?", "secciones": ["F#1", "G#2"], "notas": null}\n',
        {"¿a qué hora?": {"F#1": 1}, "¿dónde está?": {"F#1": 1, "G#2": 1}},
    ),
    "lists in cells": ('cv,cv_text,relevant_job_ids\nr1,"Go, C","j1,j2"\nr2,Agents,"j1,j2"\nr3,"Spark, R",j4\n', {
        "Go, C": {"j1": 1, "j2": 1}, "Agents": {"j1": 1, "j2": 1}, "Spark, R": {"j4": 1}}),
    "grades in lists": ('film,other,fit\nv14,v61,["0"]\nv14,v26,["1"]\nv15,v61,["0"]\nv15,v62,["0"]\nv8,v7,["1"]\n', {
        "v14": {"v61": 0, "v26": 1}, "v15": {"v61": 0, "v62": 0}, "v8": {"v7": 1}}),
    "texts of chunks": (
        'query,retrieved_chunk,relevance_score,is_relevant,ground_truth\nWho is Ada?,"Ada, a woman",0.95,1,1\n'
        "Who is Ada?,Bananas are fruit,0.12,0,0\nWhat is AI?,A field,0.91,1,1\nWhat is AI?,A sloth,0.4,0,1\n",
        {"Who is Ada?": {"Ada, a woman": 1, "Bananas are fruit": 0}, "What is AI?": {"A field": 1, "A sloth": 0}},
    ),
    "several questions of a judge": (
        "uuid,annotator,input_query,chunk_id,chunk_rank,topically_relevant,misleading\n"
        "r1,an,how long,d1-3,1,True,False\n"
        "r2,an,how long,d4-1,2,False,False\nr3,bo,who pays,d2-1,1,True,False\nr4,bo,who pays,d2-7,2,False,True\n",
        {"how long": {"d1-3": 1, "d4-1": 0}, "who pays": {"d2-1": 1, "d2-7": 0}},
    ),
    "maps of words": ('{"a": {"d1": "good", "d2": "bad"}, "b": {"d2": "good"}}', {
        "a": {"d1": 1, "d2": 0}, "b": {"d2": 1}}),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_ready_command_reads_files_without_usual_names(tmp_path, capsys, name):
    path, target = tmp_path / "f.csv", tmp_path / "o.csv"
    path.write_text(FILES[name][0])
    assert main(["describe", str(path)]) == 1
    words = shlex.split(re.search(r"[Tt]ype: truerank (.*?)(, or type: |$)", capsys.readouterr().err, re.M)[1])
    words[2] = str(target)
    assert main(words) == 0
    assert read_qrels(target).to_dict() == FILES[name][1]


def test_qrels_are_written_from_a_table_that_has_features_too(tmp_path):
    path, target = tmp_path / "f.csv", tmp_path / "qrels.txt"
    path.write_text("query_id,doc_id,rank,current_relevance,dcg\nc,c-1,1,4,4.0\nd,d-1,1,2,2.0\nd,d-2,2,1,0.6\n")
    assert main(["convert", str(path), str(target), "--to", "qrels"]) == 0
    assert read_qrels(target).to_dict() == {"c": {"c-1": 4}, "d": {"d-1": 2, "d-2": 1}}


def test_columns_of_several_judges_are_named_together(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("need,hit,a,b,price\nx y,d1,3,1,9.5\nx y,d2,0,0,1.5\n")
    found = read_ratings(path, query="need", document="hit", grade="a,b")
    assert (found.grades, found.judges) == ([3, 1, 0, 0], ["a", "b", "a", "b"])


@pytest.mark.parametrize(
    "rows",
    [
        "user,task_id,query_id,row_id,relevance\n9,11,1,0,3\n9,11,1,1,2\n9,11,0,0,2\n9,10,0,0,3\n9,10,0,1,1\n8,11,0,0,1\n",
        "id,source_url,company,is_relevant,notes\n1,https://x.org/1,A,yes,\n2,https://x.org/2,B,no,too far\n",
        "trial,query,response,annotator_1,annotator_2,adjudicated\nt1,a b,c d,1,1,1\nt2,e f,g h,0,1,0\n",
        '{"C1": {"tier": 5, "of": "x, y"}, "C2": {"tier": 4, "of": "z"}, "C3": {"tier": 5, "of": "u"}}',
        '[{"relevant_chunk_ids": ["a"]}, {"relevant_chunk_ids": ["b"]}]',
        "question_id,label,notes\n1,fully_correct,x\n2,wrong,y\n",
        "1\t17\t1\n1\t4\t2\n2\t17\t1\n2\t5\t2\n",
    ],
)
def test_what_is_no_pair_of_a_query_and_a_document_is_refused_by_name(tmp_path, capsys, rows):
    path = tmp_path / "f.csv"
    path.write_text(rows)
    assert main(["describe", str(path)]) == 1
    assert "Type:" not in capsys.readouterr().err
    with pytest.raises(DataFileError, match="without"):
        read_qrels(path)


SURVEYS = {
    "answers of systems": (
        "question_id,system,rater,correct\nQ1,rag,A,1\nQ1,llm,A,0\nQ2,rag,A,1\nQ2,llm,B,1\n",
        "queries without documents", "'system'"),
    "texts with a label": (
        "post,why,label\na fox walks,x,good\na cat sits,y,bad\na dog runs,z,good\n",
        "documents without queries", "'post' texts, each once"),
    "texts with categories": (
        "text,court,kind\nhe was freed,East,civil\nshe was not,West,civil\nit was so,East,other\nso be it,West,other\n",
        "documents without queries", "'court'"),
    "numbers of things": ("video,rpm\nv30,63\nv60,90\nw30,58\nw60,85\n", "documents without queries", "58 to 90"),
    "pairs of one kind": (
        "item_a,item_b,same\np1,p2,1\np1,p3,1\np2,p3,1\np4,p5,1\np6,p7,1\np1,p4,0\np3,p8,0\n",
        "pairs of items", "'item_b'"),
    "things in groups": (
        "file,expected_article\nc1.jpg,a5.txt\nc2.jpg,a5.txt\nl1.jpg,a2.txt\nl2.jpg,a2.txt\n",
        "groups without grades", "'file' ids"),
    "a survey": (
        "day,cond,subject,sex,age,s1,s2,s3,s4,s5\n" + "".join(
            f"11/{k}/2014,{'ab'[k % 2]},{k},{'mf'[k % 3 > 0]},{18 + k},{k % 4},{k % 3},2,{k % 2},{k % 5}\n"
            for k in range(9)),
        "rows", "'cond'"),
}  # fmt: skip


@pytest.mark.parametrize("name", SURVEYS)
def test_files_that_are_no_judgements_are_named_by_the_role_that_their_cells_lack(tmp_path, name):
    path = tmp_path / "f.csv"
    cells, looks, held = SURVEYS[name]
    path.write_text(cells)
    with pytest.raises(DataFileError) as caught:
        read_qrels(path)
    assert looks in caught.value.value
    assert held in str(caught.value)
    assert "query=" in str(caught.value) or "document=" in str(caught.value) or "grade=" in str(caught.value)


def test_two_readings_with_similar_evidence_are_both_shown(tmp_path, capsys):
    path = tmp_path / "f.csv"
    path.write_text("need,hit,spot,fit\nq a,d1,x9,1\nq a,d2,x8,0\nq a,d3,x4,1\nq b,d1,x8,0\nq b,d4,x9,0\nq b,d5,x2,1\n")
    assert main(["describe", str(path)]) == 1
    commands = re.findall(r"[Tt]ype: truerank (.*?)(?=, or type: |$)", capsys.readouterr().err, re.M)
    found = [main([*shlex.split(one)[:2], str(tmp_path / "o.csv"), *shlex.split(one)[3:]]) for one in commands]
    assert found == [0, 0]


def test_documents_that_are_compared_are_pairwise_labels(tmp_path, capsys):
    path = tmp_path / "f.csv"
    pairs = ["a b,d1,d2,d1", "a b,d2,d3,d3", "a b,d3,d1,d1", "c d,d4,d5,d5", "c d,d5,d6,d6", "c d,d6,d4,d6"]
    path.write_text("\n".join(["frage,eins,zwei,besser", *pairs, ""]))
    assert main(["describe", str(path)]) == 1
    assert "pairwise labels" in capsys.readouterr().err


def test_pairs_in_lists_are_no_documents(tmp_path, capsys):
    path = tmp_path / "f.jsonl"
    path.write_text('{"seed": [155, "m"], "good": [[77, "m"], [80, "m"]], "bad": [[63, "m"]]}\n' * 2)
    assert main(["describe", str(path)]) == 1
    assert "Type:" not in capsys.readouterr().err
