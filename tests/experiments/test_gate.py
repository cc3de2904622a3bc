"""The gate over files and objects: gold sets, result lists, chunks, spans, floors, looks, and the command."""

import json
from dataclasses import replace

import numpy as np
import pytest

import truerank
from support.refusals import refused
from truerank import evaluate
from truerank.cli import main
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.experiments.gate import gate
from truerank.io.gold_sets import matched_spans, read_gold
from truerank.io.results import as_scores, collapsed, read_results
from truerank.significance.history import History


def lists(n=150, depth=10, seed=0, moved=0.0):
    """A relevant document for each query, at a random place; with a probability of `moved` at another one."""
    rng, found = np.random.default_rng(seed), {}
    for q in range(n):
        places = np.random.default_rng(q).permutation(depth)
        if rng.random() < moved:
            places = rng.permutation(depth)
        found[f"q{q}"] = [f"d{q}" if place == 0 else f"x{place}" for place in places]
    return found


GOLD = {f"q{q}": {f"d{q}": 1} for q in range(150)}


def written(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)


@pytest.fixture
def files(tmp_path):
    gold = [
        {"query_id": q, "relevant": list(own), "language": "de" if int(q[1:]) % 3 else "en"} for q, own in GOLD.items()
    ]
    old = [{"query_id": q, "results": own} for q, own in lists().items()]
    unsure = [{"query_id": q, "results": own} for q, own in lists(moved=0.5).items()]
    return {
        "gold": written(tmp_path / "gold.jsonl", gold),
        "old": written(tmp_path / "old.jsonl", old),
        "unsure": written(tmp_path / "unsure.jsonl", unsure),
        "folder": tmp_path,
    }


def run(capsys, *words):
    code = main(["gate", *map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("new", "more", "code", "first"),
    [
        ("old", (), 0, "PASS"),
        ("unsure", ("--inconclusive", "pass"), 0, "INCONCLUSIVE"),
        ("unsure", ("--inconclusive", "fail"), 1, "INCONCLUSIVE"),
        ("old", ("--at-least", "RR=0.9"), 1, "FAIL"),
        ("old", ("--at-least", "RR=0.2", "--at-most", "no-relevant@10=0.1"), 0, "PASS"),
        ("old", ("--margin", "nan"), 2, ""),
        ("old", ("--segments", "colour"), 2, ""),
        ("old", ("--at-most", "loss=0.1"), 2, ""),
        ("old", ("--at-least", "RR"), 2, ""),
    ],
)
def test_exit_codes(files, capsys, new, more, code, first):
    words = (files[new], "--baseline", files["old"], "--gold", files["gold"], "--measure", "RR", "--margin", "0.05")
    found = run(capsys, *words, *more)
    assert found[0] == code
    assert found[1].startswith(first)
    assert ("truerank gate: " in found[2]) == (code == 2)


def test_the_json_is_the_result(files, capsys):
    words = (
        files["old"],
        "--baseline",
        files["old"],
        "--gold",
        files["gold"],
        "--json",
        "--summary",
        files["folder"] / "s.md",
    )
    code, out, _ = run(capsys, *words, "--segments", "language")
    told = json.loads(out)
    own = gate(files["gold"], files["old"], files["old"], segments="language")
    assert told["notes"][:-1] == own.notes[:-1]
    assert "--looks N --history FILE" in told["notes"][-1]  # the command names its options
    own = replace(own, notes=told["notes"])
    assert (code, told["verdict"], told["schema"], told["version"]) == (0, "PASS", "gate/1", truerank.__version__)
    assert told == json.loads(json.dumps(own.to_dict()))
    assert [line["name"] for line in told["lines"]] == ["all queries", "de", "en"]
    assert (files["folder"] / "s.md").read_text(encoding="utf-8") == own.to_markdown()


def test_looks_are_counted_in_the_file(files, capsys):
    history = files["folder"] / "looks.json"
    words = ("--baseline", files["old"], "--gold", files["gold"], "--history", history, "--looks", "2", "--json")
    looks = []
    for new in ("old", "old", "unsure", "unsure"):
        looks.append(json.loads(run(capsys, files[new], *words, "--inconclusive", "pass")[1])["look"])
    assert looks == [1, 1, 2, 2]  # results that were seen are no new look
    third = written(
        files["folder"] / "third.jsonl", [{"query_id": q, "results": own} for q, own in lists(moved=0.4).items()]
    )
    code, out, _ = run(capsys, third, *words)
    assert (code, json.loads(out)["look"]) == (3, 3)
    assert "new gold queries" in json.loads(out)["summary"]


def test_a_margin_that_nothing_can_pass_is_refused_with_the_least_one():
    with refused(InvalidInputError, argument="margin"):
        gate(GOLD, lists(moved=0.1), lists(), "RR", margin=1e-4)
    assert gate(GOLD, lists(moved=0.2), lists(), "RR", margin=1e-4, inconclusive="pass").verdict == "INCONCLUSIVE"


def test_queries_without_a_result_count_0_and_are_counted():
    few = {q: own for q, own in lists().items() if q != "q7"}
    found = gate(GOLD, few | {"other": ["a"]}, lists(), "RR", margin=0.05)
    assert (found.about["measure"], found.notes[0]) == ("RR", "RR, convention trec")  # as it was asked for
    expected = evaluate(GOLD, as_scores(read_results(few)), "RR", topics="all")["RR"]
    assert found.lines[0].new == pytest.approx(expected)
    assert sum("without a result" in remark for remark in found.notes) == 1
    assert sum("not in the gold set" in remark for remark in found.notes) == 1
    with pytest.raises(InvalidInputError):
        gate(GOLD, {"other": ["a"]}, lists())


def test_losses_of_queries_with_an_answer():
    new = {q: [] if int(q[1:]) < 30 else own for q, own in lists().items()}
    new["q40"] = ["x1", "x2"]
    found = gate(
        GOLD, new, lists(), "RR", inconclusive="pass", margin=0.5, at_most={"no-relevant": 0.1, "unanswered": 0.05}
    )
    answered, unanswered = found.lines[1:3]
    assert (answered.n, answered.new * answered.n, answered.verdict) == (120, pytest.approx(1), "PASS")
    assert (unanswered.n, unanswered.new, unanswered.verdict) == (150, 0.2, "FAIL")


def test_the_same_verdict_from_every_form_of_results(tmp_path):
    new = lists(moved=0.2)
    scored = {q: {d: float(len(own) - k) for k, d in enumerate(own)} for q, own in new.items()}
    (tmp_path / "ranx.json").write_text(json.dumps(scored))
    (tmp_path / "lists.json").write_text(json.dumps(new))
    hits = [
        {"question": q, "hits": [{"doc_id": d, "similarity": s} for d, s in own.items()]} for q, own in scored.items()
    ]
    written(tmp_path / "hits.jsonl", hits)
    rows = [f"{q} Q0 {d} {k} {s} tag" for q, own in scored.items() for k, (d, s) in enumerate(own.items(), 1)]
    (tmp_path / "new.run").write_text("\n".join(rows) + "\n")
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 {d} 1\n" for q, own in GOLD.items() for d in own))
    expected = gate(GOLD, new, lists(), "RR", margin=0.05).to_dict()
    for source in (
        scored,
        *map(str, (tmp_path / "ranx.json", tmp_path / "lists.json", tmp_path / "hits.jsonl", tmp_path / "new.run")),
    ):
        for gold in (GOLD, str(tmp_path / "qrels.txt")):
            found = gate(gold, source, lists(), "RR", margin=0.05).to_dict()
            assert {k: v for k, v in found.items() if k != "digests"} == {
                k: v for k, v in expected.items() if k != "digests"
            }


@pytest.mark.parametrize("name", ["expected_ids", "ground_truth", "reference_contexts_ids", "positive_ids", "relevant"])
def test_names_of_other_tools(tmp_path, name):
    path = written(tmp_path / "gold.jsonl", [{"question": "why?", name: ["a", "b"], "topic_area": "x"}])
    assert read_gold(path).qrels.to_dict() == {"why?": {"a": 1, "b": 1}}
    assert read_gold(path).segments == {"topic_area": {"why?": "x"}}


@pytest.mark.parametrize(
    "line", ['{"query_id": "1"}', '{"relevant": ["a"]}', "[1", '{"query_id": "0", "relevant": ["a"]}', '"text"']
)
def test_damaged_gold_sets_name_the_line(tmp_path, line):
    path = tmp_path / "gold.jsonl"
    path.write_text(f'{{"query_id": "0", "relevant": ["a"]}}\n{line}\n')
    with refused(DataFileError, line=2):
        read_gold(str(path))


@pytest.mark.parametrize(
    "line", ['{"query_id": "1"}', '{"results": ["a"]}', "{", '{"query_id": "1", "text": "b"}', "3"]
)
def test_damaged_results_name_the_line(tmp_path, line):
    path = tmp_path / "new.jsonl"
    path.write_text(f'{{"query_id": "0", "results": ["a"]}}\n{line}\n')
    with refused(DataFileError, line=2):
        read_results(str(path))


@pytest.mark.parametrize("results", [[{"id": "a", "score": "high"}], [{"id": "a", "score": 1}, {"id": "b"}]])
def test_results_that_cannot_be_ordered(results):
    with pytest.raises(InvalidInputError):
        read_results({"q": results})


def test_repeated_results_are_refused_unless_chunks_become_documents():
    new = {q: [f"{d}" for d in own for _ in range(2)] for q, own in lists().items()}
    with refused(InvalidInputError, code="repeated-result"):
        gate(GOLD, new, lists(), "RR")
    assert gate(GOLD, new, lists(), "RR", collapse="#").verdict == "PASS"


@pytest.mark.parametrize("size", [40, 90, 400])
def test_chunks_of_three_sizes_have_the_values_of_their_documents(size):
    """All chunks of a document are retrieved, in any order of chunks whose best are in the order of the documents."""
    rng, lengths = np.random.default_rng(size), {f"d{k}": 200 + 37 * k for k in range(12)}
    gold, documents, chunks = {}, {}, {}
    for q in range(20):
        order = [f"d{k}" for k in rng.permutation(12)]
        gold[f"q{q}"] = {name: int(rng.integers(0, 3)) for name in lengths}
        documents[f"q{q}"] = order
        own = [[f"{name}#{k}" for k in range(-(-lengths[name] // size))] for name in order]
        first = [part.pop(int(rng.integers(len(part)))) for part in own]
        rest = [name for part in own for name in part]
        chunks[f"q{q}"] = first + [rest[k] for k in rng.permutation(len(rest))]
    found = collapsed(read_results(chunks), "#")
    assert {q: [name for name, _ in own] for q, own in found.items()} == documents
    values = evaluate(gold, as_scores(found), "nDCG@5 AP P@3 RR")
    assert dict(values) == dict(evaluate(gold, as_scores(read_results(documents)), "nDCG@5 AP P@3 RR"))
    assert all(0 <= value <= 1 for value in values.values())


@pytest.mark.parametrize("size", [50, 120, 300])
def test_labels_of_spans_survive_chunks_of_other_sizes(tmp_path, size):
    spans = [{"doc": "a", "start": 100, "end": 160}, {"doc": "b", "start": 10, "end": 60, "grade": 2}]
    path = written(
        tmp_path / "gold.jsonl", [{"query": "why?", "relevant": spans}, {"query": "how?", "relevant": ["c"]}]
    )
    chunks = [{"doc_id": d, "start": k * size, "end": (k + 1) * size} for d in "ab" for k in range(600 // size)]
    new = written(tmp_path / "new.jsonl", [{"query": "why?", "hits": chunks}])
    gold = read_gold(path)
    assert gold.qrels.to_dict() == {"why?": {"a:100-160": 1, "b:10-60": 2}, "how?": {"c": 1}}
    found = matched_spans(new, gold)
    assert {"a:100-160", "b:10-60"} <= {name for name, _ in found["why?"]}  # a chunk has half of each, at every size
    values = evaluate(gold.qrels, as_scores(found), "AP P@1 RR nDCG@10")
    assert all(0 <= value <= 1 for value in values.values())
    assert values["AP"] > 0
    assert gate(path, new, new, "RR", inconclusive="pass").verdict == "PASS"


def test_gold_sets_of_ids_and_spans(tmp_path):
    """The results of each query are read as its labels are, from a file and from a dict."""
    gold = written(
        tmp_path / "gold.jsonl",
        [
            {"query_id": "ids", "relevant": ["d3"]},
            {"query_id": "grades", "relevant": {"d7": 2, "d2": 1}},
            {"query_id": "documents", "relevant": ["guide.md"]},
            {"query_id": "spans", "relevant": [{"doc": "guide.md", "start": 120, "end": 260}]},
        ],
    )
    chunks = [{"id": f"c{k}", "doc": "guide.md", "start": 400 * k, "end": 400 * k + 400} for k in range(2)]
    lists = {
        "ids": ["d3", "d1"],
        "grades": [{"id": "d2", "score": 0.4}, {"id": "d7", "score": 0.8}],
        "documents": chunks,
        "spans": chunks,
        "other": ["d1"],
    }
    path = written(tmp_path / "new.jsonl", [{"query_id": query, "results": own} for query, own in lists.items()])
    for source in (path, lists):
        found = gate(gold, source, source, "nDCG@10", inconclusive="pass", collapse="#")
        assert "1.0000 against 1.0000 with 4 queries" in found.reason
        with refused(InvalidInputError, code="repeated-result"):
            gate(gold, source, source, "nDCG@10", inconclusive="pass")


@pytest.mark.parametrize(
    ("relevant", "retrieved"), [("relevant", "results"), ("expected_ids", "hits"), ("gold", "docs")]
)
def test_one_file_has_the_gold_set_and_the_results(tmp_path, relevant, retrieved):
    """Results with scores are not relevant, and relevant documents or spans are not retrieved."""
    span, other = {"doc": "a", "start": 0, "end": 60, "score": 2}, {"doc": "a", "start": 90, "end": 99, "score": 0.9}
    lines = [
        {"query_id": "missed", relevant: ["d9"], retrieved: [{"id": "d1", "score": 0.9}, {"id": "d2", "score": 1}]},
        {
            "query_id": "second",
            relevant: {"d3": 2},
            retrieved: [{"id": "d1", "score": 0.9}, {"id": "d3", "score": 0.8}],
        },
        {"query_id": "graded", relevant: [{"id": "d4", "score": 2}], retrieved: [{"id": "d5", "score": 1}]},
    ]
    for rows, reciprocal in ((lines, 0.5), ([*lines, {"query_id": "s", relevant: [span], retrieved: [other]}], 0.5)):
        path = written(tmp_path / "both.jsonl", rows)
        found = gate(path, path, path, "RR", inconclusive="pass")
        assert f"{reciprocal / len(rows):.4f} against" in found.reason
        assert read_gold(path).qrels.n_rows == len(rows)


def test_results_are_no_judgements(tmp_path):
    path = written(
        tmp_path / "new.jsonl", [{"query_id": "q", "results": [{"id": "a", "score": 1}, {"id": "b", "score": 0.5}]}]
    )
    with refused(DataFileError, code="no-judgements"):
        truerank.read_qrels(path)


def test_labels_of_a_query_are_ids_or_spans(tmp_path):
    span = {"doc": "a", "start": 0, "end": 60}
    for other in ("d3", {"doc": "b", "grade": 2}):
        path = written(tmp_path / "gold.jsonl", [{"query_id": "q", "relevant": [span, other]}])
        with refused(DataFileError, code="no-span"):
            read_gold(path)


def test_results_without_places_in_the_text_are_refused_where_labels_are_spans(tmp_path):
    gold = written(tmp_path / "gold.jsonl", [{"query_id": "q", "relevant": [{"doc": "a", "start": 0, "end": 60}]}])
    for results in (["a", "b"], [{"id": "b", "score": 0.9}, {"doc": "a", "start": 0, "end": 90, "score": 0.8}]):
        new = written(tmp_path / "new.jsonl", [{"query_id": "q", "results": results}])
        with refused(InvalidInputError, code="no-span"):
            gate(gold, new, new, "RR", inconclusive="pass")


def test_history_in_python():
    history = History()
    assert [
        gate(GOLD, lists(moved=m), lists(), "RR", margin=0.1, looks=3, history=history).look for m in (0, 0.1, 0.1)
    ] == [1, 2, 2]


def test_an_experiment_has_the_gate_of_its_systems():
    new, old = ({q: dict(own) for q, own in read_results(lists(moved=m)).items()} for m in (0.5, 0.0))
    segments = {q: "de" if int(q[1:]) % 3 else "en" for q in GOLD}
    experiment = truerank.Experiment(GOLD, {"old": old, "new": new}, "RR", segments=segments)
    found = experiment.gate(0.05, at_least={"RR": 0.2})
    expected = gate(GOLD, new, old, "RR", margin=0.05, at_least={"RR": 0.2}, segments=segments)
    assert (found.lines, found.verdict, found.reason) == (expected.lines, expected.verdict, expected.reason)
    assert (found.about["new"], found.about["baseline"]) == ("new", "old")
    with pytest.raises(InvalidInputError):
        truerank.Experiment(GOLD, {"a": old, "b": old, "c": new}, "RR").gate()


def test_a_gate_gives_no_verdict_on_training_queries():
    rng = np.random.default_rng(5)
    X, y, qid = rng.normal(size=(600, 3)), rng.integers(0, 3, 600), np.repeat(np.arange(60), 10)
    model = truerank.RidgeRanker().fit(X, y, qid=qid)
    systems = {"old": X[:, 0], "new": model.predict(X)}
    assert truerank.Experiment(y, systems, "AP", qid=qid, baseline="old").gate(0.2).verdict == "PASS"
    data = truerank.RankingData(X, y, qid=qid)
    kept = truerank.Experiment(data, systems | {"new": model}, "AP", baseline="old", training_queries="keep")
    assert (kept.gate(0.2).verdict, "trained" in kept.gate(0.2).reason) == ("INCONCLUSIVE", True)


def test_a_gate_says_where_fewer_documents_are_judged():
    gold = {str(q): {"a": 1, "b": 0} for q in range(150)}
    old = {q: ["a", "b"] for q in gold}
    new = {q: ["c", "a"] if int(q) % 3 else ["a", "b"] for q in gold}
    found = gate(gold, new, old, margin=0.05)
    assert any(note.startswith("66.7 % of the documents of new are judged, and 100 %") for note in found.notes)
    assert not any("are judged" in note for note in gate(gold, old, old).notes)
