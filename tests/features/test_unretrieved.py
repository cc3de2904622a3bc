"""Features made from runs: judged documents that no run retrieved count, by either route and in every part."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from truerank import (
    AdaRank,
    RankingData,
    cli,
    evaluate,
    iter_letor,
    judge_run,
    read_letor,
    read_qrels,
    read_run,
    write_letor,
)
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.data.ranking_data import Judgements
from truerank.features.runs import join_runs
from truerank.solvers.early_stopping import EarlyStopping


def collection(seed=0, topics=12):
    rng = np.random.default_rng(seed)
    qrels = "".join(
        f"{t} 0 d{k} {rng.integers(-1, 3)}\n" for t in range(topics) for k in rng.choice(40, 20, replace=False)
    )
    run = "".join(
        f"{t} Q0 d{k} 0 {rng.integers(0, 9)} x\n" for t in range(topics) for k in rng.choice(40, 15, replace=False)
    )
    return read_qrels(io.StringIO(qrels)), read_run(io.StringIO(run))


def test_a_run_and_its_column_have_the_same_measures():
    qrels, run = collection()
    judgements, scores = judge_run(qrels, run)
    as_run = evaluate("AP nDCG@5 R@10 Bpref P(judged_only=True)@5 NumRel", judgements, scores, convention="trec")
    data = join_runs([run], qrels).data
    as_column = evaluate(list(as_run), data, data.X[:, 0], convention="trec")
    assert dict(as_column) == pytest.approx(dict(as_run), rel=1e-12)
    forgotten = evaluate("AP", RankingData(data.X, data.y, data.qid), data.X[:, 0], convention="trec")
    assert forgotten["AP"] > as_run["AP"] + 0.05  # what it was without the documents that are not there


def test_they_travel_along_through_parts_and_training():
    qrels, run = collection(1)
    data = join_runs([run], qrels).data
    whole = evaluate("AP nDCG", data, data.X[:, 0]).per_query
    chosen = [5, 2, 2, 9]
    part = data.take_queries(chosen)
    for name, values in evaluate("AP nDCG", part, part.X[:, 0]).per_query.items():
        np.testing.assert_array_equal(values, whole[name][chosen])
    plain = RankingData(data.X[:4], data.y[:4], [100] * 4)
    both = RankingData.concatenate([data.take_queries([0, 1]), plain, data.take_queries([4])])
    values = evaluate("AP", both, both.X[:, 0]).per_query["AP"]
    np.testing.assert_array_equal(values[[0, 1, 3]], whole["AP"][[0, 1, 4]])
    weighted = data.with_sample_weight(np.ones(data.n_rows))
    np.testing.assert_array_equal(evaluate("AP", weighted, weighted.X[:, 0]).per_query["AP"], whole["AP"])
    stopping = EarlyStopping("AP", "trec", valid=data)
    assert stopping.value_of(data.X[:, 0]) == pytest.approx(
        evaluate("AP(ties='average')", data, data.X[:, 0], convention="trec")["AP(ties='average')"]
    )
    ranker = AdaRank(n_estimators=2).fit(data, query_weight=np.ones(data.n_queries))
    trained = evaluate("AP(ties='average')", data, ranker.predict(data))
    assert ranker.history_["train"][0] == pytest.approx(trained["AP(ties='average')"])


def test_judgements_of_other_rows_are_refused():
    data = RankingData([[1.0], [2.0]], [1, 0])
    with pytest.raises(InvalidInputError, match="of 1 documents of 1 queries, the data of 2 of 1"):
        data.with_judgements(Judgements(np.array([1.0]), np.array([0, 1])))


def test_they_travel_through_a_file():
    qrels, run = collection(3)
    data = join_runs([run], qrels).data
    assert data.judged is not None
    judgements, scores = judge_run(qrels, run)
    names = "AP nDCG@5 R@10 Bpref P(judged_only=True)@5 NumRel"
    as_run = evaluate(names, judgements, scores, convention="trec")
    stream = io.BytesIO()
    write_letor(data, stream)
    again = read_letor(io.BytesIO(stream.getvalue()))
    as_file = evaluate(names, again, again.X[:, 0], convention="trec")
    assert dict(as_file) == pytest.approx(dict(as_run), rel=1e-12)
    np.testing.assert_array_equal(again.judged, data.judged)
    second = io.BytesIO()
    write_letor(again, second)
    assert second.getvalue() == stream.getvalue()
    blocks = list(iter_letor(io.BytesIO(stream.getvalue()), block_rows=20))
    values = np.concatenate(
        [evaluate("AP", block, block.X[:, 0], convention="trec").per_query["AP"] for block in blocks]
    )
    np.testing.assert_allclose(values, as_run.per_query["AP"], rtol=1e-12)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"# not retrieved: qid:1 two", "line 1: expected grade.count words"),
        (b"# not retrieved: qid:1 1*2 1e999*1", "line 1: expected grade.count words"),
        (b"# not retrieved: qid:1 1*999999999", "line 1: more than 10000000 documents"),
        (b"# unjudged: qid:1 0", "line 1: expected numbers of rows"),
        (b"# unjudged: qid:1 3", "row 3 of query 1 is said to be unjudged, but it has 2 rows"),
    ],
)
def test_comment_lines_of_judgements_that_are_wrong(line, message):
    with pytest.raises(DataFileError, match=message):
        read_letor(io.BytesIO(line + b"\n1 qid:1 1:1\n0 qid:1 1:2\n"))


def test_features_of_the_command_line_evaluate_as_the_run_does(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    with open("q", "w") as q, open("r", "w") as r:
        for topic in range(9):
            for k in rng.choice(30, 15, replace=False):
                q.write(f"{topic} 0 d{k} {rng.integers(-1, 3)}\n")
            for rank, k in enumerate(sorted(rng.choice(30, 12, replace=False).tolist(), reverse=True)):
                r.write(f"{topic} Q0 d{k} {rank} {20 - rank} r\n")
    assert cli.main(["features", "--runs", "r", "--qrels", "q", "-o", "f.txt"]) == 0
    column = read_letor("f.txt")
    Path("s").write_text("\n".join(map(str, column.restore(column.X[:, 0]).tolist())) + "\n")
    capsys.readouterr()
    found = []
    for words in (["--qrels", "q", "--run", "r"], ["--data", "f.txt", "--scores", "s"]):
        assert cli.main(["evaluate", *words, "--measures", "AP nDCG@10 Bpref", "--convention", "trec", "--json"]) == 0
        found.append({k: v["mean"] for k, v in json.loads(capsys.readouterr().out)["measures"].items()})
    assert found[0] == pytest.approx(found[1], rel=1e-12)
