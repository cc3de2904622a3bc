"""Runs, qrels and their join."""

from __future__ import annotations

import io
import random
import warnings

import numpy as np
import pytest

from support.refusals import refused
from truerank import judge_run, read_qrels, read_run, write_qrels, write_run
from truerank.core.errors import DataFileError, InvalidInputError, TruerankWarning
from truerank.io import trec
from truerank.io.document_ids import DocumentIds
from truerank.io.trec import Run

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
    write_run(run, stream, tag="t")
    again = read_run(io.BytesIO(stream.getvalue()))
    assert again.to_dict() == run.to_dict()
    assert again.tag == "t"
    assert stream.getvalue().split(b"\n")[1] == b"051 Q0 d1 2 3.5 t"
    qrels, stream = qrels_of(QRELS), io.BytesIO()
    write_qrels(qrels, stream)
    assert read_qrels(io.BytesIO(stream.getvalue())).to_dict() == qrels.to_dict()


def test_blanks_beyond_ascii_are_parts_of_ids():
    run = read_run(io.BytesIO("1\tQ0\t\u00a0x 1 2.5 me\r\n1 Q0 x\u3000y 2 1e-3 me\r\n".encode()))
    assert run.doc_ids.tolist() == ["\u00a0x", "x\u3000y"]
    stream = io.BytesIO()
    write_run(run, stream)
    stream.seek(0)
    assert read_run(stream).to_dict() == run.to_dict()


def test_whole_grades_of_any_size_are_integers():
    assert read_qrels(io.BytesIO(b"1 0 a 1e20\n1 0 b -1\n")).to_dict() == {"1": {"a": 10**20, "b": -1}}


def test_depth_keeps_the_best():
    stream = io.BytesIO()
    write_run(Run(["a"], np.array([0, 3]), ["x", "y", "z"], np.array([1.0, 3.0, 2.0])), stream, depth=2)
    assert stream.getvalue() == b"a Q0 y 1 3.0 truerank\na Q0 z 2 2.0 truerank\n"


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (run_of, "1 Q0 d 1 2\n", {"code": "columns", "line": 1}),
        (run_of, "1 Q0 d 1 2 t\n\n1 Q0 e 1 x t\n", {"code": "not-a-number", "line": 3}),
        (run_of, "1 Q0 d 1 nan t\n", {"code": "not-a-number", "line": 1}),
        (run_of, "1 Q0 d 1 1_0 t\n", {"code": "not-a-number", "line": 1}),
        (run_of, "1 Q0 d 1 2 t\n2 Q0 d 1 2 t\n1 Q0 d 2 1 t\n", {"code": "twice", "line": 3}),
        (run_of, "", {"code": "no-rows"}),
        (run_of, "1 Q0 d\x00 1 2 t\n", {"code": "nul", "line": 1}),
        (qrels_of, "1 0 d high\n", {"code": "not-a-number", "line": 1}),
        (qrels_of, "1 0 d 1 1\n", {"code": "columns", "line": 1}),
        (qrels_of, "1 0 d 1\n1 0 d 1\n1 0 d 0\n", {"code": "twice", "line": 3}),
    ],
)
def test_malformed_files(read, text, message):
    with refused(DataFileError, **message):
        read(text)


@pytest.mark.parametrize("after", [1 << 40, -1])
def test_comments_further_columns_and_repeated_judgements(monkeypatch, after):
    monkeypatch.setattr(trec, "KERNEL_AFTER_LOADED", after)
    monkeypatch.setattr(trec, "KERNEL_AFTER", after)
    plain = "1 Q0 d 1 2 t\n1 Q0 e 2 1 t\n2 Q0 d 1 .5 t\n"
    assert (
        run_of("# made today by hand 1 x\n" + plain.replace("2 Q0", "#2 Q0\n2 Q0")).to_dict() == run_of(plain).to_dict()
    )
    with pytest.warns(TruerankWarning, match="<stream>: ignored up to 2 columns after"):
        wide = run_of("1 Q0 d 1 2 t x\n1 Q0 e 2 1 t y z\n2 Q0 d 1 .5 t\n")
    assert (wide.to_dict(), wide.tag) == (run_of(plain).to_dict(), "t")
    with pytest.warns(TruerankWarning, match="<stream>: judgements that repeat an earlier line were dropped: 2"):
        qrels = qrels_of("#c\n1 0 d 1\n2 0 d 0\n1 1 d 1\n2 0 e 0\n1 0 f 1\n2 0 d 0\n")
    assert qrels.to_dict() == {"1": {"d": 1, "f": 1}, "2": {"d": 0, "e": 0}}


def test_what_a_run_cannot_hold_is_refused():
    def write(queries=("q",), offsets=(0, 1), docs=("d",), scores=(1.0,), tag="t"):
        write_run(Run(list(queries), list(offsets), list(docs), list(scores)), io.BytesIO(), tag=tag)

    with refused(InvalidInputError, code="different-shapes"):
        write(offsets=(0, 2))
    with refused(InvalidInputError, code="not-finite"):
        write(scores=(np.nan,))
    with refused(InvalidInputError, code="not-one-word"):
        write(docs=("a b",))
    with refused(InvalidInputError, code="not-one-word"):
        write(tag="")
    with refused(InvalidInputError, code="twice"):
        write(offsets=(0, 2), docs=("d", "d"), scores=(1, 2))
    twice = trec.Qrels(np.array(["q"]), np.array([0, 2]), np.array(["d", "d"]), np.array([1.0, 0.0]))
    with refused(InvalidInputError, code="twice"):
        write_qrels(twice, io.BytesIO())


def test_real_runs(collections):
    folder = collections / "trec9-web-runs"
    qrels = read_qrels(folder / "qrels.451-500.txt.xz")
    assert (qrels.n_queries, qrels.n_rows) == (50, 70_070)
    run = read_run(folder / "runs" / "CWI0000.run.xz")
    judgements, scores = judge_run(qrels, run)
    assert len(scores) == run.n_rows == judgements.n_rows
    assert judgements.judged.sum() + len(judgements.missing_grades) == 70_070


WORDS = [
    "d1",
    "d2",
    "D\u00e9",
    "\u4e2d",
    "#",
    "0",
    "-3",
    "1e5",
    "4.25",
    "1e-320",
    "123456789012345678901234567890",
    "t",
]
ODD = ["nan", "1_0", "1e999", "x", "", "+", ".", "1e", "0x1", "inf"]


def text_of(rng, columns, odd):
    """Lines of a run or qrels, some blank, with white space of every kind; now and then one that is not legal."""
    lines = []
    for _ in range(rng.randrange(1, 9)):
        row = [rng.choice(["7", "7", "07", "q\u00e9"]), "Q0", f"d{rng.randrange(40)}", rng.choice(WORDS), "tag", "s"]
        row[3 if columns == 4 else 4] = rng.choice([*WORDS[5:11], repr(rng.gauss(0, 9))])
        row = row[:columns]
        if odd and rng.random() < 0.15:
            row[rng.randrange(columns)] = rng.choice(ODD)
        if odd and rng.random() < 0.1:
            row.append("more")
        line = rng.choice([" ", "\t", "  ", "\x0b"]).join(row)
        lines.append(rng.choice(["", " ", "\t"]) + line + rng.choice(["", " ", "\r"]))
        if rng.random() < 0.2:
            lines.append(rng.choice(["", " \t", "\r"]))
    return "\n".join(lines) + rng.choice(["", "\n"])


def outcome(read, text):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruerankWarning)
            lists = read(io.BytesIO(text.encode()))
    except DataFileError as error:
        return str(error)
    values = lists.scores if isinstance(lists, trec.Run) else lists.grades
    tag = getattr(lists, "tag", None)
    return lists.query_ids.tolist(), lists.offsets.tolist(), lists.doc_ids.tolist(), values.tobytes(), tag


@pytest.mark.parametrize(("read", "columns"), [(read_run, 6), (read_qrels, 4)])
def test_the_compiled_parser_reads_and_refuses_as_the_plain_one(monkeypatch, read, columns):
    rng, legal = random.Random(columns), 0
    for k in range(600):
        text = text_of(rng, columns, odd=k % 2)
        outcomes = []
        for after in (1 << 40, -1):
            monkeypatch.setattr(trec, "KERNEL_AFTER_LOADED", after)
            monkeypatch.setattr(trec, "KERNEL_AFTER", after)
            outcomes.append(outcome(read, text))
        assert outcomes[0] == outcomes[1], text
        legal += not isinstance(outcomes[0], str)
    assert 60 < legal < 500


def test_ids_as_bytes_and_as_strings():
    names = ["D7", "\u00dc1", "", "a\0", "a", "\U0001f600", "a much longer id than the others"]
    ids = DocumentIds.of(names)
    assert ids.texts.tolist() == names
    assert ids.take([3, 1]).texts.tolist() == ["a\0", "\u00dc1"]
    both = DocumentIds.concatenate([ids.take([0, 2]), DocumentIds.of(np.array(["x", "y"]))])
    assert both.texts.tolist() == ["D7", "", "x", "y"]
    assert both.hashes.tolist() == DocumentIds.of(["D7", "", "x", "y"]).hashes.tolist()
    assert len(DocumentIds.of([])) == 0
    assert DocumentIds.of([]).texts.tolist() == []


def test_judge_run_takes_what_evaluate_takes():
    qrels, run = {"1": {"d1": 1, "d2": 2}, "2": {"d3": 1}}, {"1": {"d2": 2.0, "d9": 1.0}}
    judgements, scores = judge_run(qrels, run)
    assert (judgements.grades.tolist(), scores.tolist()) == ([2.0, 0.0], [2.0, 1.0])
    assert (judgements.missing_grades.tolist(), judgements.query_ids.tolist()) == ([1.0, 1.0], ["1", "2"])
