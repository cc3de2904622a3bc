"""`truerank judge`: from runs to a plan, a filled plan, and estimates."""

from __future__ import annotations

import csv
import json
import re

import pytest

from support.few_judgements import made
from truerank import estimate, read_plan
from truerank.cli import main
from truerank.io.trec import as_qrels, as_run, write_qrels


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs, human, judge = made(topics=10, documents=30)
    for name, run in runs.items():
        as_run(run, name).write(f"{name}.run")
    write_qrels(as_qrels(human), "human.txt")
    write_qrels(as_qrels(judge), "model.txt")
    return human


RUNS = ["run0.run", "run1.run", "run2.run"]


def fill(path, human):
    with open(path, encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        if row["judge"] == "yes":
            row["grade"] = human[row["topic"]][row["document"]]
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_two_rounds_and_their_estimate(folder, capsys):
    assert main(["judge", "plan", *RUNS, "--budget", "50", "-o", "one.csv", "--seed", "4"]) == 0
    assert "documents to judge (expected 50.0)" in capsys.readouterr().err
    fill("one.csv", folder)
    again = ["judge", "plan", *RUNS, "--plan", "one.csv", "--judges", "model.txt", "--budget", "40", "-o", "two.csv"]
    assert main([*again, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rounds"] == 2
    assert report["expected"] == pytest.approx(90)
    fill("two.csv", folder)
    words = ["judge", "estimate", *RUNS, "--plan", "two.csv", "--judges", "model.txt"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "judges: model" in out
    assert "run0 - run1" in out
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    same = estimate(RUNS, plan="two.csv", judges=["model.txt"]).difference("run0", "run1")
    assert found["differences"][0]["low"] == same.low
    assert found["judged"] == int(read_plan("two.csv").drawn.sum())


def test_grades_from_qrels_and_a_pair(folder, capsys):
    pair = ["--pair", "run0", "run1", "--scale", "0", "3", "--measure", "P(rel=2)@5"]
    assert main(["judge", "plan", *RUNS[:2], *pair, "-o", "one.csv", "--budget", "25"]) == 0
    words = ["judge", "estimate", *RUNS[:2], "--plan", "one.csv", "--human", "human.txt", "--measure", "P(rel=2)@5"]
    assert main(words) == 0
    assert "which only improve predictions" in capsys.readouterr().out


def test_a_page_on_which_people_judge(folder):
    with open("docs.jsonl", "w") as stream:
        stream.writelines(json.dumps({"id": f"d{i}", "text": f'text <{i}>, "a" b'}) + "\n" for i in range(30))
    words = ["judge", "plan", *RUNS, "-o", "one.csv", "--page", "one.html", "--texts", "docs.jsonl"]
    assert main(words) == 0
    with open("one.html") as stream:
        text = stream.read()
    plan = read_plan("one.csv")
    assert text.count("<fieldset") == len(plan.to_judge)
    document = plan.to_judge[0][1]
    assert f"text &lt;{document[1:]}&gt;, &quot;a&quot; b" in text
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text)[1])
    assert data["rows"] == plan.rows()
    assert data["name"] == "one.csv"
    assert "run0" not in text


def test_the_page_warns_without_texts_and_shows_what_grades_mean(folder, capsys):
    with open("meanings.txt", "w") as stream:
        stream.write("0: off topic\n4 answers <fully>\n")
    assert main(["judge", "plan", *RUNS, "-o", "one.csv", "--page", "one.html", "--meanings", "meanings.txt"]) == 0
    assert "--texts" in capsys.readouterr().err
    with open("one.html") as stream:
        text = stream.read()
    assert "answers &lt;fully&gt;</label>" in text
    with open("meanings.txt", "a") as stream:
        stream.write("good\n")
    assert main(["judge", "plan", *RUNS, "-o", "two.csv", "--page", "two.html", "--meanings", "meanings.txt"]) == 1
    assert "line 3" in capsys.readouterr().err


def test_compare_and_report_take_a_plan(folder, capsys):
    assert main(["judge", "plan", *RUNS, "-o", "one.csv"]) == 0
    fill("one.csv", folder)
    assert main(["judge", "estimate", *RUNS, "--plan", "one.csv", "--judges", "model.txt"]) == 0
    text = capsys.readouterr().out
    words = [*RUNS, "--plan", "one.csv", "--judges", "model.txt"]
    assert main(["compare", *words, "--measure", "DCG@10"]) == 0
    assert capsys.readouterr().out == text
    assert main(["compare", *words]) == 1
    assert "nDCG@10 is not a sum over documents" in capsys.readouterr().err
    assert main(["compare", *words, "--measure", "DCG@10", "--qrels", "human.txt"]) == 2
    assert main(["compare", *RUNS, "--qrels", "human.txt", "--judges", "model.txt"]) == 2
    pytest.importorskip("vl_convert")
    assert main(["report", "--run", *words, "--measures", "DCG@10", "-o", "out.html"]) == 0
    with open("out.html") as stream:
        page = stream.read()
    assert "human judgements (expected 100.0), judges: model" in page
    assert "run0 - run1" in page


def test_recall_with_totals(folder):
    totals = "".join(f"{t} {sum(g > 0 for g in own.values())}\n" for t, own in folder.items())
    with open("totals.txt", "w") as stream:
        stream.write(totals)
    more = ["--measure", "R@10", "--totals", "totals.txt"]
    assert main(["judge", "plan", *RUNS, *more, "-o", "r.csv"]) == 0
    assert main(["judge", "estimate", *RUNS, *more, "--plan", "r.csv", "--human", "human.txt"]) == 0


def test_agreement_of_two_judges(folder, capsys):
    assert main(["judge", "agree", "human.txt", "model.txt"]) == 0
    assert "kappa, quadratic weights" in capsys.readouterr().out
    assert main(["judge", "agree", "human.txt", "model.txt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 300


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["plan", *RUNS], 2, "-o judge.csv"),
        (["plan", *RUNS, "-o", "x.csv", "--judges", "model.txt"], 2, "an earlier round"),
        (["plan", *RUNS, "-o", "x.csv", "--human", "human.txt"], 2, "--human does not apply to plan"),
        (["plan", *RUNS, "-o", "x.csv", "--budget", "3"], 1, "less than two judgements for each of"),
        (["plan", *RUNS, "-o", "x.csv", "--measure", "nDCG@10"], 1, "not a sum over documents"),
        (["estimate", *RUNS, "--human", "human.txt"], 2, "labels without a plan"),
        (["estimate", *RUNS, "--plan", "human.txt"], 1, "Labels without a plan"),
        (["estimate", *RUNS, "--plan", "open.csv"], 1, "have no grade"),
        (["estimate", *RUNS, "--plan", "open.csv", "--budget", "9"], 2, "--budget does not apply"),
        (["agree", "human.txt"], 2, "two judges, got 1"),
        (["agree", "human.txt", "model.txt", "--plan", "x"], 2, "--plan does not apply to agree"),
    ],
)
def test_misuse_says_what_to_type(words, code, said, folder, capsys):
    assert main(["judge", "plan", *RUNS, "-o", "open.csv"]) == 0
    try:
        ended = main(["judge", *words])
    except SystemExit as stop:
        ended = stop.code
    assert ended == code
    assert said in capsys.readouterr().err


def test_a_plan_over_the_topics_of_all_runs(folder, capsys):
    assert main(["judge", "plan", *RUNS, "--topics", "all", "--budget", "50", "-o", "all.csv"]) == 0
    assert len(set(read_plan("all.csv").topics)) == 10
    assert main(["judge", "agree", "human.txt", "model.txt", "--topics", "all"]) == 2
    assert "--topics does not apply to agree" in capsys.readouterr().err
