"""`truerank trec-eval` beside NIST's program: its own tests, small cases by hand, and the program itself where it is.

Set TRUERANK_TREC_EVAL to a trec_eval 10.0 to compare random inputs with it.
"""

from __future__ import annotations

import math
import os
import pickle
import random
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

from support.refusals import refused
from truerank import evaluate, judge_run, read_qrels, read_run
from truerank.cli import main
from truerank.cli import trec_eval as command
from truerank.compat.trec_eval import MEASURES, Options, TrecEvalError, TrecEvaluation, atof, atol
from truerank.compat.trec_eval import read_judgements as judged
from truerank.compat.trec_eval import read_results as retrieved
from truerank.core.errors import InvalidInputError
from truerank.measures import Ranking, parse_measure, parse_measures

# Arguments and expected output of `make quicktest` of trec_eval 10.0.
QUICKTEST = (
    """
out.test | qrels.test results.test
out.test | qrels.test.with-comments results.test
out.comment.test | qrels.comment.test results.comment.test
out.test.a | -m all_trec qrels.test results.test
out.test.aq | -m all_trec -q qrels.test results.test
out.test.aqc | -m all_trec -q -c qrels.test results.trunc
out.test.aqcM | -m all_trec -q -c -M100 qrels.test results.trunc
out.test.aql | -m all_trec -mrelstring.20 -q -l2 qrels.rel_level results.test
out.test.prefs | -m all_prefs -q -R prefs prefs.test prefs.results.test
out.test.prefs | -m all_prefs -q -R prefs prefs.comment.test prefs.results.test
out.test.qrels_prefs | -m all_prefs -q -R qrels_prefs qrels.test results.test
out.test.qrels_jg | -m qrels_jg -q -R qrels_jg qrels.123 results.test
out.test.qrels_jg | -m qrels_jg -q -R qrels_jg qrels.comments.123 results.test
out.test.meas_params | -q -miprec_at_recall..10,.20,.25,.75,.50 -m P.5,7,3 -m recall.20,2000 -m Rprec_mult.5.0,0.2,0.35\
 -mutility.2,-1,0,0 -m 11pt_avg..25,.5,.75 -mndcg.1=3,2=9,4=4.5 -mndcg_cut.10,20,23.4 -msuccess.2,5,20 \
qrels.test results.test
out.test.aqZ | -q -m all_trec -Z zscores_file qrels.test results.test
""".replace("\\\n", "")
    .strip()
    .splitlines()
)

TRUSTED = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python before 3.11.4 has no filters
QRELS = b"1 0 a 2\n1 0 b 0\n1 0 c 1\n1 0 d 1\n1 0 e -1\n2 0 a 0\n2 0 z 1\n"
RUN = b"1 Q0 c 1 9 me\n1 Q0 x 2 8 me\n1 Q0 a 3 8 me\n1 Q0 b 4 7 me\n1 Q0 e 5 6 me\n2 Q0 a 1 2 me\n2 Q0 b 2 1 me\n"


def values(measures: str, qrels: bytes = QRELS, run: bytes = RUN, **options) -> dict[tuple[str, str], str]:
    """{(name, topic): printed value}."""
    evaluation = TrecEvaluation(
        judged(qrels, options.get("format", "qrels")), Options(measures.split(), True, **options)
    )
    rows = [line.split("\t") for line in "".join(evaluation.lines(retrieved(run))).splitlines()]
    return {(name.rstrip(), topic): value.strip() for name, topic, value in rows}


@pytest.fixture(scope="module")
def nist(collections, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("trec_eval")
    with tarfile.open(collections / "trec_eval" / "test.tar.xz") as archive:
        archive.extractall(folder, **TRUSTED)
    return folder / "test"


@pytest.mark.parametrize("line", QUICKTEST, ids=[line.partition(" | ")[2][:60] for line in QUICKTEST])
def test_nists_own_tests_print_the_same_bytes(nist, capfdbinary, line, monkeypatch):
    monkeypatch.chdir(nist)
    expected, _, arguments = line.partition(" | ")
    assert main(["trec-eval", *arguments.split()]) == 0
    assert capfdbinary.readouterr().out == (nist / expected).read_bytes()


def test_values_of_a_small_topic():
    # Ranked: c 1, x and a tie at 8 and go by name, the later first: x -, a 2; then b 0, e not judged. R = 3.
    found = values("all_trec dcg ideal_dcg yaap".replace(" ", "\n"))
    ap = (1 / 1 + 2 / 3) / 3
    expected = {
        "num_ret": "5",
        "num_rel": "3",
        "num_rel_ret": "2",
        "num_nonrel_judged_ret": "1",
        "map": f"{ap:.4f}",
        "map_cut_5": f"{ap:.4f}",
        "Rprec": f"{2 / 3:.4f}",
        "bpref": f"{2 / 3:.4f}",
        "recip_rank": "1.0000",
        "P_5": "0.4000",
        "recall_5": f"{2 / 3:.4f}",
        "relative_P_5": f"{2 / 3:.4f}",
        "success_1": "1.0000",
        "set_P": "0.4000",
        "set_F": f"{2 * 0.4 * (2 / 3) / (0.4 + 2 / 3):.4f}",
        "set_map": f"{4 / 15:.4f}",
        "relstring": "'1-20.'",
        "unj_5": "0.4000",
        "dcg": f"{1 + 2 / 2:.4f}",
        "ideal_dcg": f"{2 + 1 / math.log2(3) + 1 / 2:.4f}",
        "ndcg": f"{2 / (2.5 + 1 / math.log2(3)):.4f}",
        "binG": f"{(1 + 1 / math.log2(3)) / 3:.4f}",
        "utility": f"{2 - 3:.4f}",
        "iprec_at_recall_0.00": "1.0000",
        "iprec_at_recall_0.50": f"{2 / 3:.4f}",  # 1.5 relevant documents round to 2
        "iprec_at_recall_1.00": "0.0000",
        "Rprec_mult_1.00": f"{2 / 3:.4f}",
        "rbp": f"{0.1 * (0.5 + 0.9**2):.4f}",  # gains 2 and 1 are scaled to 1 and 0.5
        "rbp_resid": f"{0.9**5 + 0.1 * (0.9 + 0.9**4):.4f}",
        "yaap": f"{math.log((1 + 5 / 3) / (4 - 5 / 3)):.4f}",
    }
    assert {name: found[name, "1"] for name in expected} == expected
    assert found["gm_map", "all"] == f"{math.sqrt(ap * 0.00001):.4f}"
    assert found["num_q", "all"] == "2"
    assert found["runid", "all"] == "me"


def test_topics_that_the_run_lacks_end_it_or_count_as_zero():
    run = b"1 Q0 c 1 9 me\n"
    with pytest.raises(TrecEvalError, match="result qid '2' not found") as error:
        values("map", run=run)
    assert error.value.code == 4
    found = values("all_trec", run=run, complete=True)
    assert found["map", "2"] == "0.0000"
    assert found["num_ret", "2"] == "0"
    assert found["num_rel", "all"] == "4"


def test_judged_documents_only_depth_level_and_one_topic():
    assert values("map", judged_only=True)["map", "1"] == f"{(1 + 1) / 3:.4f}"
    assert values("num_ret", most=2)["num_ret", "1"] == "2"
    assert values("num_rel", level=2)["num_rel", "1"] == "1"
    assert {topic for _, topic in values("map", only=b"1")} == {"1", "all"}


def test_preferences_of_one_group_and_those_that_follow():
    # The example of the format: 13 preferences, 5 with d4 preferred, 4 with d1, 2 each with d2 and d6.
    levels = {"d1": 3, "d2": 2, "d3": 0, "d4": 6, "d5": 0, "d6": 2}
    prefs = "".join(f"1 u s {d} {level}.0\n" for d, level in levels.items()).encode()
    found = values("all_prefs", prefs, b"1 Q0 d4 1 3 me\n1 Q0 d3 2 2 me\n1 Q0 d1 3 1 me\n", format="prefs")
    assert found["prefs_num_prefs_poss", "1"] == "13"
    # Retrieved d4 > d3 and d4 > d1 fulfilled, d1 > d3 not; implied: d4 over 3 others, d1 over 3; against d3: 2.
    assert found["prefs_num_prefs_ful_ret", "1"] == "2"
    assert found["prefs_num_prefs_ful", "1"] == "8"
    assert found["prefs_simp", "1"] == f"{8 / 13:.4f}"
    assert found["prefs_simp_ret", "1"] == f"{2 / 3:.4f}"
    assert found["prefs_simp_imp", "1"] == f"{8 / 11:.4f}"
    # Two subgroups: 1>2, 1>3, 2>3, 2>4, and 1>4 follows.
    rows = [("s1", "d1", 3), ("s1", "d2", 2), ("s1", "d3", 1), ("s2", "d2", 5), ("s2", "d4", 4)]
    prefs = "".join(f"1 u {s} {d} {level}\n" for s, d, level in rows).encode()
    run = b"1 Q0 d1 1 9 me\n1 Q0 d4 2 8 me\n"
    found = values("all_prefs", prefs, run, format="prefs")
    assert found["prefs_num_prefs_poss", "1"] == "5"
    assert found["prefs_num_prefs_ful_ret", "1"] == "1"
    contradiction = prefs + b"1 u s3 d4 2\n1 u s3 d1 1\n"
    with pytest.raises(TrecEvalError, match="contradict"):
        values("all_prefs", contradiction, run, format="prefs")


def test_groups_of_judgements_are_averaged():
    qrels = b"1 u1 a 1\n1 u1 b 0\n1 u2 b 1\n"
    found = values("qrels_jg", qrels, b"1 Q0 a 1 2 me\n1 Q0 b 2 1 me\n", format="qrels_jg")
    assert found["map_avgjg", "1"] == "0.7500"
    assert found["P_avgjg_5", "1"] == "0.2000"


def test_values_in_standard_deviations():
    table = {b"1": {b"P_5": (0.2, 0.1)}}
    found = values("P.5", zscores=table)
    assert found["ZP_5", "1"] == "2.0000"
    assert found["ZP_5", "2"] == "-1000000.0000"


def test_a_nan_is_printed_with_its_sign():
    table = {b"1": {b"P_5": (math.nan, 0.1), b"map": (-math.nan, 0.1)}, b"2": {b"P_5": (0.0, 0.1)}}
    found = values("P.5\nmap", zscores=table)
    assert (found["ZP_5", "1"], found["ZP_5", "all"], found["Zmap", "1"]) == ("nan", "nan", "-nan")
    assert found["ZP_5", "2"] == "0.0000"


def test_gains_of_unjudged_documents_alone_divide_by_zero():
    found = values("ndcg_rel.-2=3,-1=-9", b"1 0 a 0\n1 0 b -1\n", b"1 Q0 b 1 2 me\n1 Q0 x 2 1 me\n")
    assert found["ndcg_rel_-2=3,-1=-9", "1"] == "inf"


def test_one_topic_of_a_complete_average_is_divided_by_all_topics():
    found = values("map\ngm_map\nnum_q", run=b"1 Q0 c 1 9 me\n", complete=True, only=b"1")
    assert found["num_q", "all"] == "2"
    assert found["map", "all"] == f"{1 / 3 / 2:.4f}"
    assert found["gm_map", "all"] == f"{math.sqrt(1 / 3 * 1e-5):.4f}"


def test_the_compiled_parser_reads_what_the_plain_one_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "COMPILED_FROM", 1)
    runs = [
        RUN,
        b"1 Q0 d 1 0x10 me\n",
        b"# c\n1 Q0 d 1 1 me more\n\n",
        b"2 Q0 d 1 1e400 a\n1\tQ0 \xc3\xa9 1 3x b\r\n2 Q0 e 1 -.5 c",
        b"1 Q0 d 1 16777217 me\n" * 3,
    ]
    for text in runs:
        (tmp_path / "run").write_bytes(text)
        parser = command._parser([str(tmp_path / "run")])
        assert parser is not None
        assert retrieved(text, parser) == retrieved(text)


def test_comments_further_columns_and_odd_numbers_are_read():
    qrels = b"# of topic 1\n" + QRELS
    run = b"# a run\n\n" + RUN.replace(b" 9 me", b" 9 me more columns")
    assert values("map\nP", qrels, run) == values("map\nP")
    assert (atof(b"3abc"), atof(b"abc"), atof(b"1_0"), atof(b"0x1p3"), atof(b"-inf")) == (3, 0, 1, 8, -math.inf)
    assert (atol(b"2x"), atol(b"x"), atol(b"-3")) == (2, 0, -3)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ("-m nosuch q r", 1, "illegal measure 'nosuch'"),
        ("-m nosuch broken r", 1, "illegal measure 'nosuch'"),  # before the files are read
        ("-Z empty q r", 255, "empty"),
        ("-R prefs -m all_prefs levels r", 4, "not a number"),
        ("-m P.0 q r", 2, "Negative cutoff"),
        ("-m P.5,5 q r", 2, "duplicate cutoffs"),
        ("-m ndcg.1 q r", 2, "malformed pair"),
        ("-R nosuch q r", 2, "Illegal rel_format"),
        ("-T nosuch q r", 2, "Illegal retrieval results format"),
        ("-m all_prefs q r", 4, "-R"),
        ("-l -1 q r", 1, "at least 0"),
        ("q", 1, "usage"),
        ("-q broken r", 2, "Malformed line 2"),
        ("q empty", 2, "empty"),
        ("q double", 4, "duplicate docs c"),
        ("q missing-file", 1, "missing-file"),
    ],
)
def test_errors_have_trec_evals_exit_codes(tmp_path, monkeypatch, capsys, arguments, code, text):
    monkeypatch.chdir(tmp_path)
    Path("q").write_bytes(QRELS)
    Path("r").write_bytes(RUN)
    Path("broken").write_bytes(b"1 0 a 1\n1 0 b\n")
    Path("double").write_bytes(RUN + b"1 Q0 c 1 3 me\n")
    Path("empty").touch()
    Path("levels").write_bytes(b"1 u s a 1\n1 u s b nan\n2 u s a 1\n2 u s b 2\n")
    assert main(["trec-eval", *arguments.split()]) == code
    assert text in capsys.readouterr().err


def test_several_runs_are_printed_as_by_calls_of_their_own(tmp_path, capfdbinary):
    names = []
    for name, content in {"q": QRELS, "a": RUN, "b": RUN.replace(b"me", b"you")}.items():
        (tmp_path / name).write_bytes(content)
        names.append(str(tmp_path / name))
    single = b""
    for run in names[1:]:
        assert main(["trec-eval", "-q", names[0], run]) == 0
        single += capfdbinary.readouterr().out
    assert main(["trec-eval", *names, "-q"]) == 0
    assert capfdbinary.readouterr().out == single


def test_help_explains_measures(capsys):
    assert main(["trec-eval", "--help", "-m", "set"]) == 0
    assert "set_F: (x + 1) P R" in capsys.readouterr().out
    assert all(m.formula or m.compute.__doc__ for name, m in MEASURES.items() if m.needs != "prefs")


MEASURES_OF = {"qrels": "all_trec", "qrels_jg": "qrels_jg", "prefs": "all_prefs", "qrels_prefs": "all_prefs"}
ODD_SCORES = [
    "1e-2", "3x", "nan", "inf", "-inf", "0x1.8p1", "1e400", "+2", "--2", ".5", "1_0", "é", "16777217", "16777216",
    "9007199254740993", "5e-324", "-0",
]  # fmt: skip
SINGLE = [  # without rbp, which reads memory that it has not written
    "ndcg.1=3,2=.5", "G.1=.3,2=.9", "P.5,3", "recall.2", "ndcg_cut.3,7", "iprec_at_recall..2,.005", "11pt_avg..75,.25",
    "set_F.2", "utility.1,-1,0,2", "Rprec_mult.1.5,.2", "relstring.20", "success.1", "gm_map", "gm_bpref", "Rndcg.1=.5",
    "ndcg_rel.2=9", "unj.3", "yaap", "infAP", "map_cut.2", "relative_P.4", "rbp_resid.p=.5", "binG",
]  # fmt: skip


def _random_case(draw: random.Random) -> tuple[str, str, list[str]]:
    """Qrels, a run and options, with ties, negative grades, missing topics, comments, odd numbers and columns."""
    topics = draw.choice([["1", "10", "2"], ["051", "51", "5"], ["é", "e", "B"]])[: draw.randint(1, 3)]
    documents = [f"{draw.choice('aZéd_')}{i}" for i in range(draw.randint(1, 30))]
    form = draw.choice(["qrels"] * 4 + ["qrels_jg", "prefs", "qrels_prefs"])
    grades = draw.choice([["0", "1"], ["0", "1", "2", "3"], ["-1", "0", "1"], ["0", "12", "1"], ["0.7", "2x", "+1"]])
    columns = {"qrels": "0", "prefs": "{g} s1"}.get(form, "{g}")
    blank, end = draw.choice([" ", " ", "\t", "  "]), draw.choice(["\n", "\n", "\n", "\r\n"])
    qrels = []
    for topic in topics:
        for document in draw.sample(documents, draw.randint(1, len(documents))):
            for group in ["u1"] if form == "qrels" else draw.sample(["u1", "u2"], draw.randint(1, 2)):
                grade = draw.choice(["0", "1", "2"] if "prefs" in form else grades)
                qrels.append(f"{topic} {columns.format(g=group)} {document} {grade}".replace(" ", blank))
    if draw.random() < 0.2:
        qrels.insert(0, "# comment")
    run = []
    scores = draw.choice([["1", "2", "2.0", "-3"], ODD_SCORES, [f"{draw.random():.17f}" for _ in range(40)]])
    for topic in topics[len(topics) > 1 and draw.randint(0, 9) == 0 :]:
        for document in draw.sample(documents, draw.randint(1, len(documents))):
            tag = draw.choice(["tag", "tag", "tag more"])
            run.append(f"{topic} Q0 {document} 0 {draw.choice(scores)} {tag}".replace(" ", blank))
    if draw.random() < 0.2:
        run.insert(0, draw.choice(["# comment", ""]))
    chosen = draw.choice(
        [["-q"], ["-q", "-c"], ["-c"], ["-q", "-J"], ["-l2"], ["-M3"], ["-q", "-l0"], ["-n"], ["-q", "-N9"]]
    )
    options = ["-R", form, *chosen, *draw.choice([[], [], [], ["-D", f"0.{topics[0]}"]])]
    names = draw.sample(SINGLE, 2) if form == "qrels" and draw.random() < 0.5 else [MEASURES_OF[form]]
    options += [word for name in names for word in ("-m", name)]
    return end.join(qrels) + end, end.join(run) + end, options


def test_random_inputs_give_the_programs_bytes(tmp_path, capfdbinary):
    program = os.environ.get("TRUERANK_TREC_EVAL")
    if not program:
        pytest.skip("TRUERANK_TREC_EVAL names no trec_eval 10.0")
    draw, accepted = random.Random(0), 0
    files = [str(tmp_path / "qrels"), str(tmp_path / "run")]
    for _ in range(1000):
        qrels, run, options = _random_case(draw)
        for file, text in zip(files, (qrels, run)):
            Path(file).write_text(text)
        theirs = subprocess.run([program, *options, *files], capture_output=True, timeout=20)
        if theirs.returncode >= 0:
            code = main(["trec-eval", *options, *files])
            assert (code, capfdbinary.readouterr().out) == (theirs.returncode, theirs.stdout), (options, qrels, run)
            accepted += code == 0
    assert accepted > 500


def test_every_figure_of_all_trec_is_a_measure(nist):
    """By topic and over all: what `evaluate` gives under the printed name, to the printed digits."""
    judgements, scores = judge_run(read_qrels(nist / "qrels.test"), read_run(nist / "results.test"))
    rows = [line.split("\t") for line in (nist / "out.test.aq").read_text(encoding="utf-8").splitlines()]
    names = dict.fromkeys(name.rstrip() for name, _, _ in rows)
    measures = parse_measures([name for name in names if name != "runid" and not name.startswith("relstring")])
    assert len(measures) == 98
    ranking, numbers = Ranking(judgements, scores), judgements.query_ids.tolist()
    values = {name: measure.values(ranking) for name, measure in measures.items()}
    for name, topic, text in rows:
        name = name.rstrip()
        if name not in measures:
            continue
        if topic == "all":
            value = measures[name].aggregate(values[name])
        else:
            value = values[name][numbers.index(topic)]
            value = math.log(max(value, 1e-5)) if name in ("gm_map", "gm_bpref") else value
        assert float(text) == pytest.approx(value, abs=5.1e-5), (name, topic)


def test_versions_of_interpolated_precision():
    """.6 of 4 relevant documents are 2.4: 2 by rounding (version 10), 3 by adding .9 and cutting (version 9)."""
    found = [1, 0, 1, 0, 0, 1, 1]
    for name in ("iprec_at_recall_0.60", "11pt_avg"):
        new, old = (evaluate(found, -np.arange(7.0), name, convention=c)[name] for c in ("trec", "trec9"))
        if name == "11pt_avg":  # counts of 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4 and of 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4
            assert new == pytest.approx((4 * 1 + 3 * 2 / 3 + 4 * 4 / 7) / 11)
            assert old == pytest.approx((3 * 1 + 3 * 2 / 3 + 5 * 4 / 7) / 11)
        else:
            assert (new, old) == (pytest.approx(2 / 3), pytest.approx(4 / 7))
    with refused(InvalidInputError, code="new-measure"):
        parse_measure("rbp", "trec9")


@pytest.mark.parametrize("name", ["Rndcg", "relative_P_5", "Rprec_mult_1.20", "gm_bpref", "utility", "G(rel=2)"])
def test_its_own_names_are_read_back(name):
    measure = parse_measure(name)
    assert measure.name == name == repr(measure).replace("convention='trec'", "").replace("()", "").replace(",)", ")")
    assert parse_measure(measure.name) == measure == pickle.loads(pickle.dumps(measure))
    assert measure.convention == "trec"
    assert dict(evaluate([0.5, 1.9], [1, 2], name)) == dict(evaluate([0, 1], [1, 2], name))
    with refused(InvalidInputError, code="grade"):
        evaluate([0.5, 1], [1, 2], measure(grades="any"))
