"""Messages word by word: what happened, what was expected, and what to write, in Python and at the command line.

Other tests assert the fields of errors. A message that is changed on purpose is changed here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import truerank
from truerank.cli import command_parser
from truerank.cli.parser import wording_of
from truerank.core.checks import check_choice, check_function, check_number, check_positive_int
from truerank.core.errors import DataFileError, TruerankError
from truerank.io.streams import check_expansion

QRELS = {"1": {"a": 1, "b": 0}, "2": {"a": 0, "b": 1}}
RUN = {"1": {"a": 2.0, "b": 1.0}, "2": {"a": 1.0, "b": 2.0}}
OTHER = {"1": RUN["1"]}
MESSAGES = {
    "P(convention='trec') requires cutoff, for example P@10": lambda: truerank.evaluate(QRELS, RUN, "P"),
    "the first argument must be the judgements, got the measure 'nDCG@10'. Write evaluate(judgements, systems, "
    "measures)":
        lambda: truerank.evaluate("nDCG@10", QRELS, RUN),
    'the runs have different topics: a 2, b 1, of 2 in the qrels. Pass topics="common" for the topics that all runs '
    'have (1), or pass topics="all" for all topics of the qrels (2), where a topic that a run lacks counts 0':
        lambda: truerank.compare(QRELS, {"a": RUN, "b": OTHER}, "AP"),
    "a comparison requires at least two rankers, got 1": lambda: truerank.compare(QRELS, {"a": RUN}, "AP"),
    "there is no system 'c'. Choose the baseline among: a, b":
        lambda: truerank.compare(QRELS, {"a": RUN, "b": RUN}, "AP", baseline="c"),
    "at_most must be a number in (0, 1), got 2.0": lambda: truerank.Cutoff(at_most=2.0).fit([1, 2], [0, 1], qid=[1, 1]),
    "n_estimators must be an integer >= 1, got 2.0": lambda: check_positive_int(2.0, "n_estimators"),
    "C must be a number in (0, inf), got 0": lambda: check_number(0, "C", "(0, inf)"),
    "update must be one of 'b', 'c', got 'a'": lambda: check_choice("a", "update", ["b", "c"]),
    "loss must be a function of (grades, depth), got '(grades)'":
        lambda: check_function(lambda grades: 0.0, "loss", "grades, depth"),
    "qid is missing (None) in row 2. Give every row a query id":
        lambda: truerank.RankingData([[1.0], [2.0]], [0, 1], qid=[1, None]),
    "qid must have one query id for each of the 2 rows, got 1":
        lambda: truerank.RankingData([[1.0], [2.0]], [0, 1], qid=[1]),
    "X is a masked array with masked entries. Fill missing values with X.filled(np.nan), or leave their rows out":
        lambda: truerank.RankingData(np.ma.array([[1.0]], mask=[[True]]), [0], qid=[1]),
    "rows.txt, line 2, column 9: expected a number as the value of feature 1, got 'x'":
        lambda: truerank.read_letor("rows.txt"),
    "words.csv, line 2: grades are words: 'Exact' (1), 'Partial' (1). Pass grades=\"Exact=3 Partial=1\" to give their "
    "numbers": lambda: truerank.read_ratings("words.csv"),
    "comma.csv, line 2: grades have a decimal comma: '0,75' (1). Write a decimal point, as in 1.5":
        lambda: truerank.read_ratings("comma.csv"),
    'm.json: the file is not a model of truerank. Expected a JSON object with "format": "truerank-model"':
        lambda: truerank.load_model("m.json"),
    "shop.csv: 3 problems:\n(1) the table has no column 'qid' (query); 'query' is probably the query. Its columns are "
    "'query', 'product_id', 'price', 'grade'\n(2) the table has no column 'y' (grade); 'grade' is probably the "
    "grade\n(3) 'product_id' probably holds "
    'document ids\nPass query="query", grade="grade", document="product_id"': lambda: truerank.read_table("shop.csv"),
    "y must be one array, got a tuple of parts with different shapes. Convert the arrays to rows with "
    "RankingData(X, y, qid)":
        lambda: truerank.evaluate((np.ones((3, 2)), np.ones(3), np.ones(3)), np.ones(3), "AP"),
    "a: the 268435456 bytes of the file expand to more than 25600 MiB, over 100 times as much. If the content is "
    "correct, write it without compression, or set TRUERANK_EXPANSION=10000 in the environment":
        lambda: check_expansion("a", 1 << 28, (100 << 28) + 1),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:x\n")
    Path("words.csv").write_text("query,docid,label\nq,a,Exact\nq,b,Partial\n")
    Path("comma.csv").write_text('query,docid,label\nq,a,"0,75"\n')
    Path("shop.csv").write_text("query,product_id,price,grade\nred shoes,p1,2,1\nred shoes,p2,3,0\n")
    Path("m.json").write_text("{}")


@pytest.mark.parametrize("text", MESSAGES)
def test_messages_in_python(text):
    with pytest.raises(TruerankError) as caught:
        MESSAGES[text]()
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("command", "call", "text"),
    [
        (
            "compare",
            lambda: truerank.compare(QRELS, {"a": RUN, "b": OTHER}, "AP"),
            "the runs have different topics: a 2, b 1, of 2 in the qrels. Add --topics common for the topics that all "
            "runs have (1), or add --topics all for all topics of the qrels (2), where a topic that a run lacks "
            "counts 0",
        ),
        (
            "evaluate",
            lambda: truerank.read_ratings("words.csv"),
            "words.csv, line 2: grades are words: 'Exact' (1), 'Partial' (1). Add --grades 'Exact=3 Partial=1' to give "
            "their numbers",
        ),
        (
            "train",
            lambda: truerank.MeasureSVM(C=[0.1, 1.0]).fit([[1.0], [2.0]], [0, 1], qid=[1, 1]),
            "C has 2 values, but validation queries, which choose among them, are missing. Add --valid FILE, or give a "
            "single C",
        ),
        (
            "power",  # has no option for it, so the remedy is left out
            lambda: (_ for _ in ()).throw(
                DataFileError("the line is long", "f", 3, remedies=[truerank.core.errors.Remedy(fold_queries=True)])
            ),
            "f, line 3: the line is long",
        ),
    ],
)
def test_the_same_messages_at_the_command_line(command, call, text):
    with pytest.raises(TruerankError) as caught:
        next(call()) if command == "power" else call()
    assert caught.value.worded(wording_of(command_parser(command)[1])) == text
