"""Types of the public interface: a type checker finds wrong arguments in a user's script, and none in a right one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import truerank
from truerank.core import types
from truerank.data.provenance import TRAINING_QUERIES
from truerank.experiments.experiment import PAIRS
from truerank.losses.boosting import OBJECTIVES
from truerank.measures.conventions import CONVENTIONS
from truerank.measures.coverage import TOPICS
from truerank.significance.comparison import CORRECTIONS
from truerank.significance.paired import TESTS

RIGHT = """
import numpy as np
import pandas
import polars
import truerank

qrels = {"7": {"a": 1, "b": 0}}
run = {"7": {"a": 2.0, "b": 1.0}}
y, qid = np.array([1, 0, 1, 0]), [1, 1, 2, 2]
one: float = truerank.evaluate(qrels, run, "RR")["RR"]
also: float = truerank.evaluate(y, [0.1, 0.2, 0.3, 0.4], qid=qid)["nDCG@10"]
read = truerank.evaluate("qrels.txt", "bm25.run", convention="trec").per_query["nDCG@10"].tolist()
several = truerank.evaluate(qrels, {"old": run, "new": run}, ["RR", "AP"], topics="common")
means = {name: own["RR"] for name, own in several.items()}
files = truerank.evaluate("qrels.txt", ["old.run", "new.run"])["old"].n_queries + 1
found = truerank.compare(qrels, {"old": run, "new": run}, "RR", test="t", correction="holm", pairs="all")
difference: float = found.pairs[0].difference
both = truerank.compare(qrels, {"old": run, "new": run}, ["RR", "AP"])["AP"].means
ranker = truerank.ObliviousBoosting(objective="lambdarank", n_estimators=10).fit(y[:, None], y, qid=qid)
scores = ranker.predict(y[:, None])
by_model = truerank.evaluate(truerank.RankingData(y[:, None], y, qid), ranker, training_queries="keep").summary
crossed = truerank.cross_validate({"trees": ranker}, truerank.load_sample(), cv=truerank.QueryKFold(3))
crossed.compare(test="wilcoxon").plot().save("chart.svg")
needed = truerank.Experiment(qrels, {"old": run, "new": run}).power(0.02, power=0.9).n
frame = pandas.DataFrame({"qid": qid, "y": y, "bm25": [0.1, 0.2, 0.3, 0.4]})
typed = polars.DataFrame({"qid": qid, "y": y, "bm25": [0.1, 0.2, 0.3, 0.4]})
truerank.explain(ranker, frame, query=1).to_markdown()
truerank.explain(ranker, typed, query=1).to_markdown()
truerank.learning_curve(truerank.RidgeRanker(), typed, frame, draws=1).to_dict()
truerank.permutation_importance(ranker, frame, repeats=2).plot()
truerank.removal_importance(truerank.RidgeRanker(), frame, truerank.RankingData(y[:, None], y, qid))
truerank.partial_dependence(ranker, "rows.csv", "bm25", points=3)
truerank.ranking_stability(ranker, frame, repeats=2).mean()
truerank.learning_curve(truerank.RidgeRanker(), frame, frame, draws=1).to_dict()
truerank.distil(frame, y).predict(frame)
truerank.evaluate(frame, {"mine": ranker, "today": "bm25"}, "AP")["mine"].summary
truerank.cross_validate(ranker, frame).means
"""
WRONG = {
    'truerank.compare({"7": {"a": 1}}, {"x": "x.run", "y": "y.run"}, test="student")': "compare",
    'truerank.evaluate("qrels", "x.run", topic="all")': "evaluate",
    'truerank.ObliviousBoosting(objective="lambda")': "objective",
    'truerank.evaluate("qrels", "x.run", convention="trek")': "evaluate",
    'truerank.evaluate("qrels", {"x": "x.run"}).per_query': "per_query",
    'truerank.evaluate("qrels", "x.run")["AP"].upper()': "upper",
    "truerank.RankSVM().fit([[1.0]], [1], querys=[1])": "querys",
    'truerank.Experiment("qrels", "x.run").power(0.02, powr=0.9)': "powr",
    "truerank.explain(truerank.RidgeRanker(), [[1.0]], query=1)": "explain",
}


@pytest.mark.parametrize(
    ("named", "known"),
    [
        (types.Convention, CONVENTIONS), (types.Test, TESTS), (types.Correction, CORRECTIONS), (types.Topics, TOPICS),
        (types.TrainingRule, TRAINING_QUERIES), (types.Pairs, PAIRS), (get_args(types.TreeObjective)[0], OBJECTIVES),
    ],
)  # fmt: skip
def test_types_have_the_names_that_are_accepted(named, known):
    assert set(get_args(named)) == set(known)


def test_a_type_checker_finds_each_wrong_argument_and_no_other(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text("import truerank\n" + "\n".join(WRONG) + "\n")
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nignore_missing_imports = true\n[mypy-truerank.*]\nignore_errors = true\n"
        # No public name has a type of theirs, and with what they import they are as much to read as truerank.
        "[mypy-numba.*,optuna.*,sklearn.*,scipy.*,IPython.*,matplotlib.*]\nfollow_imports = skip\n"
    )
    source = Path(truerank.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "cache", "right.py", "wrong.py"],
        cwd=tmp_path, env=os.environ | {"MYPYPATH": str(source)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [line for line in errors if line.startswith("right.py")] == [], done.stdout
    found = {int(line.split(":")[1]): line for line in errors}
    assert sorted(found) == list(range(2, 2 + len(WRONG))), done.stdout + done.stderr
    for number, name in enumerate(WRONG.values(), 2):
        assert name in found[number]
