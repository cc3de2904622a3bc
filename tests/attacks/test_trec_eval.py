"""Surface: `truerank trec-eval`. Judgements, runs, parameters and names that nobody means: a code and a sentence."""

from __future__ import annotations

import pytest

from truerank.cli import main
from truerank.compat.trec_eval import atof, atol

QRELS = b"1 0 a 1\n1 0 b 0\n2 0 a 1\n"
RUN = b"1 Q0 a 1 2.0 x\n1 Q0 b 2 1.0 x\n2 Q0 a 1 1 x\n"
MANY = "9" * 5000
Z = b"1 map nan inf\n2 map 1e999 0x1p99999\n1 num_ret 0 1e-320\n"
GRADES = ["9223372036854775807", "9" * 23, "2000000000", "100000000", "1000001", "-5", MANY, f"-{MANY}", "nan", "0x10"]
SCORES = ["nan", "inf", "1e999", "0x1p99999", f"-0x{'f' * 3000}", MANY, "1_0", "nan(1)", "-", "\x1b[2J"]
MEASURES = [
    "P.1,1", "P.", "P.99999999999999999999", "P.0", f"P.{MANY}", "ndcg_cut.1000000000", "ndcg.1=nan", "ndcg.1=inf",
    "ndcg.1=1e999", "ndcg.=", f"ndcg.{MANY}=1", "utility.nan,inf,1,1", "rbp.nan", "rbp.inf", "set_F.nan", "G.1=nan",
    "iprec_at_recall.nan", "Rprec_mult.nan", "Rprec_mult.inf", "Rprec_mult.1e300,2", "relstring.-5", "", ".", "\x1b[2J",
    "unj.nan", "all_prefs", "qrels_jg", "ndcg.1=1e308",
]  # fmt: skip
OPTIONS = [
    ["-l", MANY], ["-l", "-1"], ["-M", MANY], ["-M", "-1"], ["-N", MANY, "-m", "utility.1,1,1,1"], ["-R", "x\x1b[2J"],
    ["-T", "x\x1b"], ["-D", "1.\x1b"], ["-Z", "z"], ["-q", "-Z", "z", "-m", "all_trec"], ["-Z", "/dev/null"],
    ["-Z", "/"], ["-\x1b"], ["--\x1b"], ["-R", "prefs", "-m", "all_prefs"], ["-R", "qrels_jg", "-m", "qrels_jg"],
]  # fmt: skip
FILES = {
    "empty": b"", "NUL": b"1 0 a\0 1\n", "a line end": b"\n", "a comment": b"# x", "half a line": b"1",
    "UTF-16": b"\xff\xfe",
    "a topic of control characters": b"\x1b[2J 0 a 1\n", "one twice": b"1 0 \x1b[2J 1\n1 0 \x1b[2J 1\n",
    "a run's, twice": b"1 Q0 \x1b[2J 1 2 x\n" * 2, "a long name": b"1 0 " + b"a" * 10**6 + b" 1\n",
}  # fmt: skip
CASES = (
    {f"grade {own[:20]}": (f"1 0 a {own}\n1 0 b 0\n".encode(), RUN, []) for own in GRADES}
    | {f"score {own[:20]}": (QRELS, b"1 Q0 a 1 " + own.encode() + b" x\n" + RUN, []) for own in SCORES}
    | {f"-m {own[:20]!r}": (QRELS, RUN, ["-q", "-m", own]) for own in MEASURES}
    | {f"{[word[:10] for word in own]}": (QRELS, RUN, own) for own in OPTIONS}
    | {f"qrels: {name}": (content, RUN, []) for name, content in FILES.items()}
    | {f"run: {name}": (QRELS, content, []) for name, content in FILES.items()}
    | {f"prefs: {name}": (content, RUN, ["-R", "prefs", "-m", "all_prefs"]) for name, content in FILES.items()}
)


@pytest.mark.parametrize("name", CASES)
def test_hostile_words_and_files(name, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    qrels, run, options = CASES[name]
    for path, content in (("q", qrels), ("r", run), ("z", Z)):
        (tmp_path / path).write_bytes(content)
    code = main(["trec-eval", *options, "q", "r"])
    error = capfd.readouterr().err
    assert code in (0, 1, 2, 4, 7, 255)
    assert (code == 0) == (not error)
    assert "\x1b" not in error
    assert "inside truerank" not in error


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0" * 5000 + "7", 7),
        (MANY, 2**63 - 1),
        (f"-{MANY}", -(2**63)),
        ("9223372036854775806", 2**63 - 2),
        (" -12x", -12),
    ],
)
def test_whole_numbers_of_any_length_are_those_of_64_bits(text, value):
    assert atol(text.encode()) == value


def test_hexadecimal_numbers_overflow_as_decimal_ones():
    assert atof(b"0x1p99999") == atof(b"1e999") == -atof(b"-0x1p99999") == float("inf")
    assert atof(b"0x1p3") == 8.0


def test_levels_beyond_thousands_take_no_square_of_them():
    """The gains of a topic were looked up by a walk over all its grades: 10^6 grades would have taken days."""
    from truerank.compat.trec_eval_measures import gains_of

    gains = gains_of.__wrapped__((("3", 5.0), ("3", 6.0)), (1,) * 100_000)
    assert (gains.by_grade[2], gains.by_grade[3], gains.by_grade[99_999]) == (2.0, 5.0, 99_999.0)
