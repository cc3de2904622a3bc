"""The commands evaluate and compare as a person or a script calls them."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support.refusals import refused
from truerank import compare, evaluate, read_letor
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.measures.conventions import titled

# The data below have a query in two pieces, on purpose; the reader says so.
pytestmark = pytest.mark.filterwarnings("ignore:.*were not adjacent")

LETOR = """\
2 qid:7 1:0.5 # docid = a
0 qid:7 1:0.2 # docid = b
1 qid:9 1:0.1 # docid = c
0 qid:7 1:0.9 # docid = d
0 qid:9 1:0.4 # docid = e
0 qid:11 1:0.4 # docid = f
"""
SCORES = "3\n1\n2\n2.5\n2\n0\n"
QRELS = "1 0 a 2\n1 0 b 0\n1 0 z 1\n2 0 a 1\n3 0 a 0\n"
RUN = "1 Q0 a 1 9 x\n1 Q0 q 2 8 x\n1 Q0 b 3 8 x\n3 Q0 a 1 1 x\n8 Q0 a 1 1 x\n"


@pytest.fixture
def files(tmp_path):
    contents = {"data.txt": LETOR, "scores.txt": SCORES, "qrels.txt": QRELS, "run.txt": RUN}
    contents["other.txt"] = "1\n2\n3\n0\n1\n1\n"
    contents["run2.txt"] = RUN.replace("1 Q0 a 1 9", "1 Q0 a 1 7") + "2 Q0 a 1 5 y\n"
    for name, text in contents.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with gzip.open(tmp_path / "scores.txt.gz", "wt", encoding="utf-8") as stream:
        stream.write(SCORES)
    return tmp_path


def as_json(capsys, *arguments):
    assert main([*map(str, arguments), "--json"]) == 0
    captured = capsys.readouterr()
    # a machine that runs a kernel for the first time says that it compiles
    assert [line for line in captured.err.splitlines() if "compiling" not in line] == []
    return json.loads(captured.out)


@pytest.mark.parametrize("scores", ["scores.txt", "scores.txt.gz"])
def test_evaluate_data_and_scores(files, capsys, scores):
    report = as_json(capsys, "evaluate", "--data", files / "data.txt", "--scores", files / scores, "--per-query")
    assert report["schema"] == "evaluation/1"
    assert (report["convention"], report["queries"], report["empty"]) == ("ranklib", 3, 1)
    assert list(report["measures"]) == ["AP", "nDCG@10"]
    ap = report["measures"]["AP"]
    # Query 7 ranks its relevant document first, query 9 has a tie that row order breaks well, query 11 none.
    assert ap["per_query"] == {"7": 1.0, "9": 1.0, "11": 0.0}
    assert ap["mean"] == pytest.approx(2 / 3)
    assert (ap["lowest"], ap["highest"]) == (pytest.approx(0.5), pytest.approx(2 / 3))
    assert ap["empty"] == 1
    y = read_letor(files / "data.txt")
    values = np.array([float(line) for line in SCORES.split()])[y.order]
    assert report["measures"]["nDCG@10"]["mean"] == evaluate(y.judgements(), values, "nDCG@10")["nDCG@10"]


def test_evaluate_qrels_and_run(files, capsys):
    arguments = ("evaluate", "--qrels", files / "qrels.txt", "--run", files / "run.txt", "--measures", "AP map", "P@1")
    report = as_json(capsys, *arguments, "--per-query")
    assert (report["queries"], report["empty"], report["missing_topics"]) == (3, 1, 1)
    assert report["measures"]["AP"]["per_query"] == {"1": 0.5, "2": None, "3": 0.0}  # trec_eval skips what is missing
    assert report["measures"]["map"]["per_query"] == {"1": 0.5, "2": None, "3": 0.0}
    assert report["measures"]["map"]["mean"] == 0.25
    assert report["measures"]["map"]["convention"] == "trec"
    assert "per_query" not in as_json(capsys, *arguments)["measures"]["AP"]
    without_option = [word for word in arguments if word != "--run"]
    assert as_json(capsys, *without_option) == as_json(capsys, *arguments)


def test_evaluate_prints_what_the_figures_rest_on(files, capsys):
    command = ["evaluate", "--data", str(files / "data.txt"), "--scores", str(files / "scores.txt"), "--per-query"]
    assert main([*command, "--measures", "AP map", "ERR", "--convention", "letor3"]) == 0
    out = capsys.readouterr().out
    assert "convention letor3; 3 queries; 1 without a relevant document" in out
    assert "0.5000 to 0.6667" in out
    assert "max_grade=2" in out
    assert "trec" in out
    assert out.startswith("AP of scores is 0.6667")
    assert "qid  AP" in re.sub(" +", "  ", out)


def test_evaluate_reads_standard_input(files, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SCORES.encode())))
    report = as_json(capsys, "evaluate", "--data", files / "data.txt", "--scores", "-", "--measures", "AP")
    assert report["measures"]["AP"]["mean"] == pytest.approx(2 / 3)


def test_compare_runs(files, capsys):
    command = ("compare", "--qrels", files / "qrels.txt", files / "run.txt", files / "run2.txt", "--measure", "RR")
    report = as_json(capsys, *command, "--test", "sign", "--topics", "all")
    assert {"baseline", "measure", "pairs"} <= set(report)
    assert report["baseline"] == "run"
    assert report["measure"] == "RR"
    (pair,) = report["pairs"]
    assert (pair["a"], pair["b"]) == ("run2", "run")
    assert (pair["wins"], pair["losses"], pair["ties"], pair["p"], pair["p_adjusted"]) == (1, 1, 1, 1.0, 1.0)
    again = f"{files}/../{files.name}/run2.txt"  # another name of a system is no system
    report = as_json(capsys, *command, "--topics", "all", "--baseline", again)
    assert [(pair["a"], pair["b"]) for pair in report["pairs"]] == [("run", "run2")]
    assert main([str(word) for word in (*command[:-2], again)]) == 2


def test_compare_scores(files, capsys):
    command = ["compare", "--data", str(files / "data.txt"), "--scores", str(files / "scores.txt")]
    command += [str(files / "other.txt"), "--measure", "AP"]
    report = as_json(capsys, *command, "--baseline", files / "other.txt")
    assert report["pairs"][0]["wins"] == 1
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "(baseline)" in out
    assert "queries that differ most" in out
    assert "other against scores" in out
    assert "convention ranklib (the default for judged rows)" in out
    assert "randomisation test, two-sided (8 resamples); p corrected by max-T for 1 comparison," in out
    assert as_json(capsys, *command, "--all-pairs")["baseline"] is None


def test_of_a_table_grades_and_queries_alone_are_read(files, capsys):
    (files / "shop.csv").write_text("search,clicks,title,price\nq1,1,a b,\nq1,0,c,2\nq2,1,d,3\nq2,0,e,inf\n")
    for name, text in (("a.scores", "4\n3\n2\n1\n"), ("b.scores", "1\n2\n3\n4\n")):
        (files / name).write_text(text)
    table = ["--data", str(files / "shop.csv"), "--query-column", "search", "--grade-column", "clicks"]
    assert main(["evaluate", *table, "--scores", str(files / "a.scores"), "--measures", "RR", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measures"]["RR"]["mean"] == 1.0
    assert main(["compare", *table, "--scores", str(files / "a.scores"), str(files / "b.scores"), "--json"]) == 0
    assert next(iter(json.loads(capsys.readouterr().out)["means"].values())) == 1.0


def test_evaluate_explains_and_converts(files, capsys):
    command = ("evaluate", "--qrels", files / "qrels.txt", "--run", files / "run.txt", "--measures", "AP nDCG@2")
    report = as_json(capsys, *command)
    entry = report["measures"]["AP"]
    assert entry["interval"][0] <= entry["mean"] <= entry["interval"][1]
    assert entry["lowest"] <= entry["expected"] <= entry["highest"]
    assert report["tied"] == 0
    query = next(iter(as_json(capsys, *command, "--per-query")["measures"]["AP"]["per_query"]))
    explained = as_json(capsys, *command, "--explain", query)["explained"]
    assert [one["measure"] for one in explained] == ["AP", "nDCG@2"]
    conventions = as_json(capsys, *command, "--every-convention")["conventions"]
    assert conventions["nDCG@2"]["trec"] == report["measures"]["nDCG@2"]["mean"]
    assert main([str(word) for word in (*command, "--explain", query)]) == 0
    assert "not in the list" in capsys.readouterr().out
    assert main([str(word) for word in (*command, "--every-convention")]) == 0
    assert "catboost" in capsys.readouterr().out
    assert main(["evaluate", "--data", str(files / "data.txt"), "--explain", "1"]) == 2


def test_every_convention_names_measures_that_always_have_trec(files, capsys):
    command = ("evaluate", "--qrels", files / "qrels.txt", files / "run.txt", "--measures", "ndcg_cut_10 nDCG@10")
    report = as_json(capsys, *command, "--every-convention")
    assert report["fixed"] == {"ndcg_cut_10": "trec"}
    assert len(set(report["conventions"]["ndcg_cut_10"].values())) == 1
    assert main([str(word) for word in (*command, "--every-convention")]) == 0
    assert "ndcg_cut_10 always has the convention trec. Use nDCG@10" in capsys.readouterr().out


def test_files_of_one_name_are_named_by_their_paths(files, capsys):
    (files / "other").mkdir()
    (files / "other" / "run.txt").write_text((files / "run2.txt").read_text())
    command = ("compare", "--qrels", files / "qrels.txt", files / "run.txt", files / "other" / "run.txt")
    command += ("--topics", "all")
    assert as_json(capsys, *command)["pairs"][0]["a"] == str(files / "other" / "run.txt")


def test_compare_every_pair_in_every_format(files, capsys):
    (files / "third.run").write_text((files / "run2.txt").read_text().replace(" 1 ", " 2 "))
    runs = [files / name for name in ("run.txt", "run2.txt", "third.run")]
    command = ["compare", "--qrels", files / "qrels.txt", *runs, "--topics", "all"]
    report = as_json(capsys, *command, "--measures", "AP RR", "--baseline", "third")
    assert {(pair["a"], pair["b"]) for pair in report["pairs"]} == {("run", "third"), ("run2", "third")}
    assert report["measures"].keys() == {"AP", "RR"}
    everything = as_json(capsys, *command, "--all-pairs", "--correction", "max-t", "--convention", "ranklib")
    assert len(everything["pairs"]) == 3
    assert {name for group in everything["groups"] for name in group} == {"run", "run2", "third"}
    for style, mark in (
        ("markdown", "| ranker |"),
        ("latex", r"\toprule"),
        ("csv", "measure,convention,ranker,mean"),
        ("html", "<table>"),
        ("text", "group"),
    ):
        assert main([str(word) for word in (*command, "--all-pairs", "--format", style)]) == 0
        assert mark in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["evaluate"], 2, "give either --qrels FILE with runs, or --data FILE"),
        (["evaluate", "--data", "data.txt"], 2, "Name MODEL or --scores FILE"),
        (
            ["evaluate", "--data", "data.txt", "--run", "run.txt", "--scores", "s"],
            2,
            "accepts one system, but got 2: run.txt, s",
        ),
        (["evaluate", "--data", "data.txt", "--qrels", "qrels.txt"], 2, "give either"),
        (["evaluate", "--qrels", "qrels.txt"], 2, "Name a run"),
        (
            ["evaluate", "a.run", "--qrels", "qrels.txt", "--run", "b.run"],
            2,
            "accepts one system, but got 2: a.run, b.run",
        ),
        (["evaluate", "--qrels", "qrels.txt", "--scores", "scores.txt"], 2, "--scores requires --data"),
        (["evaluate", "--data", "-", "--scores", "-"], 2, "only once"),
        (["evaluate", "--data", "data.txt", "--scores", "scores.txt", "--measures", "nDGC"], 1, "Did you mean"),
        (
            ["evaluate", "--data", "data.txt", "--scores", "absent.txt"],
            1,
            "'absent.txt' is neither a file of scores nor a column",
        ),
        (
            ["evaluate", "--data", "data.txt", "--scores", "short.txt"],
            1,
            "short.txt: the file has 2 scores, but the data have 6 rows",
        ),
        (["evaluate", "--data", "data.txt", "--scores", "word.txt"], 1, "word.txt, line 3: expected a number .* 'x'"),
        (
            ["evaluate", "--data", "data.txt", "--scores", "two.txt"],
            1,
            "two.txt, line 1: expected one number a line, got '1 2'",
        ),
        (["evaluate", "--data", "data.txt", "--scores", "nan.txt"], 1, "nan.txt, line 2: expected a number"),
        (["evaluate", "--data", "data.txt", "--scores", "gap.txt"], 1, "gap.txt, line 2: the line is blank"),
        (["compare"], 2, "give either --qrels FILE with runs"),
        (["compare", "--qrels", "qrels.txt", "run.txt"], 2, "at least two systems, got 1. Add another run"),
        (["compare", "--qrels", "qrels.txt", "run.txt", "run.txt"], 2, "named twice"),
        (["compare", "--data", "data.txt", "--scores", "scores.txt"], 2, "at least two"),
        (["compare", "--data", "data.txt", "run.txt", "run2.txt"], 1, "not a model"),
        (
            ["compare", "--data", "data.txt", "--scores", "scores.txt", "--baseline", "f9"],
            1,
            "nor a column of data.txt",
        ),
        (["compare", "--qrels", "qrels.txt", "--scores", "scores.txt", "other.txt"], 2, "--scores requires --data"),
        (["compare", "--qrels", "qrels.txt", "--data", "data.txt", "run.txt"], 2, "give either"),
        (
            ["compare", "--qrels", "qrels.txt", "run.txt", "run2.txt", "--baseline", "x"],
            2,
            "is not among the compared systems",
        ),
        (
            ["compare", "--qrels", "q", "a", "b", "--all-pairs", "--baseline", "a"],
            2,
            "not be combined with --all-pairs",
        ),
    ],
)
def test_misuse(files, capsys, monkeypatch, arguments, code, message):
    contents = {"short.txt": "1\n2\n", "word.txt": "1\n2\nx\n", "two.txt": "1 2\n3\n4\n5\n6\n7\n"}
    contents |= {"nan.txt": "1\nnan\n1\n1\n1\n1\n", "gap.txt": "1\n\n1\n1\n1\n1\n1\n"}
    for name, text in contents.items():
        (files / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(files)
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("truerank ")
    assert re.search(message, captured.err), captured.err


def test_evaluate_loads_no_heavy_library(files):
    code = (
        "import sys; from truerank.cli import main; main(sys.argv[1:]); "
        "print(sorted({'numba', 'sklearn', 'pandas', 'scipy'} & set(sys.modules)))"
    )
    command = ["evaluate", "--data", files / "data.txt", "--scores", files / "scores.txt", "--json"]
    result = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"


def test_runs_and_qrels_of_trec_load_no_reader_of_tables(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 0\n")
    for name, order in (("x.run", "ab"), ("y.run", "ba")):
        (tmp_path / name).write_text("".join(f"1 Q0 {one} {k} {-k} t\n" for k, one in enumerate(order, 1)))
    code = (
        "import sys; from truerank.cli import main; main(sys.argv[1:]); "
        "print([name for name in sys.modules if name.startswith(('truerank.io.judgements.content', "
        "'truerank.io.judgements.ratings', 'truerank.io.tables', 'truerank.significance.history', 'truerank.models'))])"
    )
    command = ["compare", "--qrels", "qrels", "x.run", "y.run", "--json"]
    result = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_each_kind_of_file_has_its_own_convention_and_the_line_says_it(tmp_path, capsys):
    (tmp_path / "q").write_text("1 0 a 2\n1 0 b 1\n2 0 c 1\n")
    (tmp_path / "r").write_text("1 Q0 b 1 5 x\n1 Q0 a 2 4 x\n2 Q0 c 1 1 x\n")
    (tmp_path / "s").write_text("1 Q0 a 1 5 y\n1 Q0 b 2 4 y\n2 Q0 c 1 1 y\n")
    (tmp_path / "d.txt").write_text("2 qid:1 1:1\n1 qid:1 1:2\n1 qid:2 1:1\n")
    (tmp_path / "scores").write_text("1\n2\n3\n")
    runs = ["--qrels", str(tmp_path / "q"), "--run", str(tmp_path / "r")]
    rows = ["--data", str(tmp_path / "d.txt"), "--scores", str(tmp_path / "scores")]
    for words, name in ((runs, "trec"), (rows, "ranklib"), ([*runs, "--convention", "letor3"], "letor3")):
        assert main(["evaluate", *words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["convention"] == name
        assert main(["evaluate", *words]) == 0
        said = capsys.readouterr().out
        assert (f"convention {titled(name)} (the default for" in said) == ("--convention" not in words)
    assert main(["compare", "--qrels", str(tmp_path / "q"), str(tmp_path / "r"), str(tmp_path / "s")]) == 0
    out = capsys.readouterr().out
    assert "convention trec (trec_eval 10) (the default for runs and qrels)" in out
    assert "means over all 2 topics of the qrels" in out


def test_runs_of_different_topics_are_compared_as_asked_for(tmp_path, capsys, monkeypatch):
    """Through each door one rule, and the same figure for the same run."""
    monkeypatch.chdir(tmp_path)
    Path("q").write_text("1 0 a 1\n1 0 b 0\n2 0 c 1\n2 0 d 0\n3 0 e 1\n")
    Path("whole.run").write_text("1 Q0 a 1 5 x\n2 Q0 d 1 5 x\n2 Q0 c 2 1 x\n")
    Path("part.run").write_text("1 Q0 a 1 5 y\n")
    files = ["part.run", "whole.run"]
    wanted = {"common": {"part": 1.0, "whole": 1.0}, "all": {"part": 1 / 3, "whole": 0.5}}
    choice = "part 1, whole 2, of 3 in the qrels.*topics.*common.* \\(1\\), or .*topics.*all.* \\(3\\)"
    for options in ([], ["--convention", "trec"], ["--convention", "gdeval"]):
        convention = options[-1] if options else None
        command = ["compare", "--qrels", "q", *files, "--measure", "AP", *options]
        assert main(command) == 1
        assert re.search(choice, capsys.readouterr().err)
        for function in (
            lambda topics=None, convention=convention: (
                compare("q", files, "AP", convention=convention, topics=topics).means
            ),
            lambda topics=None, convention=convention: {
                name: one["AP"]
                for name, one in evaluate("q", files, "AP", convention=convention, topics=topics).items()
            },
        ):
            with refused(InvalidInputError, code="different-topics", argument="topics"):
                function()
            assert {topics: function(topics) for topics in wanted} == wanted
        for topics, means in wanted.items():
            report = as_json(capsys, *command, "--topics", topics)
            assert report["means"] == means
            assert report["coverage"]["runs"] == {"part": 1, "whole": 2}
            for name, mean in means.items():
                alone = ["evaluate", "--qrels", "q", f"{name}.run", "--measures", "AP", *options, "--topics", topics]
                found = as_json(capsys, *alone)["measures"]["AP"]["mean"]
                assert found == (mean if topics == "all" or name == "part" else 0.75)
        assert main([*command, "--topics", "common"]) == 0
        out = capsys.readouterr().out
        of_topics = "means over 1 of the 3 topics of the qrels that all runs have (part 1, whole 2)"
        assert f"\n\n{of_topics}\n\n" in out
        assert main([*command, "--topics", "common", "--format", "latex"]) == 0
        assert of_topics in capsys.readouterr().out  # in the caption
    page = ["report", "--qrels", "q", "--run", *files, "--measures", "AP", "-o", "page.html"]
    assert main(page) == 1
    assert re.search(choice, capsys.readouterr().err)
    assert main([*page, "--topics", "all"]) == 0
    text = Path("page.html").read_text()
    assert "topics that a run lacks count 0 (part 2, whole 1)" in text
    assert "not checked: whether the systems were trained on these queries" in text
    assert "AP is 0.5000 for whole" in text


def test_runs_of_the_same_topics_need_no_choice(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("q").write_text("1 0 a 1\n2 0 c 1\n3 0 e 1\n")
    Path("a.run").write_text("1 Q0 a 1 5 x\n2 Q0 d 1 5 x\n2 Q0 c 2 1 x\n")
    Path("b.run").write_text("1 Q0 a 1 5 y\n2 Q0 c 1 5 x\n")
    report = as_json(capsys, "compare", "--qrels", "q", "a.run", "b.run", "--measure", "AP")
    assert report["means"] == {"a": 0.75, "b": 1.0}
    assert report["coverage"] == {"topics": None, "qrels": 3, "runs": {"a": 2, "b": 2}, "used": 2}
    assert compare("q", ["a.run", "b.run"], "AP").means == report["means"]
    for convention in ("trec", "ranklib"):
        assert evaluate("q", "a.run", "AP", convention=convention)["AP"] == 0.75
    assert main(["evaluate", "--qrels", "q", "a.run", "--measures", "AP"]) == 0
    out = capsys.readouterr().out
    assert "; means over 2 of the 3 topics of the qrels in the run.\n\n" in out
    assert "3 queries, of which the run has 2; the others are left out of the means (--topics all counts 0)" in out
    assert "not checked: whether the systems were trained on these queries" in out
    Path("c.run").write_text("3 Q0 e 1 5 x\n")
    assert main(["compare", "--qrels", "q", "a.run", "c.run", "--topics", "common"]) == 1
    assert "no topic of the qrels is in all runs (a 2, c 1)" in capsys.readouterr().err


def test_nothing_to_evaluate_is_an_error(tmp_path, capsys):
    (tmp_path / "q").write_text("1 0 a 2\n")
    (tmp_path / "r").write_text("9 Q0 b 1 5 x\n")
    assert main(["evaluate", "--qrels", str(tmp_path / "q"), "--run", str(tmp_path / "r")]) == 1
    assert (
        "run 'r' has no topic of the qrels: its topics are '9', but the topics of the qrels are '1'"
        in capsys.readouterr().err
    )


@pytest.mark.filterwarnings("ignore:Quepid.s CSV cannot store")
def test_a_run_of_texts_is_about_the_queries_that_have_these(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    queries = [{"query_id": k, "query_text": text, "ratings": {"a": 1}} for k, text in enumerate(["red shoes", "tv"])]
    Path("case.json").write_text(json.dumps({"queries": queries}))
    Path("run.json").write_text(json.dumps({"red shoes": {"a": 2.5}, "tv": {"b": 1.5}}))
    assert main(["convert", "case.json", "qrels.csv", "--to", "quepid"]) == 0
    for judgements in ("case.json", "qrels.csv"):
        assert main(["evaluate", "run.json", "--qrels", judgements, "--measures", "AP"]) == 0
        assert "AP of run is 0.5000" in capsys.readouterr().out
    assert main(["gate", "run.json", "--baseline", "run.json", "--gold", "case.json"]) in (0, 2)
    assert "2 queries" in capsys.readouterr().out


def test_one_query_that_decides_is_named(tmp_path, capsys):
    queries = range(12)
    (tmp_path / "qrels").write_text("".join(f"{q} 0 d1 1\n{q} 0 d2 0\n" for q in queries))
    losses = {0, 1}
    for name, best in (("old", "d2"), ("new", "d1")):
        lines = []
        for q in queries:
            first = best if q not in losses else {"d1": "d2", "d2": "d1"}[best]
            lines += [f"{q} Q0 {first} 1 2 x", f"{q} Q0 {'d1' if first == 'd2' else 'd2'} 2 1 x"]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    command = ["compare", "--qrels", tmp_path / "qrels", tmp_path / "old", tmp_path / "new", "--measure", "RR"]
    assert main([*map(str, command), "--margin", "0.05"]) == 0
    out = capsys.readouterr().out
    assert "0.0386**" in out  # ten wins and two losses of one half: 2 (1 + 12 + 66) / 4096
    # nine wins and two losses: 2 (1 + 11 + 55) / 2048
    assert "query 2 alone decides new against old: without this query, the difference is +0.3182 " in out
    assert "better; not worse by more than 0.05" in out
    assert "other verdicts are for one pair alone" in out
    assert main([*map(str, command), "--correction", "none", "--test", "sign"]) == 0
    out = capsys.readouterr().out
    assert "share of wins, 95%" in out
    assert "p not corrected" in out


def test_topics_hold_for_every_convention_and_measures_of_their_own_rule_are_named(tmp_path, capsys):
    (tmp_path / "q").write_text("1 0 a 1\n2 0 a 1\n")
    (tmp_path / "r").write_text("1 Q0 a 1 2 r\n")
    files = ["--qrels", str(tmp_path / "q"), str(tmp_path / "r")]
    for topics, value in (("all", "0.5"), ("common", "1.0")):
        assert (
            main(["evaluate", *files, "--topics", topics, "--every-convention", "--measures", "DCG@1", "--json"]) == 0
        )
        figures = json.loads(capsys.readouterr().out)["conventions"]["DCG@1"]
        assert set(figures.values()) == {float(value)}
    assert main(["evaluate", *files, "--topics", "all", "--measures", "RR", "RR(missing_topics='skip')"]) == 0
    assert "; RR(missing_topics='skip') has missing_topics='skip' of its own" in capsys.readouterr().out
