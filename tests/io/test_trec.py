"""Runs, qrels and their join."""

from __future__ import annotations

import io

import numpy as np
import pytest

from truerank import judge_run, read_qrels, read_run, write_qrels, write_run
from truerank.core.errors import DataFileError, InvalidInputError

RUN = "051 Q0 d2 1 3.5 s\r\n051\tQ0\td1 2 3.5 s\n9 Q0 d1 0 -1e-3 s\n051 Q0 d9 3 1 s\n"
QRELS = "9 0 d1 1\n9 0 d7 2\n051 0 d1 -1\n051 0 d2 3\n77 0 d1 1\n"


def run_of(text):
    return read_run(io.StringIO(text))


def qrels_of(text):
    return read_qrels(io.StringIO(text))


def test_a_run_is_grouped_and_topics_stay_strings():
    run = run_of(RUN)
    assert run.query_ids.tolist() == ["051", "9"]
    assert run.offsets.tolist() == [0, 3, 4]
    assert run.doc_ids.tolist() == ["d2", "d1", "d9", "d1"]
    assert run.scores.tolist() == [3.5, 3.5, 1.0, -0.001]
    assert run.tag == "s"
    assert run.to_dict()["9"] == {"d1": -0.001}


def test_the_join_counts_what_was_not_retrieved_and_topics_without_rows():
    judgements, scores = judge_run(qrels_of(QRELS), run_of(RUN + "5 Q0 d1 1 1 s\n"))
    assert judgements.query_ids.tolist() == ["9", "051", "77"]
    assert judgements.offsets.tolist() == [0, 1, 4, 4]
    assert judgements.grades.tolist() == [1, 3, -1, 0]
    assert judgements.judged.tolist() == [True, True, True, False]
    assert scores.tolist() == [-0.001, 3.5, 3.5, 1.0]
    assert judgements.tie_keys.tolist() == ["d1", "d2", "d1", "d9"]
    assert judgements.missing_offsets.tolist() == [0, 1, 1, 2]
    assert judgements.missing_grades.tolist() == [2, 1]


def test_round_trips():
    run = run_of(RUN)
    stream = io.BytesIO()
    write_run(stream, run.query_ids, run.offsets, run.doc_ids, run.scores, tag="t")
    again = read_run(io.BytesIO(stream.getvalue()))
    assert again.to_dict() == run.to_dict()
    assert again.tag == "t"
    assert stream.getvalue().split(b"\n")[1] == b"051 Q0 d1 2 3.5 t"
    qrels, stream = qrels_of(QRELS), io.BytesIO()
    write_qrels(qrels, stream)
    assert read_qrels(io.BytesIO(stream.getvalue())).to_dict() == qrels.to_dict()


def test_depth_keeps_the_best():
    stream = io.BytesIO()
    write_run(stream, ["a"], np.array([0, 3]), ["x", "y", "z"], np.array([1.0, 3.0, 2.0]), depth=2)
    assert stream.getvalue() == b"a Q0 y 1 3.0 truerank\na Q0 z 2 2.0 truerank\n"


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (run_of, "1 Q0 d 1 2\n", "<stream>, line 1: expected 6 columns 'topic Q0 docno rank score tag', got 5"),
        (run_of, "1 Q0 d 1 2 t\n\n1 Q0 e 1 x t\n", "line 3: expected a score .*, got 'x'"),
        (run_of, "1 Q0 d 1 nan t\n", "expected a score .*, got 'nan'"),
        (run_of, "1 Q0 d 1 1_0 t\n", "expected a score .*, got '1_0'"),
        (run_of, "1 Q0 d 1 2 t\n2 Q0 d 1 2 t\n1 Q0 d 2 1 t\n", "line 3: document 'd' stands twice under topic '1'"),
        (run_of, "", "holds no rows"),
        (run_of, "1 Q0 d\x00 1 2 t\n", "line 1, column 7: a NUL byte"),
        (qrels_of, "1 0 d high\n", "expected a grade .*, got 'high'"),
        (qrels_of, "1 0 d 1 1\n", "expected 4 columns 'topic iteration docno grade', got 5"),
        (qrels_of, "1 0 d 1\n1 0 d 1\n", "line 2: document 'd' stands twice"),
    ],
)
def test_malformed_files(read, text, message):
    with pytest.raises(DataFileError, match=message):
        read(text)


def test_what_a_run_cannot_hold_is_refused():
    def write(queries=("q",), offsets=(0, 1), docs=("d",), scores=(1.0,), tag="t"):
        write_run(io.BytesIO(), list(queries), list(offsets), list(docs), list(scores), tag=tag)

    with pytest.raises(InvalidInputError, match="do not fit together"):
        write(offsets=(0, 2))
    with pytest.raises(InvalidInputError, match="not finite"):
        write(scores=(np.nan,))
    with pytest.raises(InvalidInputError, match="document id 'a b'"):
        write(docs=("a b",))
    with pytest.raises(InvalidInputError, match="tag ''"):
        write(tag="")
    with pytest.raises(InvalidInputError, match="stands twice"):
        write(offsets=(0, 2), docs=("d", "d"), scores=(1, 2))


def test_real_runs(collections):
    folder = collections / "trec9-web-runs"
    qrels = read_qrels(folder / "qrels.451-500.txt.xz")
    assert (qrels.n_queries, qrels.n_rows) == (50, 70_070)
    run = read_run(folder / "runs" / "CWI0000.run.xz")
    judgements, scores = judge_run(qrels, run)
    assert len(scores) == run.n_rows == judgements.n_rows
    assert judgements.judged.sum() + len(judgements.missing_grades) == 70_070
