"""Features of text against slow versions; what they need; models that rank raw text."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import shlex
from collections import Counter

import numpy as np
import pytest

from reference.retrieval import FORMULAS, Collection, rocchio, windows, xu_li
from support.edited_models import unsealed
from support.refusals import refused
from truerank import (
    AdaRank,
    MeasureSVM,
    RidgeRanker,
    ScoreBinning,
    TextFeatures,
    TextRanker,
    evaluate,
    load_model,
    save_model,
)
from truerank.cli import main
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.io.documents import Document, read_judgements
from truerank.io.letor.read import read_letor
from truerank.io.trec import Run, read_run
from truerank.measures import parse_measure
from truerank.significance import compare_values
from truerank.text import feedback, latent
from truerank.text.features import FAMILIES, PAPERS, proximity
from truerank.text.index import Index, build_index
from truerank.text.latent import add_documents, cosines, document_vectors, query_vector
from truerank.text.retrieval import retrieve
from truerank.text.retrieval_functions import BM25, TFIDF
from truerank.text.tuning import values_of_functions

# Words that the stemmer leaves alone and that are no stop words, so that the plain reference serves all analysers.
WORDS = [f"w{number}" for number in range(60)]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    draw = random.Random(5)
    weights = [1 / (1 + k) for k in range(len(WORDS))]
    texts = [" ".join(draw.choices(WORDS, weights, k=draw.randrange(3, 40))) for _ in range(80)]
    queries = {f"q{k}": " ".join(draw.choices(WORDS, k=draw.randrange(2, 6))) for k in range(15)}
    documents = [
        Document(f"d{k}", {"text": text}, {"age": float(k)} if k % 3 else {}, {"v": [math.cos(k), math.sin(k)]})
        for k, text in enumerate(texts)
    ]
    index = build_index(documents, tmp_path_factory.mktemp("world") / "index")
    return texts, queries, index


def asked(queries):
    return [Document(name, {"text": text}, {}, {"v": [1.0, 0.0]}) for name, text in queries.items()]


@pytest.fixture(scope="module")
def features(world):
    _, queries, index = world
    extractor = TextFeatures(scaled=False).fit(index)
    return extractor.transform(asked(queries), index)


def column(data, name):
    return data.X[:, data.feature_names.index(name)]


def rows_of(data):
    for i, name in enumerate(data.query_ids.tolist()):
        for row in range(data.offsets[i], data.offsets[i + 1]):
            yield row, name, int(data.doc_ids[row][1:])


def test_functions_and_xu_and_li_by_their_formulas(world, features):
    texts, queries, _ = world
    collection = Collection(texts)
    for row, name, d in rows_of(features):
        query = Counter(word for word in queries[name].split() if word in collection.df)
        if not any(word in collection.documents[d] for word in query):
            continue
        for function, formula in FORMULAS.items():
            wanted = formula(collection, query, d)
            assert column(features, f"{function}.porter.all")[row] == pytest.approx(wanted, rel=1e-5, abs=1e-6)
        ours = features.X[row, [features.feature_names.index(f"xu-li-{n}.all") for n in (
            "tf", "icf", "idf", "tf-share", "tf-share-idf", "tf-lift", "bm25")]]  # fmt: skip
        assert ours == pytest.approx(xu_li(collection, query, d), rel=1e-5, abs=1e-6)


def test_a_language_model_scores_candidates_without_the_words_as_tf_0(world, features):
    texts, queries, _ = world
    collection = Collection(texts)
    n = 0
    for row, name, d in rows_of(features):
        query = Counter(word for word in queries[name].split() if word in collection.df)
        if not any(word in collection.documents[d] for word in query):
            n += 1
            for function in ("dirichlet", "jelinek-mercer"):
                wanted = FORMULAS[function](collection, query, d)
                assert column(features, f"{function}.plain.all")[row] == pytest.approx(wanted, rel=1e-5)
            assert column(features, "bm25.plain.all")[row] == 0
            assert not features.X[row, [k for k, s in enumerate(features.feature_names) if s.startswith("xu-li")]].any()
    assert n > 20


def test_proximity_by_looking_at_every_pair_of_places(world):
    texts, queries, index = world
    collection = Collection(texts)
    for text in queries.values():
        words = [word for word in text.split() if word in collection.df]
        ours = proximity(index, index.terms(text, "plain"), np.arange(len(texts)), "plain")
        for d, body in enumerate(texts):
            places = body.split()
            wanted = [0.0, 0.0]
            for (s, t), counts in windows(words, places).items():
                weight = sum(math.log(1 + (80 - collection.df[w] + 0.5) / (collection.df[w] + 0.5)) for w in (s, t)) / 2
                for kind, count in enumerate(counts):
                    wanted[kind] += weight * count / (count + 1)
            first = next((place for place, word in enumerate(places) if word in words), None)
            assert ours[d] == pytest.approx([*wanted, 0.0 if first is None else 1 / (1 + first)])


def test_rocchio_by_its_formula(world):
    texts, queries, index = world
    collection = Collection(texts)
    query = Counter(word for word in queries["q0"].split() if word in collection.df)
    wanted = rocchio(collection, query, [3, 7, 11])
    weights = {index.terms(word, "porter")[0]: float(count) for word, count in query.items()}
    ours = feedback.rocchio(index, weights, np.array([3, 7, 11]), "porter")
    assert ours == pytest.approx(
        {index.terms(word, "porter")[0]: weight for word, weight in wanted.items() if weight > 0}
    )
    assert math.fsum(ours.values()) == pytest.approx(1.0)


def test_a_relevance_model_by_hand(tmp_path):
    documents = [Document("a", {"text": "x x y"}, {}, {}), Document("b", {"text": "x z"}, {}, {})]
    index = build_index(documents, tmp_path / "i")
    x, y, z = (index.terms(word, "plain")[0] for word in "xyz")
    ours = feedback.relevance_model(index, {x: 2.0}, np.array([0, 1]), np.log([0.3, 0.1]), "plain")
    e = {x: 0.3 * 2 / 3 + 0.1 / 2, y: 0.3 / 3, z: 0.1 / 2}
    total = sum(e.values())
    assert ours == pytest.approx({x: 0.5 + 0.5 * e[x] / total, y: 0.5 * e[y] / total, z: 0.5 * e[z] / total})


def test_latent_cosines_are_those_of_a_full_decomposition(world):
    texts, _, index = world
    vocabulary = sorted({word for text in texts for word in text.split()})
    df = np.array([sum(word in text.split() for text in texts) for word in vocabulary])
    counts = np.array([[text.split().count(word) for word in vocabulary] for text in texts], dtype=float)
    matrix = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * np.log(80 / df)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    query = np.zeros(len(vocabulary))
    weights = {}
    for word, count in (("w3", 2.0), ("w9", 1.0), ("w20", 1.0)):
        query[vocabulary.index(word)] = count * math.log(80 / df[vocabulary.index(word)])
        weights[index.terms(word, "porter-stop")[0]] = count
    U, S, V = np.linalg.svd(matrix, full_matrices=False)
    rows = document_vectors(index, "porter-stop")
    k = 20
    wanted = (U[:, :k] * S[:k]) @ (V[:k] @ query)
    wanted /= np.linalg.norm(U[:, :k] * S[:k], axis=1) * np.linalg.norm(V[:k] @ query)
    ours = cosines(rows[:, :k], query_vector(index, weights, "porter-stop")[:k])
    assert ours == pytest.approx(wanted, abs=1e-3)  # the solver is randomised, the coordinates are float32


def test_the_latent_space_is_made_once(tmp_path, monkeypatch):
    index = build_index((Document(w, {"text": f"{w} w0 w1"}, {}, {}) for w in WORDS), tmp_path / "i")
    made, real = [], latent._decomposed
    monkeypatch.setattr(latent, "_decomposed", lambda *given: made.append(given) or real(*given))
    first = query_vector(index, {0: 1.0}, "porter")
    document_vectors(index, "porter")
    assert query_vector(Index(index.path), {0: 1.0}, "porter").tolist() == first.tolist()
    assert len(made) == 1


def test_numbers_vectors_lengths_and_coverage(world, features):
    texts, queries, _ = world
    collection = Collection(texts)
    for row, name, d in rows_of(features):
        words = {word for word in queries[name].split() if word in collection.df}
        assert column(features, "vector.v")[row] == pytest.approx(math.cos(d), abs=1e-6)
        assert column(features, "length.all")[row] == pytest.approx(math.log1p(collection.length[d]))
        share = sum(word in collection.documents[d] for word in words) / len(words)
        assert column(features, "coverage.all")[row] == pytest.approx(share)
        if d % 3:
            assert column(features, "number.age")[row] == d
    lowest = [
        np.unique(column(features, "number.age")[a:b][[int(x[1:]) % 3 == 0 for x in features.doc_ids[a:b]]])
        for a, b in zip(features.offsets, features.offsets[1:])
    ]
    assert all(len(values) <= 1 for values in lowest)


def test_values_do_not_depend_on_threads_or_on_other_queries(world, features):
    _, queries, index = world
    again = TextFeatures(scaled=False, n_jobs=2).fit(index).transform(asked(queries), index)
    assert again.X.tobytes() == features.X.tobytes()
    one = TextFeatures(scaled=False).fit(index).transform(asked(queries)[4:5], index)
    start, stop = features.offsets[4:6]
    assert one.X.tobytes() == features.X[start:stop].tobytes()


def test_depth_bounds_the_candidates_and_scaling_doubles_the_columns(world):
    _, queries, index = world
    extractor = TextFeatures(PAPERS, depth=3).fit(index)
    data = extractor.transform(queries, index)
    assert np.diff(data.offsets).max() <= 45
    p = data.n_features // 2
    assert data.feature_names[p:] == [f"{name}.scaled" for name in data.feature_names[:p]]
    assert data.X[:, p:].min() == 0
    assert data.X[:, p:].max() == 1


def test_what_does_not_fit_is_refused(world, tmp_path):
    _, queries, index = world
    with refused(InvalidInputError, argument="families"):
        TextFeatures(["bm25"]).fit(index)
    with refused(InvalidInputError, argument="query"):
        TextFeatures(["vectors"]).fit(index).transform(queries, index)
    with refused(InvalidInputError, code="no-document"):
        TextFeatures(["coverage"]).fit(index).transform({"1": "nothing"}, index)
    plain = build_index([Document("a", {"text": "x"}, {}, {})], tmp_path / "plain", analysers=["plain"])
    with refused(InvalidInputError, code="analysers"):
        TextFeatures().fit(plain)
    other = build_index([Document("a", {"title": "x", "text": "y"}, {}, {})], tmp_path / "other")
    with refused(InvalidInputError, code="other-index"):
        TextFeatures().fit(index).transform(asked(queries), other)


def test_judged_documents_that_no_function_finds_count_as_they_do_for_a_run(world, tmp_path):
    _, queries, index = world
    data = TextFeatures(["functions"], scaled=False, depth=2).fit(index).transform(queries, index, judged(world))
    (tmp_path / "qrels").write_text(judgements_of(world))
    scores = column(data, "bm25.porter-stop.all").astype(np.float64)
    run = Run(data.query_ids, data.offsets, data.doc_ids, scores)
    wanted = evaluate(tmp_path / "qrels", run, ["AP", "Judged@5"], convention="trec")
    relevant = sum(line.endswith(" 1") for line in judgements_of(world).split("\n"))
    assert (data.y > 0).sum() + (data.missing_grades > 0).sum() == relevant
    for measure in ("AP", "Judged@5"):
        ours = parse_measure(measure, convention="trec").per_query(data.judgements(), scores)
        assert dict(zip(data.query_ids.tolist(), ours)) == by_query(wanted, measure)
    kept = TextRanker(MeasureSVM("AP"), binning=ScoreBinning(n_thresholds=5)).fit_rows(data)
    assert kept.predict(data).shape == (data.n_rows,)


def test_base_functions_are_measured_as_their_runs_are(world):
    """Among them scores that tie."""
    _, queries, index = world
    functions = [BM25(), BM25(k1=0.0), TFIDF(k1=0.0)]
    values = values_of_functions(index, asked(queries), judged(world), functions)
    for function, row in zip(functions, values):
        wanted = evaluate(judged(world), retrieve(index, queries, function), ["AP"], convention="trec")
        assert dict(zip(queries, row)) == by_query(wanted, "AP")


def test_numbers_of_documents_that_no_float32_holds(tmp_path):
    values = (float("nan"), 1e300, -5.0)
    documents = [Document(f"d{i}", {"text": "heat"}, {"n": value}, {}) for i, value in enumerate(values)]
    index = build_index(documents, tmp_path / "index")
    X = TextFeatures(["numbers"]).fit(index).transform({"q": "heat"}, index).X
    assert X[:, 1].tolist() == [0.0, 1.0, 0.0]


def test_a_query_in_which_a_base_function_finds_nothing_counts_0(tmp_path):
    documents = [
        Document(f"d{i}", {"text": text}, {}, {}) for i, text in enumerate(("to be or not to be", "heat", "flow"))
    ]
    index = build_index(documents, tmp_path / "index")
    qrels = read_judgements(io.BytesIO(b"stop 0 d0 1\nheat 0 d1 1\n"))
    queries = asked({"stop": "to be", "heat": "heat"})
    functions = [BM25("porter-stop"), BM25("plain")]
    values = values_of_functions(index, queries, qrels, functions)
    assert values.tolist() == [[0.0, 1.0], [1.0, 1.0]]


def by_query(result, measure):
    return dict(zip(result.query_ids.tolist(), result.per_query[measure]))


def judgements_of(world):
    texts, queries, _ = world
    lines = [
        f"{name} 0 d{d} {int(query.split()[0] in text.split())}"
        for name, query in queries.items()
        for d, text in enumerate(texts)
    ]
    return "\n".join(lines)


def judged(world):
    return read_judgements(io.BytesIO(judgements_of(world).encode()))


@pytest.mark.parametrize("binning", [None, ScoreBinning(n_thresholds=5), ScoreBinning(n_thresholds=5, output="binned")])
def test_a_saved_ranker_ranks_raw_text(world, tmp_path, binning):
    _, queries, index = world
    families = [family for family in FAMILIES if family != "vectors"]
    ranker = AdaRank(measure="AP") if binning is None else MeasureSVM("AP", C=100.0, tol=1e-2)
    model = TextRanker(ranker, TextFeatures(families), binning).fit(queries, index, judged(world))
    save_model(model, tmp_path / "model.json")
    before, after = (m.rank({"new": "w3 w9"}, index) for m in (model, load_model(tmp_path / "model.json")))
    assert before.scores.tobytes() == after.scores.tobytes()
    assert before.doc_ids.tolist() == after.doc_ids.tolist()
    assert before.scores.tolist() == sorted(before.scores.tolist(), reverse=True)
    with refused(InvalidInputError, code="no-calibrator"):
        model.predict_proba(before.scores)
    document = unsealed(json.loads((tmp_path / "model.json").read_text()))
    document["model"]["fitted"]["features_"]["fitted"]["feature_names_"].pop()
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="n_features_in_"):
        load_model(tmp_path / "model.json")


@pytest.fixture
def collection(world, tmp_path):
    texts, queries, _ = world
    folder = tmp_path
    lines = [json.dumps({"id": f"d,{k}", "text": text}) for k, text in enumerate(texts)]
    (folder / "d.jsonl").write_text("\n".join(lines))
    (folder / "q.jsonl").write_text("\n".join(json.dumps({"id": k, "text": v}) for k, v in queries.items()))
    rows = [f"{name} 0 d,{d} {int(d % 4 == 0)}" for name in queries for d in range(80)]
    (folder / "qrels").write_text("\n".join(rows))
    return folder


def test_the_pipeline_ends_with_a_model_that_ranks(collection, capsys):
    words = ["text", "pipeline", "--documents", str(collection / "d.jsonl"), "--queries", str(collection / "q.jsonl")]
    words += ["--qrels", str(collection / "qrels"), "--ranker", "adarank", "--out", str(collection / "out")]
    words += ["--families", "functions", "coverage", "--json"]
    assert main(words) == 0
    summary = json.loads(capsys.readouterr().out)
    assert set(summary["MAP"]) == {"ranker", "bm25", "best-base"}
    values = [each["ranker"] for each in summary["per_query"].values()]
    assert summary["MAP"]["ranker"] == pytest.approx(np.mean(values))
    assert (collection / "out" / "summary.txt").exists()
    with open(collection / "out" / "probabilities.csv", newline="") as stream:
        header, *rows = csv.reader(stream)
    assert header == ["query", "document", "fold", "score", "probability"]
    assert {row[1] for row in rows} <= {f"d,{k}" for k in range(80)}
    model = (collection / "out" / "model.json").read_bytes()
    assert main(words) == 1  # refused before any work
    assert (
        "model.json, probabilities.csv and 2 more. Choose another folder"
        in json.loads(capsys.readouterr().out)["error"]
    )
    assert (collection / "out" / "model.json").read_bytes() == model
    run = collection / "new.run"
    words = [
        "predict",
        "--format",
        "run",
        str(collection / "out" / "model.json"),
        "--index",
        str(collection / "out" / "index"),
    ]
    assert main([*words, "--queries", str(collection / "q.jsonl"), "-o", str(run), "--depth", "7"]) == 0
    assert np.diff(read_run(run).offsets).tolist() == [7] * 15
    assert main(words) == 2
    assert "give --index DIR and --queries FILE" in capsys.readouterr().err
    assert main([*words, "--queries", str(collection / "q.jsonl"), "--query-column", "query"]) == 2
    assert "--query-column applies only to a data file" in capsys.readouterr().err


def test_the_reported_log_loss_is_of_rankers_that_had_not_seen_the_test_fold(collection, monkeypatch, capsys):
    calls, fit = [], RidgeRanker.fit

    def recorded(self, data, *args, **more):
        calls.append(set(data.query_ids.tolist()))
        return fit(self, data, *args, **more)

    monkeypatch.setattr(RidgeRanker, "fit", recorded)
    words = ["text", "pipeline", "--documents", str(collection / "d.jsonl"), "--queries", str(collection / "q.jsonl")]
    words += ["--qrels", str(collection / "qrels"), "--ranker", "ridge", "--families", "coverage", "--cv", "3"]
    assert main([*words, "--out", str(collection / "nested"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    every = {f"q{k}" for k in range(15)}
    tests, whole, inner = [every - train for train in calls[:3]], calls[3], calls[4:]
    assert whole == every == set.union(*tests)
    assert inner == [every - test - other for test in tests for other in tests if other is not test]
    verdict = summary["verdict"]
    assert (verdict["serve"] is None) == (verdict["outcome"] == "better")


def test_the_pipeline_says_that_the_ranker_lost_and_keeps_queries_that_find_nothing(collection, capsys):
    # A ranker by length alone; two of the queries have relevant documents and find none.
    with open(collection / "q.jsonl", "a") as stream:
        stream.write('\n{"id": "odd", "text": "xyzzy"}\n{"id": "odder", "text": "plugh"}')
    texts = [json.loads(line)["text"].split() for line in (collection / "d.jsonl").read_text().splitlines()]
    rows = ["odd 0 d,1 1", "odder 0 d,2 1"]
    for line in (collection / "q.jsonl").read_text().splitlines()[:-2]:
        words = set(json.loads(line)["text"].split())
        best = sorted(range(80), key=lambda k: -len(words & set(texts[k])) / len(texts[k]))
        rows += [f"{json.loads(line)['id']} 0 d,{k} {int(k in best[:8])}" for k in range(80)]
    (collection / "qrels").write_text("\n".join(rows))
    words = ["text", "pipeline", "--documents", str(collection / "d.jsonl"), "--queries", str(collection / "q.jsonl")]
    words += ["--qrels", str(collection / "qrels"), "--ranker", "single-feature", "--set", "feature=length.all"]
    assert main([*words, "--families", "lengths", "--out", str(collection / "lost"), "--json"]) == 0
    printed = capsys.readouterr()
    summary = json.loads(printed.out)
    assert (
        "these queries with relevant documents find no document, and count 0 in each ranking: odd, odder" in printed.err
    )
    assert (summary["queries"], summary["queries_without_candidates"]) == (17, ["odd", "odder"])
    assert summary["per_query"]["odd"] == {"ranker": 0, "bm25": 0, "best-base": 0}
    each = np.array([[row["ranker"], row["bm25"]] for row in summary["per_query"].values()])
    assert summary["MAP"]["ranker"] == pytest.approx(each[:, 0].mean())
    verdict = summary["verdict"]
    each = {name: [row[name] for row in summary["per_query"].values()] for name in ("ranker", "bm25", "best-base")}
    compared = compare_values({name: np.array(own) for name, own in each.items()}, baseline="ranker")
    expected = compared.pairs[0]
    assert verdict["outcome"] == "worse"
    assert (verdict["difference"], verdict["p"], verdict["queries"]) == (-expected.difference, expected.p, 17)
    assert verdict["p_adjusted"] == expected.p_adjusted >= expected.p
    assert [pair["p_adjusted"] for pair in summary["comparison"]["pairs"]] == [one.p_adjusted for one in compared.pairs]
    text = (collection / "lost" / "summary.txt").read_text()
    assert "verdict: the ranker is worse than BM25: -" in text
    assert f"to serve BM25 (parameters from all queries): {verdict['serve']}\n" in text
    *command, run = shlex.split(verdict["serve"])
    assert main([*command[1:], str(collection / run)]) == 0
    assert read_run(collection / "bm25.run").query_ids.tolist()[0] == "q0"
    # Probabilities that are worse than one constant are not saved, and that is said.
    calibrated = summary["probabilities"]["calibrated"]
    losses = summary["probabilities"]
    assert calibrated == (losses["log_loss"] <= losses["log_loss_of_share"])
    assert ("the model was saved without a calibrator" in text) != calibrated
    assert (load_model(collection / "lost" / "model.json").calibrator_ is not None) == calibrated
    with open(collection / "lost" / "probabilities.csv", newline="") as stream:
        assert all(bool(row["probability"]) == calibrated for row in csv.DictReader(stream))


def test_the_pipeline_says_when_ids_do_not_agree(collection, capsys):
    (collection / "qrels").write_text("other 0 d1 1\n")
    words = ["text", "pipeline", "--documents", str(collection / "d.jsonl"), "--queries", str(collection / "q.jsonl")]
    words += ["--qrels", str(collection / "qrels"), "--ranker", "adarank", "--out", str(collection / "out")]
    assert main(words) == 1
    assert "Check that the ids of both files agree" in capsys.readouterr().err


def test_documents_are_added_to_a_query_as_directions():
    rows = np.array([[3.0, 0.0], [0.0, 0.5]], dtype=np.float32)
    half = 0.5**0.5
    assert add_documents(np.array([0.0, 4.0]), rows) == pytest.approx([half, 1 + half])
    assert add_documents(np.array([0.0, 4.0]), rows[:0]) == pytest.approx([0.0, 1.0])


def test_the_commands_for_single_steps(collection, capsys):
    index, queries = str(collection / "index"), str(collection / "q.jsonl")
    assert main(["text", "index", str(collection / "d.jsonl"), "-o", index, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == 80
    run = collection / "first.run"
    assert (
        main(["text", "search", index, queries, "--function", "dirichlet(mu=50)", "--depth", "5", "-o", str(run)]) == 0
    )
    assert np.diff(read_run(run).offsets).max() == 5
    words = ["text", "features", "--index", index, "--queries", queries, "--qrels", str(collection / "qrels"), "--json"]
    assert main([*words, "--families", "xu-li", "-o", str(collection / "f.txt")]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["queries"], summary["features"]) == (15, 7)
    data = read_letor(collection / "f.txt")
    assert data.feature_names[0] == "xu-li-tf.all"
    assert main(["text", "features", "--index", index, "-o", str(collection / "g.txt")]) == 2
    assert "--index requires queries" in capsys.readouterr().err


def test_queries_that_find_nothing_or_are_not_judged_are_named(collection, capsys):
    index, queries = str(collection / "index"), collection / "more.jsonl"
    assert main(["text", "index", str(collection / "d.jsonl"), "-o", index]) == 0
    known = (collection / "q.jsonl").read_text().rstrip("\n") + "\n"
    text = json.loads(known.splitlines()[0])["text"]
    queries.write_text(known + json.dumps({"id": "new", "text": text}) + '\n{"id": "odd", "text": "xyzzy"}\n')
    capsys.readouterr()
    assert main(["text", "search", index, str(queries), "-o", str(collection / "more.run")]) == 0
    assert "no document was found for 1 query: odd" in capsys.readouterr().err
    words = ["text", "features", "--index", index, "--queries", str(queries), "--qrels", str(collection / "qrels")]
    assert main([*words, "--families", "xu-li", "-o", str(collection / "f.txt")]) == 0
    out = capsys.readouterr().err
    assert "no document was found for 1 query: odd" in out
    assert "all rows of 1 unjudged query have grade 0: new" in out
