"""Every command that reads data tells what changes the figures, each kind once, and gives no verdict on ranks."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pytest
from scipy import sparse

import truerank
from support.refusals import refused
from truerank import RankingData
from truerank.cli import main
from truerank.core.errors import InvalidInputError, TruerankError
from truerank.data.checkup import ranks_as_scores
from truerank.data.remarks import CODES, Remark
from truerank.experiments.policy import about_data, about_qrels, about_runs, check_order
from truerank.significance.comparison_text import sentences

pandas = pytest.importorskip("pandas")
M, N = 40, 8


@pytest.fixture
def table(tmp_path, monkeypatch):
    """40 queries of 8 documents, with a column of ranks, and the same as points."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    signal = rng.normal(size=M * N)
    frame = pandas.DataFrame({
        "qid": np.repeat(np.arange(M), N), "y": np.clip(np.round(signal + rng.normal(size=M * N)), 0, 3),
        "docid": [f"d{k}" for k in range(M * N)], "bm25": signal + rng.normal(size=M * N),
        "new": signal + rng.normal(size=M * N),
    })  # fmt: skip
    frame["position"] = frame.groupby("qid").bm25.rank(ascending=False).astype(int)
    frame["points"] = N + 1 - frame.position
    frame.to_csv("data.csv", index=False)
    np.savetxt("ranks.txt", frame.position, "%d")
    np.savetxt("bm25.txt", frame.bm25)
    return frame


def told(capsys, *words, code=0):
    assert main([*words, "--json"]) == code
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def codes(report):
    return sorted({remark["code"] for remark in report["remarks"]})


VERDICTS = {
    "compare": "compare --data data.csv --scores new --scores={position}",
    "compare with a baseline": "compare --data data.csv --scores new --baseline={position}",
    "power": "power --data data.csv --scores new --scores={position}",
    "report": "report --data data.csv --scores new --baseline={position} -o page.html",
    "calibrate": "calibrate --data data.csv --scores={ranks.txt} -o c.json",
    "cutoff": "cutoff fit --data data.csv --scores={ranks.txt} --confidence 0.5 --at-most 0.9 -o cut.json",
}


@pytest.mark.parametrize("command", VERDICTS.values(), ids=VERDICTS)
def test_no_verdict_on_ranks_unless_their_order_is_stated(command, table, capsys):
    before, name, after = re.fullmatch(r"(.*){(.*)}(.*)", command).groups()
    assert main(f"{before}{name}{after}".split()) == 1
    assert f"{name}:ascending" in capsys.readouterr().err
    for stated in (f"{name}:ascending", f"-{name}", f"{name}:descending"):
        assert main(f"{before}{stated}{after}".split()) == 0
        assert "no verdict" not in capsys.readouterr().err


def test_no_gate_on_ranks_unless_their_order_is_stated(table):
    with pytest.raises(TruerankError) as caught:
        truerank.Experiment("data.csv", ["bm25", "position"], "AP").gate(inconclusive="pass")
    assert caught.value.code == "ranks-as-scores"
    assert truerank.Experiment("data.csv", ["bm25", "-position"], "AP").gate(inconclusive="pass").verdict == "PASS"


def test_a_turned_column_has_the_values_of_the_scores_behind_it(table, capsys):
    of_bm25 = told(capsys, *["evaluate", "--data", "data.csv", "--scores", "bm25"])[0]["measures"]
    for entry in ("--scores=-position", "--scores=position:ascending", "--scores=points:descending",
                  "--scores=ranks.txt:ascending", "--scores=-ranks.txt"):  # fmt: skip
        report, err = told(capsys, "evaluate", "--data", "data.csv", entry)
        assert report["measures"] == of_bm25
        assert (codes(report), err) == ([], "")
    words = "compare --data data.csv --scores new --baseline"
    assert told(capsys, *words.split()[:-1], "--baseline=-position")[0]["means"]["-position"] == pytest.approx(
        told(capsys, *words.split(), "bm25")[0]["means"]["bm25"]
    )


def test_evaluate_prints_figures_of_ranks_with_the_remark(table, capsys):
    report, err = told(capsys, *["evaluate", "--data", "data.csv", "--scores", "position"])
    assert codes(report) == ["ranks-as-scores"]
    assert report["remarks"][0]["severity"] == "forbids a verdict"
    assert err.count("ranks-as-scores") == 1
    assert main(["describe", "data.csv", "--scores", "ranks.txt", "--json"]) == 0
    found = {entry["code"]: entry["items"] for entry in json.loads(capsys.readouterr().out)["findings"]}
    assert found["ranks-as-scores"] == ["ranks.txt"]
    assert found["rank-feature"] == ["position", "points"]


def test_python_gives_no_verdict_on_ranks_unless_their_order_is_stated():
    rng = np.random.default_rng(0)
    y, qid = rng.integers(0, 3, 60), np.repeat(np.arange(10), 6)
    ranks = np.tile(np.arange(1, 7), 10)
    new = rng.random(60)
    with refused(InvalidInputError, code="ranks-as-scores") as caught:
        truerank.compare(y, {"new": new, "old": ranks}, qid=qid)
    assert "old:ascending" in str(caught.value)
    negated = truerank.compare(y, {"new": new, "old": -ranks}, qid=qid).means["old"]
    assert truerank.compare(y, {"new": new, "old:ascending": ranks}, qid=qid).means["old:ascending"] == negated
    assert truerank.compare(y, {"new": new, "old:descending": ranks}, qid=qid).means["old:descending"] != negated
    found = truerank.evaluate(y, ranks, qid=qid)  # figures, with the remark
    assert [(one.code, one.severity) for one in found.remarks] == [("ranks-as-scores", "forbids a verdict")]
    assert found.summary.startswith("No verdict")


def spoilt(table):
    """Return the table with everything that changes figures."""
    frame = table.drop(columns="points")
    frame.loc[0, "y"], frame.loc[1, "y"] = 100, -1
    frame["docid"] = [f"d{k // 2}" if k < 4 else f"d{k}" for k in range(len(frame))]
    frame["row"] = np.arange(len(frame))
    return frame


READERS = {
    "train": "train bad.csv --model m.json --ranker ridge",
    "cross-validate": "cross-validate bad.csv --cv 3 --ranker ridge",
    "tune": "tune bad.csv --trials 2 --cv 2 --ranker ridge --space alpha=1,10 --model t.json",
    "evaluate": "evaluate model.json --data bad.csv",
    "compare": "compare model.json --data bad.csv --scores bm25.txt",
    "power": "power model.json --data bad.csv --scores bm25.txt",
    "explain": "explain model.json bad.csv",
    "calibrate": "calibrate model.json bad.csv -o c.json",
}


@pytest.mark.parametrize("command", READERS)
def test_every_reader_tells_what_changes_its_figures_once(command, table, capsys):
    spoilt(table).to_csv("bad.csv", index=False)
    table.drop(columns="points").assign(row=0.5).to_csv("other.csv", index=False)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    model = truerank.RidgeRanker().fit(pandas.DataFrame(X, columns=["bm25", "new", "position", "row"]), X[:, 0] > 0,
                                 qid=np.repeat(np.arange(6), 10))  # fmt: skip
    truerank.save_model(model, "model.json")
    report, err = told(capsys, *READERS[command].split())
    expected = ["conflicting-documents", "counting-feature", "duplicate-document", "huge-grade", "negative-grade"]
    assert codes(report) == [*expected, "rank-feature"]
    assert all(err.count(f"({code})") == 1 for code in codes(report))


def test_conventions_that_read_a_grade_as_meant_have_no_remark_on_it():
    data = RankingData([[0.5]] * 3, [100, 0.5, 0], ["a", "a", "b"])
    assert [one.code for one in about_data(data, "ranklib")] == ["huge-grade"]
    assert [one.code for one in about_data(data, "trec")] == ["fractional-grade"]
    assert [one.code for one in about_data(data, "sklearn")] == []
    assert [one.code for one in about_data(data, "trec", trains=True)] == ["fractional-grade", "huge-grade"]
    qrels = truerank.read_qrels(io.StringIO("1 0 a 0.5\n1 0 b 100\n1 0 c -1\n"))
    assert [one.code for one in about_qrels(qrels)] == ["negative-grade", "fractional-grade"]
    assert [one.code for one in about_qrels(qrels, "ranklib")] == ["negative-grade", "huge-grade"]


@pytest.mark.parametrize("turn", [str.upper, lambda doc: doc[:-2], lambda doc: doc.lstrip("0"), lambda doc: f"{doc} "])
def test_a_run_of_other_ids_is_told(turn):
    """A value of 0 because of ids is no news about a system."""
    qrels = {f"q{q}": {f"00a{q}b{k}": k % 2 for k in range(6)} for q in range(4)}
    own = {q: {doc: float(k) for k, doc in enumerate(docs)} for q, docs in qrels.items()}
    other = {q: {turn(doc): score for doc, score in docs.items()} for q, docs in own.items()}
    some = other | {"q1": own["q1"]}
    for one in truerank.evaluate(qrels, {"own": own, "some": some}, "AP").values():
        assert "no-judged-document" not in [remark.code for remark in one.remarks]
    found = truerank.evaluate(qrels, {"own": own, "other": other}, "AP")["other"]
    remark = next(one for one in found.remarks if one.code == "no-judged-document")
    assert (remark.items, found["AP"]) == (["other"], 0.0)
    assert "'00a0b0'" in remark.where


def test_runs_whose_ranks_contradict_their_scores(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(name, score):
        lines = (f"{q} Q0 d{k} {k} {score(q, k)} {name}\n" for q in range(5) for k in range(1, 9))
        (tmp_path / f"{name}.run").write_text("".join(lines))

    rng = np.random.default_rng(0)
    run("right", lambda q, k: 9 - k)
    run("distances", lambda q, k: k / 7)
    run("ranks", lambda q, k: k)
    run("tied", lambda q, k: 1)
    run("any", lambda q, k: rng.random())
    parts = [(f"d{4 * part + k}", k, 8 - 4 * part - k) for part in (0, 1) for k in range(1, 5)]
    both = (f"{q} Q0 {document} {rank} {score} merged\n" for q in range(5) for document, rank, score in parts)
    (tmp_path / "merged.run").write_text("".join(both))  # from two collections, with ranks within each
    (tmp_path / "qrels").write_text("".join(f"{q} 0 d1 1\n" for q in range(5)))
    names = ["right", "distances", "ranks", "tied", "any", "merged"]
    report, err = told(capsys, "compare", "--qrels", "qrels", *(f"{name}.run" for name in names))
    assert codes(report) == ["contradicting-ranks", "ties", "unjudged-documents"]
    remark = next(one for one in report["remarks"] if one["code"] == "contradicting-ranks")
    assert (remark["code"], remark["items"]) == ("contradicting-ranks", ["distances", "ranks"])
    assert err.count("contradicting-ranks") == 1
    assert report["means"]["ranks"] < report["means"]["right"]  # the order is that of the scores
    report, err = told(capsys, "fuse", "ranks.run", "right.run", "--method", "rrf", "-o", "out.run")
    assert codes(report) == ["contradicting-ranks"]


def test_row_numbers_of_pandas_are_no_feature(table, capsys):
    frame = table[["qid", "y", "docid", "bm25"]]
    frame.to_csv("index.csv")
    frame.sample(frac=0.5, random_state=0).to_csv("sample.csv")
    pandas.read_csv("index.csv").to_csv("again.csv", index=False)  # "Unnamed: 0"
    pandas.read_csv("again.csv").to_csv("twice.csv")
    pandas.read_csv("twice.csv").to_csv("thrice.csv", index=False)  # "Unnamed: 0.1" and "Unnamed: 0"
    for name in ("index", "sample", "again", "twice", "thrice"):
        with pytest.warns(UserWarning, match="unnamed-column"):
            data = truerank.read_table(f"{name}.csv")
        assert data.feature_names == ["bm25"]
        assert main(["describe", f"{name}.csv", "--json"]) == 0
        assert "unnamed-column" in capsys.readouterr().out
    named = truerank.read_table("index.csv", features=["", "bm25"])
    assert named.feature_names == ["", "bm25"]
    frame.rename(columns={"bm25": ""}).to_csv("nameless.csv", index=False)
    with refused(TruerankError, code="unnamed-column"):
        truerank.read_table("nameless.csv")
    assert main(["train", "nameless.csv", "--model", "m.json"]) == 1


def test_remarks_have_what_a_front_end_prints():
    remark = ranks_as_scores({"old": np.tile([1, 2, 3, 4.0], 9)}, np.arange(0, 37, 4))[0]
    assert (remark.code, remark.items, remark.severity) == ("ranks-as-scores", ["old"], "forbids a verdict")
    assert "old:ascending" in remark.remedy
    assert "old" in remark.text
    with refused(InvalidInputError, code="ranks-as-scores"):
        check_order([remark])
    assert about_runs({"a": False}) == []
    notes = [Remark(code, "here", 1) for code, entry in CODES.items() if code != "ranks-as-scores"]
    check_order(notes)


def test_a_list_of_one_document_is_noted_when_scores_are_scaled(tmp_path, capsys):
    (tmp_path / "one.run").write_text("q Q0 a 1 7.0 t\n")
    (tmp_path / "three.run").write_text("q Q0 b 1 3 u\nq Q0 c 2 2 u\nq Q0 d 3 1 u\n")
    words = ["fuse", str(tmp_path / "one.run"), str(tmp_path / "three.run"), "-o", "-", "--method"]
    assert main([*words, "comb-sum"]) == 0
    assert "equal scores" in capsys.readouterr().err
    assert main([*words, "rrf"]) == 0
    assert "equal scores" not in capsys.readouterr().err


def test_pairs_alike_share_a_sentence():
    rng = np.random.default_rng(0)
    values = rng.random(20)
    found = truerank.compare_values({f"s{k}": values for k in range(11)}, baseline=None)
    assert len(found.pairs) == 55
    assert [line for line in sentences(found) if "no query differs" in line] == sentences(found)
    assert len(sentences(found)) == 1
    assert "52 other pairs" in sentences(found)[0]


def test_sparse_columns_of_ranks_are_found_as_dense_ones(table):
    rng = np.random.default_rng(1)
    X = np.column_stack([table.position, rng.integers(0, 2, len(table)), table.position - 1, np.arange(len(table))])
    dense, thin = (
        about_data(RankingData(rows, table.y, table.qid), trains=True) for rows in (X * 1.0, sparse.csr_matrix(X * 1.0))
    )
    assert dense == thin
    assert [(one.code, one.items) for one in thin] == [("counting-feature", ["4"]), ("rank-feature", ["1", "3"])]


def test_split_and_judge_tell_what_is_in_their_files(table, capsys):
    with open("d.txt", "w") as file:
        file.writelines(f"{20 * (k % 2)} qid:{q} 1:{k} 2:{q * k % 7}\n" for q in range(30) for k in range(1, 9))
    assert main(["split", "d.txt", "-o", "parts"]) == 0
    message = capsys.readouterr().err
    assert "rank-feature" in message
    assert "huge-grade" in message
    with open("q.txt", "w") as file:
        file.writelines(f"{q} 0 d{k} {k / 2}\n" for q in range(30) for k in range(4))
    assert main(["split", "q.txt", "-o", "parts", "--replace"]) == 0
    assert "fractional-grade" in capsys.readouterr().err
    report, message = told(capsys, "judge", "agree", "q.txt", "q.txt")
    assert codes(report) == ["fractional-grade"]
    assert message.count("fractional-grade") == 1


@pytest.mark.parametrize(("measures", "shallow"), [("AP", ["short"]), ("nDCG@10 nDCG@40", ["short"]), ("AP@20", [])])
def test_runs_of_different_depth_have_a_remark_if_a_measure_reads_deeper(measures, shallow):
    """One run of 30 documents a topic beside two of 60: the values of deeper ranks are 0 in it."""
    rng = np.random.default_rng(0)
    qrels = {f"q{k}": {f"d{d}": int(rng.random() < 0.2) for d in range(80)} for k in range(12)}
    runs = {
        name: {q: {f"d{d}": float(rng.normal()) for d in range(80 if k else 5)[:depth]} for k, q in enumerate(qrels)}
        for name, depth in {"long": 60, "other": 57, "short": 30}.items()
    }
    experiment = truerank.Experiment(qrels, runs, measures)
    found = [remark for remark in experiment.remarks if remark.code == "different-depths"]
    assert [remark.items for remark in found] == ([shallow] if shallow else [])
    assert truerank.Experiment(qrels, {"long": runs["long"], "other": runs["other"]}, measures).remarks == []


def test_no_system_leads_on_training_queries():
    rng = np.random.default_rng(5)
    X, y, qid = rng.normal(size=(600, 3)), rng.integers(0, 3, 600), np.repeat(np.arange(60), 10)
    model = truerank.RidgeRanker().fit(X, y, qid=qid)
    data, systems = truerank.RankingData(X, y, qid=qid), {"one": X[:, 0], "two": X[:, 1]}
    for three, leads in ((systems | {"model": model.predict(X)}, True), (systems | {"model": model}, False)):
        found = truerank.Experiment(data, three, "AP", training_queries="keep").evidence()
        assert bool(found.leaders) == leads
