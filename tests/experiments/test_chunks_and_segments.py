"""Chunks and segments in `evaluate`, `compare` and `report`, as in the gate; result files of packages for RAG."""

import json
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import truerank
from support.refusals import refused
from truerank.cli import main
from truerank.core.errors import TruerankError
from truerank.data.ranking_data import Judgements
from truerank.experiments.gate import gate
from truerank.io.documents import Document
from truerank.io.gold_sets import matched_spans, read_gold
from truerank.io.results import read_results, run_of

M = 60
RNG = np.random.default_rng(3)
ORDERS = {f"q{q}": [f"d{k}" for k in RNG.permutation(12)] for q in range(M)}
GOLD = {q: {name: int(RNG.integers(0, 3)) for name in order} for q, order in ORDERS.items()}
LANGUAGES = {q: "de" if k % 3 else "en" for k, q in enumerate(ORDERS)}


def chunks_of(order, repeat):
    """Every document twice: with names of chunks, or with its own name again."""
    return [name if repeat else f"{name}#{k}" for k in (0, 1) for name in order]


def forms(tmp_path, repeat):
    """The same chunks as a TREC run, JSON lines, a dict, and a data frame."""
    lists = {q: chunks_of(order, repeat) for q, order in ORDERS.items()}
    rows = [(q, name, float(100 - k)) for q, own in lists.items() for k, name in enumerate(own)]
    trec, lines = tmp_path / f"{repeat}.run", tmp_path / f"{repeat}.jsonl"
    trec.write_text("".join(f"{q} Q0 {name} 1 {score} x\n" for q, name, score in rows))
    lines.write_text("".join(json.dumps({"query_id": q, "results": own}) + "\n" for q, own in lists.items()))
    frame = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    return {"trec": str(trec), "lines": str(lines), "frame": frame}


@pytest.mark.parametrize("repeat", [False, True])
def test_chunks_become_documents_in_every_form(tmp_path, repeat):
    expected = dict(truerank.evaluate(GOLD, {q: {d: -k for k, d in enumerate(o)} for q, o in ORDERS.items()}, "AP RR"))
    old = {q: {d: k for k, d in enumerate(order)} for q, order in ORDERS.items()}
    for form, run in forms(tmp_path, repeat).items():
        assert dict(truerank.evaluate(GOLD, run, "AP RR", collapse="#")) == expected, form
        found = truerank.compare(GOLD, {"old": old, "new": run}, "AP", collapse="#", test="t")
        assert found.means["new"] == expected["AP"], form


def test_repeated_ids_are_an_error_that_names_the_option(tmp_path, capsys):
    qrels = tmp_path / "qrels"
    qrels.write_text("".join(f"{q} 0 {d} {g}\n" for q, own in GOLD.items() for d, g in own.items()))
    with refused(TruerankError, argument="collapse"):
        truerank.evaluate(GOLD, noisy(1.0, 0), "AP", collapse="")
    for run in forms(tmp_path, True).values():
        with pytest.raises(TruerankError) as caught:
            truerank.evaluate(GOLD, run, "AP")
        assert caught.value.code == "twice"
        assert {"collapse": "#"} in [one.arguments for one in caught.value.remedies]
        if isinstance(run, str):
            for words in (["evaluate", run], ["compare", run, str(tmp_path / "False.run")]):
                forms(tmp_path, False)
                assert main([*words, "--qrels", str(qrels)]) == 1
                assert "--collapse" in capsys.readouterr().err
            assert main(["evaluate", run, "--qrels", str(qrels), "--collapse", "#", "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["measures"]["AP"]["mean"] > 0
    assert main(["evaluate", "--data", "x", "--scores", "y", "--collapse", "#"]) == 2


@pytest.mark.parametrize("form", ["frame", "dense", "sparse", "float32"])
def test_segments_of_large_numbers_stay_apart(form):
    """Dates and ids of shops as numbers: each value is a segment, with the text that a person would write."""
    days = np.repeat([20240101.0, 20240102.0, 20240103.0], 20)
    rows = np.random.default_rng(0).normal(size=(300, 2))
    frame = pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "day": np.repeat(days, 5)})
    frame["qid"], frame["y"] = np.repeat(np.arange(60), 5), np.tile([0, 1, 0, 2, 0], 60)
    X, scores = frame[["a", "b", "day"]].to_numpy(), {"a": frame["a"].to_numpy(), "b": frame["b"].to_numpy()}
    X = {"sparse": csr_matrix, "float32": np.float32}.get(form, np.asarray)(X)
    own = truerank.RankingData(X, frame["y"], frame["qid"], feature_names=["a", "b", "day"])
    experiment = partial(truerank.Experiment, frame if form == "frame" else own, scores, "nDCG@5", segments="day")
    if form == "float32":
        with refused(TruerankError, argument="segments"):
            experiment()
        return
    sizes = {name: len(part.query_ids) for name, part in experiment().by_segment().items()}
    assert sizes == {"20240101": 20, "20240102": 20, "20240103": 20}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_segments_of_truth_values_have_their_words_everywhere(tmp_path, capsys, ending):
    rows = [(q, grade, k % 3 == 0) for k, (q, own) in enumerate(GOLD.items()) for grade in own.values()]
    frame = pd.DataFrame(rows, columns=["qid", "y", "is_new"])
    frame["old"], frame["new"] = RNG.random(len(frame)), RNG.random(len(frame))
    path, page = tmp_path / f"rows.{ending}", tmp_path / "report.json"
    getattr(frame, f"to_{ending}")(path, index=False)
    words = ["--data", str(path), "--scores", str(tmp_path / "s"), "--baseline", "old", "--segments", "is_new"]
    np.savetxt(tmp_path / "s", frame["new"], fmt="%.17g")
    cells = ["False", "True"] if ending == "csv" else ["false", "true"]  # text keeps the words of its cells
    names = [["all queries", *cells]]
    for place, expected in ((frame, [["all queries", "false", "true"]]), (str(path), names)):
        found = truerank.compare(place, ["old", "new"], segments="is_new")
        assert [[line.name for line in own] for own in found.segments.values()] == expected
    by_query = {q: k % 3 == 0 for k, q in enumerate(GOLD)}
    assert set(truerank.Experiment(frame, ["old", "new"], segments=by_query).by_segment()) == {"false", "true"}
    assert main(["compare", *words, "--json"]) == 0
    reports = [json.loads(capsys.readouterr().out)["segments"]]
    assert main(["report", *words, "-o", str(page)]) == 0
    reports.append(json.loads(page.read_text())["segments"])
    for report in reports:
        assert [[line["name"] for line in own] for own in report.values()] == names


def test_fewer_errors_are_better_in_segments_too():
    best = {q: {d: float(GOLD[q][d]) for d in order} for q, order in ORDERS.items()}
    runs = {"old": {q: {d: k for k, d in enumerate(order)} for q, order in ORDERS.items()}, "new": best}
    found = truerank.compare(GOLD, runs, "pairs(2,0)", segments=LANGUAGES, test="t")
    whole = found.segments["new"][0]
    assert whole.difference == pytest.approx(-found.pairs[0].difference)  # new less old
    assert (whole.difference < 0, whole.verdict) == (True, "better")


def test_several_systems_divide_the_level_of_their_segments():
    runs = {"old": noisy(1.0, 0), "new": noisy(2.0, 1)}
    alone = truerank.compare(GOLD, runs, "AP", segments=LANGUAGES).segments["new"]
    beside = truerank.compare(GOLD, runs | {"other": noisy(2.0, 2)}, "AP", segments=LANGUAGES).segments["new"]
    for one, other in zip(alone, beside, strict=True):
        assert (one.name, one.difference) == (other.name, other.difference)
        assert other.low < one.low
        assert one.high < other.high


def test_a_gate_and_an_experiment_refuse_segments_that_lack_a_query():
    runs = {name: {q: dict(zip(order, range(12))) for q, order in ORDERS.items()} for name in ("new", "old")}
    some = dict(list(LANGUAGES.items())[1:])
    with refused(ValueError, argument="segments"):
        gate(GOLD, runs["new"], runs["old"], segments=some)
    with refused(ValueError, argument="segments"):
        truerank.compare(GOLD, runs, segments=some)
    whole = gate(GOLD, runs["new"], runs["old"], segments=some | {"q0": ""})
    assert [line.name for line in whole.lines] == ["all queries", "de", "en"]


def test_queries_without_a_segment_are_in_no_part():
    labels = {
        query: label if k % 5 else [None, float("nan"), ""][k % 3] for k, (query, label) in enumerate(LANGUAGES.items())
    }
    runs = {name: {q: {d: k for k, d in enumerate(order)} for q, order in ORDERS.items()} for name in "ab"}
    experiment = truerank.Experiment(GOLD, runs, "AP", segments=labels)
    assert set(experiment.by_segment()) == set(experiment.segment_masks()) == {"de", "en"}


@pytest.mark.parametrize("form", ["array", "column", "categories", "by query", "mapping"])
@pytest.mark.parametrize("judged", ["grades", "rows", "qrels"])
def test_segments_of_rows_and_of_queries_agree(form, judged):
    """Rows in any order, and a Series in another order than the queries: labels go by row or by query, not by place."""
    grades = pd.DataFrame([(q, d, g) for q, own in GOLD.items() for d, g in own.items()], columns=["qid", "docid", "y"])
    grades = grades.sample(frac=1.0, random_state=0, ignore_index=True)
    by_query, by_row = pd.Series(LANGUAGES).sort_values(), grades["qid"].map(LANGUAGES)
    given = {"array": by_row.to_numpy(), "column": by_row, "categories": by_row.astype("category"),
             "by query": by_query.astype("category"), "mapping": LANGUAGES}[form]  # fmt: skip
    scores = {name: RNG.normal(size=len(grades)) for name in ("old", "new")}
    rows = truerank.RankingData(grades[["y"]], grades["y"], grades["qid"])
    if judged == "qrels":
        runs = {"old": noisy(1.0, 0), "new": noisy(2.0, 1)}
        experiment = truerank.Experiment(GOLD, runs, "AP", segments=LANGUAGES if form == "array" else given)
        if form in ("column", "categories"):
            with refused(TruerankError, argument="segments"):
                experiment.by_segment()
            return
    elif judged == "grades":
        experiment = truerank.Experiment(grades["y"], scores, "AP", qid=grades["qid"], segments=given)
    else:
        experiment = truerank.Experiment(rows, scores, "AP", segments=given)
    assert {name: set(map(str, one.query_ids)) for name, one in experiment.by_segment().items()} == {
        language: {q for q, own in LANGUAGES.items() if own == language} for language in ("de", "en")
    }


def test_segments_by_row_go_with_judgements_and_a_single_query():
    judgements = Judgements(np.array([1.0, 0, 1, 0]), np.array([0, 2, 4]))
    scores = {"old": np.arange(4.0), "new": -np.arange(4.0)}
    for grades, labels, expected in ((judgements, list("aabb"), ["a", "b"]), ([1, 0, 1, 0], ["a"] * 4, ["a"])):
        assert truerank.Experiment(grades, scores, "AP", segments=labels).segment_names().tolist() == expected


def test_measures_that_are_no_means_are_evaluated_with_segments():
    experiment = truerank.Experiment(GOLD, {"old": noisy(1.0, 0), "new": noisy(2.0, 1)}, "GMAP", segments=LANGUAGES)
    assert "segments" not in experiment.evaluate().to_dict()
    assert set(experiment.by_segment()) == {"de", "en"}


def test_segments_of_rows_that_differ_in_a_query_are_refused():
    y, qid = np.arange(6) % 3, np.repeat([1, 2], 3)
    with refused(TruerankError, argument="segments"):
        truerank.Experiment(GOLD, {"old": noisy(1.0, 0), "new": noisy(2.0, 1)}, "AP", segments=np.array(["a", "b"]))
    for wrong in (["a", "b", "a", "a", "a", "a"], ["a", "b"], pd.DataFrame({"a": y})):
        with refused(TruerankError, argument="segments"):
            truerank.Experiment(y, {"old": y, "new": -y}, "AP", qid=qid, segments=wrong)


def noisy(scale, seed):
    rng = np.random.default_rng(seed)
    return {q: {d: GOLD[q][d] + scale * rng.normal() for d in order} for q, order in ORDERS.items()}


def test_segments_of_a_comparison_are_those_of_the_gate():
    old, new = noisy(1.0, 0), noisy(2.5, 1)
    found = truerank.compare(GOLD, {"old": old, "new": new}, "AP", segments=LANGUAGES)
    lines = found.to_dict()["segments"]["new"]
    own = gate(GOLD, new, old, "AP", margin=0.1, segments=LANGUAGES, random_state=0)
    assert [(one["name"], one["n"]) for one in lines] == [("all queries", 60), ("de", 40), ("en", 20)]
    assert [(one["low"], one["high"]) for one in lines] == [(one.low, one.high) for one in own.lines]
    assert [one["verdict"] for one in lines] == ["worse"] * 3
    back = truerank.compare(GOLD, {"new": new, "old": old}, "AP", segments=LANGUAGES).to_dict()["segments"]["old"]
    assert [one["verdict"] for one in back] == ["better"] * 3
    assert "de" in str(found)
    assert "| de" in found.text("markdown")


def test_segments_on_the_command_line(tmp_path, capsys):
    gold, data = tmp_path / "gold.jsonl", tmp_path / "rows.csv"
    gold.write_text("".join(
        json.dumps({"query_id": q, "relevant": own, "language": LANGUAGES[q]}) + "\n" for q, own in GOLD.items()
    ))  # fmt: skip
    paths = []
    for name, run in (("old", noisy(1.0, 0)), ("new", noisy(2.5, 1))):
        paths.append(str(tmp_path / f"{name}.json"))
        (tmp_path / f"{name}.json").write_text(json.dumps(run))
    words = ["compare", *paths, "--qrels", str(gold), "--measure", "AP", "--segments", "language", "--json"]
    assert main(words) == 0
    first = json.loads(capsys.readouterr().out)["segments"]
    expected = truerank.compare(GOLD, {"old": noisy(1.0, 0), "new": noisy(2.5, 1)}, "AP", segments=LANGUAGES)
    assert first == expected.to_dict()["segments"]
    assert main(["report", *paths, "--qrels", str(gold), "--segments", "language", "--format", "markdown", "-o",
                 str(tmp_path / "r.md")]) == 0  # fmt: skip
    assert "| en" in (tmp_path / "r.md").read_text()
    assert main([*words[:-2], "colour"]) in (1, 2)
    rows = [
        (q, GOLD[q][d], noisy(1.0, 0)[q][d], -k, LANGUAGES[q])
        for q in list(ORDERS)[:9]
        for k, d in enumerate(ORDERS[q])
    ]
    pd.DataFrame(rows, columns=["qid", "y", "good", "bad", "language"]).to_csv(data, index=False)
    capsys.readouterr()
    assert (
        main(["compare", "--data", str(data), "--scores", "good", "bad:descending", "--segments", "language", "--json"])
        == 0
    )
    (lines,) = json.loads(capsys.readouterr().out)["segments"].values()
    assert [(one["name"], one["n"]) for one in lines] == [("all queries", 9), ("de", 6), ("en", 3)]


CASES = [("q one", ["c7", "c2"], ["c2"]), ("q two", ["c3", "c9", "c1"], ["c9", "c4"])]
"""Query, retrieved chunks, relevant chunks."""

PACKAGES = {
    "ragas": lambda: [
        {"user_input": q, "retrieved_contexts": [f"text of {c}" for c in got], "retrieved_context_ids": got,
         "reference_contexts": [f"text of {c}" for c in gold], "reference_context_ids": gold, "response": "r",
         "reference": "an answer"} for q, got, gold in CASES
    ],
    "deepeval": lambda: {"testCases": [
        {"name": f"case {k}", "input": q, "actualOutput": "r", "expectedOutput": "e", "context": gold,
         "retrievalContext": got, "success": True, "metricsData": [{"name": "Contextual Recall", "score": 0.5}]}
        for k, (q, got, gold) in enumerate(CASES)
    ]},
    "deepeval's dataset": lambda: [
        {"input": q, "actual_output": None, "expected_output": "e", "context": gold, "retrieval_context": got,
         "source_file": None} for q, got, gold in CASES
    ],
    "continuous-eval": lambda: [
        {"question": q, "retrieved_context": got, "ground_truth_context": gold, "answer": "r",
         "ground_truths": ["an answer", "another"]} for q, got, gold in CASES
    ],
    "llama-index": lambda: [
        {"query": q, "expected_ids": gold, "expected_texts": None, "retrieved_ids": got,
         "retrieved_texts": [f"text of {c}" for c in got], "mode": "text",
         "metric_dict": {"mrr": {"score": 0.5, "metadata": {}}}} for q, got, gold in CASES
    ],
}  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("lines", [True, False])
def test_result_files_of_packages_for_rag(tmp_path, package, lines):
    """One file has the retrieved and the relevant chunks; the gate reads it as results and as the gold set."""
    value, path = PACKAGES[package](), tmp_path / "result.json"
    several = isinstance(value, list) and lines
    path.write_text("\n".join(map(json.dumps, value)) if several else json.dumps(value))
    assert {q: [name for name, _ in own] for q, own in read_results(path).items()} == {q: got for q, got, _ in CASES}
    assert read_gold(path).qrels.to_dict() == {q: dict.fromkeys(gold, 1) for q, _, gold in CASES}
    found = gate(path, path, path, "RR", margin=0.02, inconclusive="pass")
    assert (found.verdict, found.lines[0].new) == ("PASS", 0.5)


def test_result_files_of_ranx(tmp_path):
    gold, run = tmp_path / "qrels.json", tmp_path / "run.json"
    gold.write_text(json.dumps({q: dict.fromkeys(own, 1) for q, _, own in CASES}))
    run.write_text(json.dumps({q: {name: 9.0 - k for k, name in enumerate(got)} for q, got, _ in CASES}))
    assert gate(gold, run, run, "RR", inconclusive="pass").lines[0].new == 0.5


@pytest.fixture(scope="module")
def cranfield(collections):
    folder = collections / "cranfield"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two documents have no text
        read = list(truerank.read_documents(folder / "cran.all.1400.gz"))
    documents = {one.id: " ".join(one.text.values()) for one in read}
    queries = truerank.read_queries(folder / "cran.qry.gz")
    return documents, queries, truerank.read_judgements(folder / "cranqrel.gz")


@pytest.mark.data
@pytest.mark.parametrize("size", [300, 700, 2000])
def test_cranfield_in_chunks_of_three_sizes(tmp_path, cranfield, size):
    """Labels of documents and of spans survive; with all chunks, each document has the place of its best chunk."""
    documents, queries, qrels = cranfield
    chunks = {
        f"{name}#{k}": (name, start, text[start : start + size])
        for name, text in documents.items() for k, start in enumerate(range(0, len(text), size))
    }  # fmt: skip
    texts = (Document(name, {"text": text}, {}, {}) for name, (_, _, text) in chunks.items())
    index = truerank.build_index(texts, str(tmp_path / "index"))
    run = truerank.retrieve(index, queries[:40], "bm25", depth=len(chunks))
    measures = "AP nDCG@10 P@5 RR recall@100"
    values = truerank.evaluate(qrels, run, measures, collapse="#", topics="all")
    assert all(0 <= one <= 1 for one in values.values())
    for query, own in list(run_of(run, collapse="#").to_dict().items())[:5]:
        best = {}
        for name, score in run.to_dict()[query].items():
            best[chunks[name][0]] = max(score, best.get(chunks[name][0], score))
        assert own == best
    relevant = {
        q: [d for d, grade in own.items() if grade > 0 and d in documents] for q, own in qrels.to_dict().items()
    }
    spans = [
        {"query_id": q, "relevant": [{"doc": d, "start": 40, "end": 160} for d in own if len(documents[d]) > 300]}
        for q, own in relevant.items()
    ]  # fmt: skip
    gold = tmp_path / "gold.jsonl"
    gold.write_text("\n".join(map(json.dumps, spans)))
    known = read_gold(gold)
    assert sum(map(len, known.spans.values())) == sum(len(own["relevant"]) for own in spans)
    placed = {
        q: [
            {"doc": chunks[c][0], "start": chunks[c][1], "end": chunks[c][1] + size, "score": score}
            for c, score in own.items()
        ]
        for q, own in run.to_dict().items()
    }  # fmt: skip
    found = matched_spans(placed, known)
    for query, own in found.items():
        names = [name for name, _ in own]
        assert len(names) == len(set(names))
        retrieved = {chunks[c][0] for c in run.to_dict()[query] if chunks[c][1] == 0}
        assert {s.name for s in known.spans.get(query, ()) if s.document in retrieved} <= set(names)
    values = truerank.evaluate(known.qrels, {q: dict(own) for q, own in found.items()}, measures, topics="all")
    assert all(0 <= one <= 1 for one in values.values())


def test_a_segment_never_replaces_the_whole_set():
    labels = {query: "all queries" if k % 2 else "x" for k, query in enumerate(ORDERS)}
    runs = {name: {q: {d: float(k) for k, d in enumerate(order)} for q, order in ORDERS.items()} for name in "ab"}
    for call in (
        lambda: gate(GOLD, runs["a"], runs["b"], "RR", segments=labels),
        lambda: truerank.compare(GOLD, runs, "RR", segments=labels),
    ):
        with refused(TruerankError, argument="segments"):
            call()


def test_names_of_systems_are_escaped_beside_segments(tmp_path):
    runs = {"<img src=x>": noisy(1.0, 0), "new": noisy(2.5, 1)}
    experiment = truerank.Experiment(GOLD, runs, "AP", segments=LANGUAGES, baseline="new")
    experiment.report(tmp_path / "r.html")
    assert "<img src=x>" not in (tmp_path / "r.html").read_text()
    assert "<img src=x>" not in experiment.compare()._repr_html_()


def test_a_value_is_explained_under_the_convention_of_evaluate():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"qid": np.repeat(["q0", "q1"], 9), "y": rng.integers(0, 4, 18), "a": rng.normal(size=18)})
    value = dict(zip(["q0", "q1"], truerank.evaluate(frame, "a", "nDCG@5").per_query["nDCG@5"]))
    for query, expected in value.items():
        assert truerank.explain_measure(frame, "a", "nDCG@5", query=query).value == pytest.approx(expected)
