"""Indexes and retrieval functions against their formulas, against libraries, and over kills."""

from __future__ import annotations

import json
import random
import warnings

import numpy as np
import pytest

from reference.retrieval import FORMULAS, Collection
from support.processes import run
from support.refusals import refused
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.locks import OPEN_FILES_MOVE
from truerank.io.documents import Document, read_documents, read_judgements, read_queries
from truerank.io.trec import judge_run
from truerank.measures import parse_measure
from truerank.text.index import Index, build_index
from truerank.text.retrieval import parse_function, retrieve
from truerank.text.retrieval_functions import query_weights
from truerank.text.topic_classifiers import WordCounts


def documents_of(texts):
    return [Document(f"d{number}", {"text": text}, {}, {}) for number, text in enumerate(texts)]


@pytest.fixture(scope="module")
def made_up():
    draw = random.Random(3)
    words = [f"w{int(draw.paretovariate(0.7))}" for _ in range(3000)]
    texts = [" ".join(draw.choices(words, k=draw.randrange(1, 60))) for _ in range(120)]
    queries = [" ".join(draw.choices(words, k=draw.randrange(1, 8))) for _ in range(25)]
    return texts, queries


@pytest.fixture(scope="module")
def index(made_up, tmp_path_factory):
    return build_index(documents_of(made_up[0]), tmp_path_factory.mktemp("index") / "i", analysers=["plain"])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("bm25", {}),
        ("bm25", {"k1": 0.9, "b": 0.4, "k3": 100.0, "idf": "atire"}),
        ("bm25", {"idf": "robertson"}),
        ("tfidf", {"k1": 2.0, "b": 0.2}),
        ("cosine", {}),
        ("dirichlet", {"mu": 30.0}),
        ("jelinek-mercer", {"lam": 0.7}),
    ],
)
def test_scores_are_those_of_the_formulas(made_up, index, name, parameters):
    texts, queries = made_up
    collection = Collection(texts)
    text = f"{name}({', '.join(f'{key}={value}' for key, value in (parameters | {'analyser': 'plain'}).items())})"
    found = retrieve(index, dict(enumerate(queries)), text).to_dict()
    for number, query in enumerate(queries):
        wanted = collection.scores(query, FORMULAS[name], **parameters)
        assert found[str(number)] == pytest.approx({f"d{d}": s for d, s in wanted.items()}, abs=1e-11)
        assert list(found[str(number)].values()) == sorted(found[str(number)].values(), reverse=True)


def test_latent_cosines_are_those_of_the_singular_vectors(made_up, index):
    texts, queries = made_up
    words = sorted({word for text in texts for word in text.split()})
    counts = np.array([[text.split().count(word) for word in words] for text in texts], dtype=float)
    idf = np.log(len(texts) / (counts > 0).sum(axis=0))
    weighted = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
    weighted /= np.sqrt((weighted**2).sum(axis=1, keepdims=True))
    left, values, right = np.linalg.svd(weighted)
    k = 10
    rows = left[:, :k] * values[:k]
    for number, found in (
        retrieve(index, dict(enumerate(queries)), f"latent(dimensions={k}, analyser=plain)").to_dict().items()
    ):
        asked = queries[int(number)].split()
        vector = right[:k] @ (np.array([asked.count(word) for word in words]) * idf)
        cosines = rows @ vector / np.sqrt((rows**2).sum(axis=1) * (vector**2).sum())
        wanted = {f"d{d}": value for d, value in enumerate(cosines) if value > 1e-3}
        assert {name: value for name, value in found.items() if value > 1e-3} == pytest.approx(wanted, abs=1e-3)
        assert list(found.values()) == sorted(found.values(), reverse=True)


def test_the_latent_function_finds_documents_without_the_querys_words(tmp_path):
    texts = ["car engine wheel", "automobile engine wheel", "car engine", "automobile wheel"]
    texts += ["banana fruit", "apple fruit", "fruit"]
    index = build_index(documents_of(texts), tmp_path / "i", analysers=["plain"])
    found = retrieve(index, {"q": "car", "none": "sound"}, "latent(dimensions=2, analyser=plain)").to_dict()
    assert found["q"].keys() == {"d0", "d1", "d2", "d3"}
    assert found["none"] == {}


def test_the_best_are_kept_with_ties_in_the_order_of_documents(tmp_path):
    texts = ["a b"] * 7 + ["a a b b b"] + ["a b"] * 5
    index = build_index(documents_of(texts), tmp_path / "i", analysers=["plain"])
    for depth in range(1, 14):
        ids = retrieve(index, {"q": "a"}, "bm25(analyser=plain)", depth=depth).doc_ids.tolist()
        order = retrieve(index, {"q": "a"}, "bm25(analyser=plain)").doc_ids.tolist()
        assert ids == order[:depth]
    assert [name for name in order if name != "d7"] == [f"d{n}" for n in range(13) if n != 7]


@pytest.mark.parametrize("name", ["bm25", "dirichlet"])
def test_a_query_leaves_nothing_behind_for_the_next(made_up, index, name):
    """Rare words take the way over their postings, many words the one over all documents; both sort all scores."""
    function = parse_function(f"{name}(analyser=plain)")
    queries = ["w2", " ".join(made_up[0][:40]), "w3 w4", made_up[0][0], "w2"]
    for depth in (1, 7, 1000):
        found = retrieve(index, dict(enumerate(queries)), function, depth=depth)
        for number, query in enumerate(queries):
            scores, matched = np.zeros(index.n_documents), np.zeros(index.n_documents, dtype=np.uint8)
            function.score(index, query_weights(index, query, "plain"), scores, matched)
            order = [d for d in np.argsort(-scores, kind="stable") if matched[d]][:depth]
            part = slice(*found.offsets[number : number + 2])
            assert found.doc_ids[part].tolist() == [f"d{d}" for d in order]
            assert found.scores[part].tolist() == scores[order].tolist()


def test_words_and_ids_are_found_among_their_prefixes(tmp_path):
    words = ["a", "ab", "abc", "b", "é", "éa", "zz", "zzz"]
    index = build_index(documents_of(words), tmp_path / "i", analysers=["plain"])
    assert [index.terms(word, "plain") for word in words] == [[number] for number in range(len(words))]
    assert [index.terms(word, "plain") for word in ("aba", "abcd", "z", "êa", "zzzz")] == [[]] * 5
    assert [index.document_number(name) for name in ("d", "d0", "d7", "d8", "")] == [-1, 0, 7, -1, -1]


def test_threads_do_not_change_a_bit(made_up, index):
    queries = dict(enumerate(made_up[1]))
    one, two = (retrieve(index, queries, "dirichlet(analyser=plain)", n_jobs=n) for n in (1, 2))
    assert one.scores.tobytes() == two.scores.tobytes()
    assert one.doc_ids.tolist() == two.doc_ids.tolist()


def test_unknown_words_empty_queries_and_stop_words_find_nothing(tmp_path):
    index = build_index(documents_of(["the heat", "heat"]), tmp_path / "i")
    run = retrieve(index, {"1": "nothing", "2": "", "3": "the", "4": "HEATED nothing"})
    assert [len(documents) for documents in run.to_dict().values()] == [0, 0, 0, 2]


def test_an_id_that_came_before_is_refused(tmp_path):
    with refused(InvalidInputError, argument="documents"):
        build_index([Document(name, {"text": "x"}, {}, {}) for name in "aba"], tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_fields_are_counted_apart_and_together(tmp_path):
    documents = [
        Document("a", {"title": "wing", "text": "wing flow flow"}, {"year": 1960.0}, {"v": [1.0, 0.0]}),
        Document("b", {"text": "heat"}, {}, {}),
    ]
    index = build_index(documents, tmp_path / "i", analysers=["plain"])
    assert index.fields == ["title", "text"]
    assert index.postings("plain").lengths.tolist() == [4, 1]
    assert index.postings("plain", "title").lengths.tolist() == [1, 0]
    assert index.postings("plain", "text").totals.tolist() == [1, 2, 1]
    assert index.numbers["year"][0] == 1960.0
    assert np.isnan(index.numbers["year"][1])
    assert index.vectors["v"].tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert retrieve(index, {"q": "wing"}, "bm25(analyser=plain, field=text)").doc_ids.tolist() == ["a"]
    with refused(InvalidInputError, argument="field"):
        retrieve(index, {"q": "wing"}, "bm25(analyser=plain, field=body)")


def test_cosine_equals_scikit_learns(made_up, index):
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, queries = made_up
    vectors = TfidfVectorizer(sublinear_tf=True, smooth_idf=False, token_pattern=r"[^\W_]+").fit(texts)
    theirs = (vectors.transform(queries) @ vectors.transform(texts).T).toarray()
    for row, found in zip(
        theirs, retrieve(index, dict(enumerate(queries)), "cosine(analyser=plain)").to_dict().values()
    ):
        assert found == pytest.approx({f"d{d}": s for d, s in enumerate(row) if s > 0}, abs=1e-12)


@pytest.mark.peers
@pytest.mark.parametrize("method", ["lucene", "atire"])
def test_bm25_equals_bm25s(made_up, index, method):
    bm25s = pytest.importorskip("bm25s")
    texts, queries = made_up
    peer = bm25s.BM25(method=method, k1=1.5, b=0.6, dtype="float64")
    peer.index([text.split() for text in texts], show_progress=False)
    # bm25s's "lucene" is Lucene's since version 8, without the constant factor k1 + 1; it has no k3, so that a word
    # that stands twice in a query counts twice.
    factor = 2.5 if method == "lucene" else 1.0
    ours = retrieve(
        index, dict(enumerate(queries)), f"bm25(k1=1.5, b=0.6, k3=inf, idf={method}, analyser=plain)"
    ).to_dict()
    for query, found in zip(queries, ours.values()):
        theirs = peer.get_scores(query.split())
        wanted = {f"d{d}": factor * score for d, score in enumerate(theirs) if score > 0}
        assert {name: score for name, score in found.items() if score > 0} == pytest.approx(wanted, abs=1e-9)


def test_lambda_is_a_parameter_and_may_be_a_field():
    function = parse_function("jelinek-mercer(lambda = 0.3, field=lambda)")
    assert (function.lam, function.field) == (0.3, "lambda")


def test_a_function_that_is_not_known_is_refused_with_what_is():
    with refused(InvalidInputError, code="unknown-name"):
        parse_function("bm26")
    with refused(InvalidInputError, code="unknown-setting"):
        parse_function("bm25(k9=1)")
    with refused(InvalidInputError, code="setting"):
        parse_function("bm25(k1=high)")
    with refused(InvalidInputError, argument="b"):
        parse_function("bm25(b=2)")
    with refused(InvalidInputError, code="setting"):
        parse_function("latent(dimensions=1.5)")
    with refused(InvalidInputError, argument="dimensions"):
        parse_function("latent(dimensions=301)")
    with refused(InvalidInputError, argument="field"):
        parse_function("latent(field=title)")


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


KILLED = """
import os, sys
from truerank.io.documents import read_documents
from truerank.text.index import build_index
def some():
    for number, document in enumerate(read_documents(sys.argv[1])):
        if number == 1_000:
            os._exit(9)  # at once, as a kill does
        yield document
build_index(some(), sys.argv[2])
"""


def test_a_second_run_after_a_kill_ends_with_the_same_bytes(tmp_path):
    lines = "".join(f'{{"id": "{n}", "text": "word{n % 97} and word{n % 89} flow"}}\n' for n in range(1_500))
    (tmp_path / "d.jsonl").write_text(lines)
    assert run(KILLED, str(tmp_path / "d.jsonl"), str(tmp_path / "i")).returncode == 9
    assert not (tmp_path / "i").exists()
    assert (tmp_path / ".i.partial" / "tokens.raw").exists()
    with refused(DataFileError, code="not-an-index"):
        Index(tmp_path / "i")
    build_index(read_documents(tmp_path / "d.jsonl"), tmp_path / "i")
    build_index(read_documents(tmp_path / "d.jsonl"), tmp_path / "other")
    assert bytes_of(tmp_path / "i") == bytes_of(tmp_path / "other")
    assert not (tmp_path / ".i.partial").exists()


def test_a_run_that_fails_leaves_the_old_index(tmp_path):
    build_index(documents_of(["heat"]), tmp_path / "i")
    before = bytes_of(tmp_path / "i")

    def broken():
        yield Document("a", {"text": "flow"}, {}, {})
        raise DataFileError("a bad line", "d.jsonl", 2)

    with pytest.raises(DataFileError, match="a bad line"):
        build_index(broken(), tmp_path / "i")
    assert bytes_of(tmp_path / "i") == before
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "letter").write_text("keep")
    with refused(InvalidInputError, code="exists"):
        build_index(documents_of(["heat"]), tmp_path / "notes")
    with refused(InvalidInputError, code="field"):
        build_index(documents_of(["heat"]), tmp_path / "i", fields=["text", "titel"])
    assert bytes_of(tmp_path / "i") == before


def test_two_runs_do_not_write_one_index_at_once(tmp_path):
    def documents():
        yield from documents_of(["flow"])
        with refused(InvalidInputError, code="locked"):
            build_index(documents_of(["heat"]), tmp_path / "i")

    build_index(documents(), tmp_path / "i")
    build_index(documents_of(["flow"]), tmp_path / "other")
    assert bytes_of(tmp_path / "i") == bytes_of(tmp_path / "other")


def test_an_index_that_was_replaced_while_it_was_open_is_not_mixed_with_the_new_one(tmp_path):
    """Its files are opened as they are needed, and what is derived from them is kept in its folder."""
    index = build_index(documents_of(["heat flow", "flow of air"]), tmp_path / "i")
    if not OPEN_FILES_MOVE:
        with refused(InvalidInputError, code="index-open"):
            build_index(documents_of(["water", "air and water"]), tmp_path / "i")
        return
    build_index(documents_of(["water", "air and water"]), tmp_path / "i")
    for use in (
        lambda: index.postings("plain"),
        lambda: index.tokens,
        lambda: retrieve(index, {"1": "flow"}, "cosine"),
    ):
        with refused(DataFileError, code="replaced"):
            use()
    index = Index(tmp_path / "i")
    found = retrieve(index, {"1": "air"}, "cosine")
    assert found.doc_ids.tolist() == ["d1"]
    (tmp_path / "i").rename(tmp_path / "aside")  # between the two renames of another run
    with refused(DataFileError, code="replaced"):
        index.derived("ones", lambda: np.ones(2))


def test_a_damaged_index_is_refused(tmp_path):
    build_index(documents_of(["heat", "flow"]), tmp_path / "i")
    (tmp_path / "i" / "documents.ends.npy").write_bytes(b"\x93NUMPY")
    with refused(DataFileError, code="damaged"):
        Index(tmp_path / "i")


@pytest.mark.data
@pytest.mark.parametrize(
    ("folder", "files", "expected"),
    [
        ("cranfield", ("cran.all.1400.gz", "cran.qry.gz", "cranqrel.gz"), (1400, 225, 0.3220)),
        ("cisi", ("CISI.ALL.gz", "CISI.QRY.gz", "CISI.REL.gz"), (1460, 112, 0.2178)),
        ("npl", ("doc-text.trec.gz", "query-text.trec.gz", "qrels.gz"), (11429, 93, 0.2887)),
    ],
)
def test_collections_are_read_as_they_are_distributed(collections, tmp_path, folder, files, expected):
    documents, queries, judgements = (collections / folder / name for name in files)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two documents of Cranfield have no text
        index = build_index(read_documents(documents), tmp_path / "i", analysers=["porter-stop"])
    asked = read_queries(queries)
    judged, scores = judge_run(read_judgements(judgements), retrieve(index, asked))
    ap = parse_measure("AP", convention="trec").mean(judged, scores)
    assert (index.n_documents, len(asked)) == expected[:2]
    assert ap == pytest.approx(expected[2], abs=1e-4)


def test_ids_of_any_letters_come_back(tmp_path):
    documents = [Document(name, {"text": "heat"}, {}, {}) for name in ("é", "日本", "a")]
    index = build_index(documents, tmp_path / "i")
    assert index.document_ids([2, 0, 1]).tolist() == ["a", "é", "日本"]
    assert index.document_ids().tolist() == ["é", "日本", "a"]
    assert [index.document_number(name) for name in ("日本", "b")] == [1, -1]


@pytest.mark.parametrize("number", [2**30, -1, 3])
def test_postings_that_do_not_fit_are_refused(tmp_path, number):
    index = build_index([Document(name, {"text": "cat dog"}, {}, {}) for name in "abc"], tmp_path / "index")
    analyser = index.analysers[0]
    path = tmp_path / "index" / f"{analyser}.0.documents.npy"
    documents = np.load(path)
    documents[:] = number
    np.save(path, documents)
    with refused(DataFileError, code="damaged"):
        Index(tmp_path / "index").postings(analyser)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("terms.plain.ends", lambda values: values.__setitem__(1, -(2**40))),
        ("terms.plain.sorted", lambda values: values.__setitem__(0, 2**30)),
        ("documents.ends", lambda values: values.__setitem__(1, 2**40)),
        ("tokens", lambda values: values.__setitem__(0, -1)),
        ("part-ends", lambda values: values.__setitem__(0, 2**40)),
        ("parts", lambda values: values.__setitem__(1, -3)),
        ("terms.porter.of", lambda values: values.__setitem__(0, 2**30)),
        ("parts", lambda values: values.astype(np.float64)),
        ("documents.ends", lambda values: values[None]),
    ],
)
def test_numbers_that_compiled_loops_take_as_places_are_checked(tmp_path, name, change):
    build_index([Document(one, {"text": "cat dog"}, {}, {}) for one in "abc"], tmp_path / "index")
    values = np.load(tmp_path / "index" / f"{name}.npy")
    changed = change(values)
    np.save(tmp_path / "index" / f"{name}.npy", values if changed is None else changed)
    with refused(DataFileError, code="damaged"):
        index = Index(tmp_path / "index")
        index.terms("cat", "plain"), index.tokens, index.ends, index.term_of_word("porter")


@pytest.mark.parametrize("header", [b"{", b"\x93NUMPY\x01\x00\x06\x00{'a': (", b""])
def test_a_damaged_header_of_an_array_is_refused(tmp_path, header):
    build_index([Document(one, {"text": "cat dog"}, {}, {}) for one in "abc"], tmp_path / "index")
    (tmp_path / "index" / "terms.plain.ends.npy").write_bytes(header)
    with refused(DataFileError, code="damaged"):
        Index(tmp_path / "index")


def test_a_header_without_its_entries_is_refused(tmp_path):
    build_index([Document(one, {"text": "cat dog"}, {}, {}) for one in "abc"], tmp_path / "index")
    place = tmp_path / "index" / "index.json"
    whole = json.loads(place.read_text(encoding="utf-8"))
    for key in ("documents", "fields", "analysers", "numbers", "vectors"):
        for changed in ({k: v for k, v in whole.items() if k != key}, whole | {key: 5}):
            place.write_text(json.dumps(changed), encoding="utf-8")
            with refused(DataFileError, code="damaged"):
                Index(tmp_path / "index")


def test_forms_of_one_letter_are_one_word(tmp_path):
    # A decomposed accent, full-width letters and a ligature are found by their plain forms, and the other way round.
    texts = {"a": "Cafe\u0301 noir", "b": "\uff34\uff36 set", "c": "the \ufb01sh", "d": "caf\u00e9"}
    index = build_index([Document(name, {"text": text}, {}, {}) for name, text in texts.items()], tmp_path / "index")
    queries = {"1": "caf\u00e9", "2": "tv", "3": "fish", "4": "cafe\u0301"}
    run = retrieve(index, queries, "bm25(analyser=plain)").to_dict()
    assert [set(run[name]) for name in queries] == [{"a", "d"}, {"b"}, {"c"}, {"a", "d"}]
    words = WordCounts(min_documents=1).fit(["Cafe\u0301 caf\u00e9"])
    assert words.vocabulary_.tolist() == ["caf\u00e9"]
    assert words.transform(["CAFE\u0301"]).toarray().tolist() == [[1.0]]
