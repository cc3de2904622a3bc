"""Collections of held-out scores for `bench_collections`: what a calibrator is fitted to, and what it is tested on.

Digits, wine, iris and breast cancer ship with scikit-learn (halves by a draw); the text of twenty topics is made up:
words come in bursts (Dirichlet-multinomial). The others are folders of TRUERANK_DATA: Reuters' documents of a single
topic by the ModApte split; rankers over LETOR's sets, cross-fitted by query; runs of TREC-9 and BM25 on three small
collections, whose odd queries are trained on and whose even ones test; scores of RankBoost, RankNet and a ranking SVM
that others made in 2015, likewise.
"""

from __future__ import annotations

import csv
import gzip
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from truerank.calibration.classifier import class_scores, classifier_scores
from truerank.calibration.ranker import cross_fitted_scores

ROOT = Path(os.environ.get("TRUERANK_DATA", "."))
PEERS = ("sigmoid", "isotonic", "temperature")


@dataclass(frozen=True)
class HeldOutScores:
    """Scores of rows that the scoring model has not seen, with their classes, and new ones to test on.

    Attributes
    ----------
    scores, new : float64 array (n,) for two classes, or (n, K)
    y, y_test : int64 array (n,)
        Classes from 0.
    groups, test_groups : int64 array (n,), optional
        Number of each row's query.
    raw : bool
        Whether the scores are log-odds, or log probabilities, as they are.
    peers : dict of name to float64 array (n, K)
        Probabilities of the test rows by scikit-learn's CalibratedClassifierCV with each of its methods.
    """

    scores: np.ndarray
    y: np.ndarray
    new: np.ndarray
    y_test: np.ndarray
    groups: np.ndarray | None
    test_groups: np.ndarray | None
    raw: bool
    peers: dict[str, np.ndarray]


def of_classifier(
    X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray, make: Any, methods: tuple[str, ...] = PEERS
) -> HeldOutScores:
    """Scores by five folds of the training rows, and by the classifier of all of them for the test rows."""
    classes, index = np.unique(y, return_inverse=True)
    known = np.flatnonzero(np.isin(y_test, classes))
    X_test, test = X_test[known], np.searchsorted(classes, y_test[known])
    two = len(classes) == 2

    def score(fitted: Any, rows: Any) -> np.ndarray:
        return classifier_scores(fitted, rows) if two else class_scores(fitted, rows)[0]

    whole = clone(make).fit(X, index)
    scores = np.empty((len(y), *([] if two else [len(classes)])))
    for train, held in StratifiedKFold(5).split(scores, index):
        scores[held] = score(clone(make).fit(X[train], index[train]), X[held])
    peers = {m: CalibratedClassifierCV(clone(make), method=m).fit(X, index).predict_proba(X_test) for m in methods}
    return HeldOutScores(
        scores, index, score(whole, X_test), test, None, None, class_scores(whole, X_test[:1])[1], peers
    )


def of_queries(scores: np.ndarray, relevant: np.ndarray, query: np.ndarray, test: np.ndarray) -> HeldOutScores:
    """Scores of documents, the queries of `test` (bool, one a row) to test on."""
    y = relevant.astype(np.int64)
    return HeldOutScores(scores[~test], y[~test], scores[test], y[test], query[~test], query[test], False, {})


BUNDLED_CLASSIFIERS = {
    "linear SVM": make_pipeline(StandardScaler(), LinearSVC(C=0.01, random_state=0, max_iter=100_000)),
    "Gaussian naive Bayes": GaussianNB(var_smoothing=1e-3),
}
TEXT_CLASSIFIERS = {
    "linear SVM": make_pipeline(TfidfTransformer(sublinear_tf=True), LinearSVC()),
    "naive Bayes": MultinomialNB(),
}


def bundled(load: Callable[..., Any], make: Any, seed: int = 7, methods: tuple[str, ...] = PEERS) -> HeldOutScores:
    """A set that ships with scikit-learn, in halves drawn by `seed`."""
    X, y = load(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    return of_classifier(X[train], y[train], X[test], y[test], make, methods)


@cache
def made_up_text() -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Counts of words and topics, to train on and to test on."""
    rng = np.random.default_rng(1)
    base = rng.dirichlet(np.full(3000, 0.05))
    topics = np.array([rng.dirichlet(base * 300 + 1e-4) for _ in range(20)])

    def draw(n: int) -> tuple[Any, np.ndarray]:
        y = rng.integers(20, size=n)
        p = [rng.dirichlet((0.65 * base + 0.35 * topics[k]) * 60 + 1e-6) for k in y]
        return sparse.csr_matrix([rng.multinomial(int(rng.lognormal(4, 0.7)), row) for row in p], dtype=float), y

    return *draw(2500), *draw(2500)


@cache
def reuters(least: int) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Counts of words and topics of documents of a single topic, for topics of so many training documents."""
    from reproductions.calibration.reuters import modapte_split, read_reuters

    parts = modapte_split(read_reuters(ROOT / "reuters21578"))
    single = [[(d.text, d.topics[0]) for d in part if len(set(d.topics)) == 1] for part in parts]
    frequency = Counter(topic for _, topic in single[0])
    kept = {topic for topic, n in frequency.items() if n >= least}
    (texts, labels), (new, truth) = (zip(*[pair for pair in part if pair[1] in kept]) for part in single)
    counts = CountVectorizer(min_df=3)
    return counts.fit_transform(texts), np.array(labels), counts.transform(new), np.array(truth)


def ranker(folder: str, name: str) -> HeldOutScores:
    """P(relevant) from a ranker: parts S2 to S4 are trained on and S1 tests; of MSLR every other query."""
    from truerank.data.ranking_data import RankingData
    from truerank.io.letor.read import read_letor
    from truerank.models.registry import ranker_class

    if folder.startswith("mslr"):
        data = read_letor(ROOT / folder / "fold1.train.5k.txt.gz")
        train, test = (data.take_queries(np.arange(k, data.n_queries, 2)) for k in (0, 1))
    else:
        parts = [read_letor(next((ROOT / folder).glob(f"S{k}.txt*"))) for k in range(1, 5)]
        train, test = RankingData.concatenate(parts[1:]), parts[0]
    fitted = ranker_class(name)().fit(train)
    scores = cross_fitted_scores(ranker_class(name)(), train, fitted=fitted)
    new = test.grouped(fitted.predict(test))
    relevant = [(part.y >= 1).astype(np.int64) for part in (train, test)]
    return HeldOutScores(scores, relevant[0], new, relevant[1], train.query_index, test.query_index, False, {})


def judged_run(qrels: Any, run: Any) -> HeldOutScores:
    """P(relevant) from the scores of a run's judged documents."""
    from truerank.io.trec import judge_run

    judgements, scores = judge_run(qrels, run)
    query = np.repeat(np.arange(len(judgements.offsets) - 1), np.diff(judgements.offsets))
    kept = np.flatnonzero(judgements.judged)
    return of_queries(scores[kept], judgements.grades[kept] >= 1, query[kept], query[kept] % 2 == 1)


def trec_run(place: float) -> HeldOutScores:
    """A run of TREC-9, by its place in the order of MAP: 1 the best, 0.5 the median."""
    from truerank.io.trec import read_qrels, read_run

    folder = ROOT / "trec9-web-runs"
    with open(folder / "runs.csv", encoding="utf-8") as stream:
        names = [row["run"] for row in sorted(csv.DictReader(stream), key=lambda row: float(row["map"]))]
    name = names[round(place * (len(names) - 1))]
    return judged_run(
        read_qrels(next(folder.glob("qrels.451-500.txt*"))), read_run(next((folder / "runs").glob(f"{name}.run*")))
    )


def bm25(folder: str, documents: str, queries: str, qrels: str) -> HeldOutScores:
    """BM25's best hundred documents of each judged query; what is not judged is not relevant."""
    from truerank.io.documents import read_documents, read_judgements, read_queries
    from truerank.text.index import build_index
    from truerank.text.retrieval import retrieve

    judged = read_judgements(ROOT / folder / qrels).to_dict()
    with tempfile.TemporaryDirectory() as index:
        texts = [query for query in read_queries(ROOT / folder / queries) if query.id in judged]
        run = retrieve(build_index(read_documents(ROOT / folder / documents), index), texts, depth=100)
    query = np.repeat(np.arange(run.n_queries), np.diff(run.offsets))
    names, ids = run.query_ids.tolist(), run.doc_ids.tolist()
    relevant = np.array([judged[names[q]].get(doc, 0) > 0 for q, doc in zip(query, ids)])
    return of_queries(run.scores, relevant, query, query % 2 == 1)


def rerun(file: str, column: str) -> HeldOutScores:
    """Scores of 2015 of the test queries of fold 1, every other query to test on."""
    with gzip.open(ROOT / "letor-rerun-scores" / file, "rt", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["fold"] == "1"]
    query = np.unique([row["qid"] for row in rows], return_inverse=True)[1]
    scores = np.array([float(row[column]) for row in rows])
    return of_queries(scores, np.array([float(row["label"]) >= 1 for row in rows]), query, query % 2 == 1)


BUNDLED = {
    f"{name}, {what}": partial(bundled, load, make)
    for name, load in (
        ("digits", load_digits),
        ("wine", load_wine),
        ("iris", load_iris),
        ("breast cancer", load_breast_cancer),
    )
    for what, make in BUNDLED_CLASSIFIERS.items()
}


def _collections() -> dict[str, Callable[[], HeldOutScores]]:
    found: dict[str, Callable[[], HeldOutScores]] = dict(BUNDLED)
    for what, make in TEXT_CLASSIFIERS.items():
        found[f"made-up text, 20 topics, {what}"] = partial(lambda make: of_classifier(*made_up_text(), make), make)
    if not (ROOT / "reuters21578").is_dir():
        return found
    ohsumed, mq2008 = "letor3-ohsumed/querylevelnorm", "letor4-mq2008"
    for name, folder in (("MSLR", "mslr-web10k-sample"), ("OHSUMED", ohsumed), ("MQ2008", mq2008)):
        found |= {f"{name}, {what}": partial(ranker, folder, what) for what in ("ridge", "rank-svm")}
    found |= {"TREC-9, best run": partial(trec_run, 1.0), "TREC-9, median run": partial(trec_run, 0.5)}
    for name, *files in (
        ("Cranfield", "cranfield", "cran.all.1400.gz", "cran.qry.gz", "cranqrel.gz"),
        ("CISI", "cisi", "CISI.ALL.gz", "CISI.QRY.gz", "CISI.REL.gz"),
        ("NPL", "npl", "doc-text.trec.gz", "query-text.trec.gz", "qrels.gz"),
    ):
        found[f"{name}, BM25"] = partial(bm25, *files)
    for name, file in (("MQ2008", "mq2008.csv.gz"), ("OHSUMED", "ohsumed.csv.gz")):
        for column in ("rankboost", "ranknet", "svm_rank"):
            found[f"{name}, {column} of 2015"] = partial(rerun, file, column)
    for least in (100, 20):
        for what, make in TEXT_CLASSIFIERS.items():
            found[f"Reuters, topics of {least} documents and more, {what}"] = partial(
                lambda least, make: of_classifier(*reuters(least), make), least, make
            )
    return found


COLLECTIONS = _collections()
