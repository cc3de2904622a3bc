"""Features made from runs: judged documents that no run retrieved count, by either route and in every part."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from support.refusals import refused
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
from truerank.core.errors import DataFileError, InvalidInputError, TruerankWarning
from truerank.data.ranking_data import Judgements
from truerank.features.run_pool import join_runs
from truerank.io.tables import to_table
from truerank.io.trec import as_qrels, as_run
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
    as_run = evaluate(judgements, scores, "AP nDCG@5 R@10 Bpref P(judged_only=True)@5 NumRel", convention="trec")
    data = join_runs([run], qrels)
    as_column = evaluate(data, data.X[:, 0], list(as_run), convention="trec")
    assert dict(as_column) == pytest.approx(dict(as_run), rel=1e-12)
    forgotten = evaluate(RankingData(data.X, data.y, data.qid), data.X[:, 0], "AP", convention="trec")
    assert forgotten["AP"] > as_run["AP"] + 0.05  # what it was without the documents that are not there


def test_they_travel_along_through_parts_and_training():
    qrels, run = collection(1)
    data = join_runs([run], qrels)
    whole = evaluate(data, data.X[:, 0], "AP nDCG").per_query
    chosen = [5, 2, 2, 9]
    part = data.take_queries(chosen)
    for name, values in evaluate(part, part.X[:, 0], "AP nDCG").per_query.items():
        np.testing.assert_array_equal(values, whole[name][chosen])
    plain = RankingData(data.X[:4], data.y[:4], [100] * 4)
    both = RankingData.concatenate([data.take_queries([0, 1]), plain, data.take_queries([4])])
    values = evaluate(both, both.X[:, 0], "AP").per_query["AP"]
    np.testing.assert_array_equal(values[[0, 1, 3]], whole["AP"][[0, 1, 4]])
    weighted = data.with_sample_weight(np.ones(data.n_rows))
    np.testing.assert_array_equal(evaluate(weighted, weighted.X[:, 0], "AP").per_query["AP"], whole["AP"])
    stopping = EarlyStopping("AP", "trec", valid=data)
    assert stopping.value_of(data.X[:, 0]) == pytest.approx(
        evaluate(data, data.X[:, 0], "AP(ties='average')", convention="trec")["AP(ties='average')"]
    )
    ranker = AdaRank(n_estimators=2).fit(data, query_weight=np.ones(data.n_queries))
    trained = evaluate(data, ranker.predict(data), "AP(ties='average')")
    assert ranker.history_["train"][0] == pytest.approx(trained["AP(ties='average')"])


def test_judgements_of_other_rows_are_refused():
    data = RankingData([[1.0], [2.0]], [1, 0])
    with refused(InvalidInputError, argument="judgements"):
        data.with_judgements(Judgements(np.array([1.0]), np.array([0, 1])))


def test_they_travel_through_a_file():
    qrels, run = collection(3)
    data = join_runs([run], qrels)
    assert data.judged is not None
    judgements, scores = judge_run(qrels, run)
    names = "AP nDCG@5 R@10 Bpref P(judged_only=True)@5 NumRel"
    as_run = evaluate(judgements, scores, names, convention="trec")
    stream = io.BytesIO()
    write_letor(data, stream)
    again = read_letor(io.BytesIO(stream.getvalue()))
    as_file = evaluate(again, again.X[:, 0], names, convention="trec")
    assert dict(as_file) == pytest.approx(dict(as_run), rel=1e-12)
    np.testing.assert_array_equal(again.judged, data.judged)
    second = io.BytesIO()
    write_letor(again, second)
    assert second.getvalue() == stream.getvalue()
    blocks = list(iter_letor(io.BytesIO(stream.getvalue()), block_rows=20))
    values = np.concatenate(
        [evaluate(block, block.X[:, 0], "AP", convention="trec").per_query["AP"] for block in blocks]
    )
    np.testing.assert_allclose(values, as_run.per_query["AP"], rtol=1e-12)


def test_pooled_documents_travel_through_rows_and_files():
    """Judged@k and infAP tell a document that was pooled and not judged from one that nobody pooled."""
    rng = np.random.default_rng(4)
    topics = range(12)
    qrels = as_qrels(
        {t: {f"d{k}": int(rng.integers(-1, 3)) for k in rng.choice(40, 25, replace=False)} for t in topics}
    )
    run = as_run({t: {f"d{k}": float(rng.random()) for k in rng.choice(40, 20, replace=False)} for t in topics})
    judgements, scores = judge_run(qrels, run)
    names = "AP nDCG@5 Bpref infAP Judged@10 Judged@3 P(judged_only=True)@5 pairs(1,0)"
    expected = dict(evaluate(judgements, scores, names, convention="trec"))
    data = join_runs([run], qrels)
    assert data.pooled.any()
    assert data.y.min() == 0
    stream = io.BytesIO()
    write_letor(data, stream)
    again = read_letor(io.BytesIO(stream.getvalue()))
    halves = RankingData.concatenate([again.take_queries(range(5)), again.take_queries(range(5, 12))])
    plain = RankingData.concatenate([RankingData(np.ones((1, 1)), [1], [0]), data])
    assert plain.pooled.sum() == data.pooled.sum()
    for one in (data, again, halves):
        np.testing.assert_array_equal(one.pooled, data.pooled)
        np.testing.assert_array_equal(one.judged, data.judged)
        assert dict(evaluate(one, one.X[:, 0], names, convention="trec")) == pytest.approx(expected, rel=1e-12)
    without = evaluate(data.replaced(pooled=None), data.X[:, 0], names, convention="trec")
    assert without["infAP"] != pytest.approx(expected["infAP"], rel=1e-3)
    assert without["Judged@10"] < expected["Judged@10"]


def test_comment_lines_of_judgements_count_wherever_they_stand():
    """As in files that were put one behind the other, in any blocks, by either parser."""
    parts, wholes = [], []
    for first in (0, 6):
        topics = range(first, first + 6)
        qrels = as_qrels({str(t): {"a": 2, "b": -1, "x": 1} for t in topics})
        data = join_runs([as_run({str(t): {"a": 3.0, "b": 2.0, "c": float(t)} for t in topics}, "r")], qrels)
        stream = io.BytesIO()
        write_letor(data, stream)
        parts.append(stream.getvalue())
        wholes.append(data)
    together = RankingData.concatenate(wholes)
    padding = b"".join(b"0 qid:%d 1:0\n" % (100 + k // 10) for k in range(200_000))
    for text in (b"".join(parts), parts[0] + padding + parts[1]):
        found = read_letor(io.BytesIO(text))
        kept = found.take_queries(np.isin(found.query_ids, np.arange(12)))
        np.testing.assert_array_equal(kept.pooled, together.pooled)
        np.testing.assert_array_equal(kept.judged, together.judged)
        np.testing.assert_array_equal(kept.missing_grades, together.missing_grades)
    blocks = list(iter_letor(io.BytesIO(b"".join(parts)), block_rows=7))
    np.testing.assert_array_equal(np.concatenate([block.judged for block in blocks]), together.judged)
    with refused(DataFileError, code="twice", line=39):
        read_letor(io.BytesIO(parts[0] + parts[0]))
    other = parts[1].replace(b"# features: r", b"# features: s")
    with refused(DataFileError, code="different-names", line=38):
        read_letor(io.BytesIO(parts[0] + other))


def test_judgements_of_queries_without_rows_are_spoken_of():
    text = b"# not retrieved: qid:7 1*2\n# unjudged: qid:8 1\n0 qid:1 1:1\n1 qid:1 1:2\n"
    with pytest.warns(TruerankWarning, match=r"queries without rows \(2: 7, 8\)"):
        assert read_letor(io.BytesIO(text)).missing_grades is None
    with pytest.warns(TruerankWarning, match="queries without rows"):
        list(iter_letor(io.BytesIO(text)))


def test_what_a_file_cannot_hold_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    qrels = as_qrels({"1": {"a": 2, "b": -1, "x": 1}})
    data = join_runs([as_run({"1": {"a": 3.0, "b": 2.0, "c": 1.0}}, "r")], qrels)
    write_letor(data, "f.txt")
    assert "# not retrieved: qid:1 1*1\n# unjudged: qid:1 1\n# pooled: qid:1 2\n" in Path("f.txt").read_text()
    with pytest.warns(TruerankWarning, match="1 judged documents without a row and 2 rows without a judgement"):
        to_table(data)
    assert cli.main(["convert", "f.txt", "q.txt", "--to", "qrels"]) == 0
    assert sorted(Path("q.txt").read_text().splitlines()) == ["1 0 a 2", "1 0 b -1"]
    assert "judged documents without a row are not written: 1" in capsys.readouterr().err


def test_negative_grades_are_spoken_of(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.txt").write_text("".join(f"{k % 3 - 1} qid:{k // 6} 1:{k % 5}\n" for k in range(36)))
    Path("s.txt").write_text("".join(f"{k}\n" for k in range(36)))
    Path("q.txt").write_text("1 0 a 1\n1 0 b -2\n")
    Path("r.txt").write_text("1 Q0 a 1 2 r\n1 Q0 b 2 1 r\n")
    rows, documents = (
        "d.txt: changes figures (negative-grade)",
        "q.txt: changes figures (negative-grade)",
    )
    for words, said in (
        (["train", "d.txt", "--ranker", "ridge", "--model", "m.json"], rows),
        (["evaluate", "--data", "d.txt", "--scores", "s.txt"], rows),
        (["cross-validate", "d.txt", "--ranker", "ridge", "--cv", "3"], rows),
        (["evaluate", "--qrels", "q.txt", "--run", "r.txt"], documents),
        (["text", "features", "--runs", "r.txt", "--qrels", "q.txt", "-o", "f.txt"], documents),
        (["predict", "m.json", "d.txt", "-o", "p.txt"], ""),
    ):
        assert cli.main(words) == 0
        err = capsys.readouterr().err
        assert said in err
        assert said or "negative" not in err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"# not retrieved: qid:1 two", {"code": "row-numbers", "line": 1}),
        (b"# not retrieved: qid:1 1*2 1e999*1", {"code": "row-numbers", "line": 1}),
        (b"# not retrieved: qid:1 1*999999999", {"code": "too-many", "line": 1}),
        (b"# unjudged: qid:1 0", {"code": "row-numbers", "line": 1}),
        (b"# pooled: qid:1 3", {"code": "row-numbers"}),
        (b"# unjudged: qid:1 1", {"code": "grade"}),
        (b"# pooled: qid:1 2\n# pooled: qid:1 2", {"code": "twice", "line": 2}),
        (b"# unjudged: qid:1 3", {"code": "row-numbers"}),
    ],
)
def test_comment_lines_of_judgements_that_are_wrong(line, message):
    with refused(DataFileError, **message):
        read_letor(io.BytesIO(line + b"\n1 qid:1 1:1\n0 qid:1 1:2\n"))


def test_a_wrong_comment_line_between_rows_is_named_by_its_number():
    text = b"# first\n1 qid:1 1:1\n# second\n\n# third\n0 qid:2 1:2\n# unjudged: qid:3 0\n1 qid:3 1:1\n"
    with refused(DataFileError, code="row-numbers", line=7):
        read_letor(io.BytesIO(text))


def test_features_of_the_command_line_evaluate_as_the_run_does(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    with open("q", "w") as q, open("r", "w") as r:
        for topic in range(9):
            for k in rng.choice(30, 15, replace=False):
                q.write(f"{topic} 0 d{k} {rng.integers(-1, 3)}\n")
            for rank, k in enumerate(sorted(rng.choice(30, 12, replace=False).tolist(), reverse=True)):
                r.write(f"{topic} Q0 d{k} {rank} {20 - rank} r\n")
    assert cli.main(["text", "features", "--runs", "r", "--qrels", "q", "-o", "f.txt"]) == 0
    column = read_letor("f.txt")
    Path("s").write_text("\n".join(map(str, column.restore(column.X[:, 0]).tolist())) + "\n")
    capsys.readouterr()
    found = []
    for words in (["--qrels", "q", "--run", "r"], ["--data", "f.txt", "--scores", "s"]):
        assert cli.main(["evaluate", *words, "--measures", "AP nDCG@10 Bpref", "--convention", "trec", "--json"]) == 0
        found.append({k: v["mean"] for k, v in json.loads(capsys.readouterr().out)["measures"].items()})
    assert found[0] == pytest.approx(found[1], rel=1e-12)
