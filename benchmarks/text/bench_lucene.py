"""MAP of each retrieval function beside Lucene's and scikit-learn's on Cranfield, CISI and NPL, from the same terms.

    TRUERANK_DATA=… LUCENE_JAR=lucene-core-8.11.4.jar python -m benchmarks text/bench_lucene

Documents and queries are analysed here (Porter's stems without stop words) and given to the peers as terms. Lucene
keeps a document's length in one byte, exact up to 39 terms; its language models take cf/|C| as the collection's
probability, as ours, in place of Lucene's (cf + 1)/(|C| + 1); its tf-idf (`ClassicSimilarity`) is another formula than
ours. scikit-learn's cosines are of `TfidfVectorizer(sublinear_tf=True, smooth_idf=False)`. Needs a JDK of 17 or newer.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.text.bench_collections import FILES
from truerank import evaluate, retrieve
from truerank.io.documents import read_documents, read_judgements, read_queries
from truerank.io.trec import Qrels
from truerank.text.analysers import STEMMED_AND_STOPPED, WORD, term_of
from truerank.text.index import build_index

OURS = {"bm25": "bm25(k3=inf)"} | {name: name for name in ("tfidf", "dirichlet", "jelinek-mercer", "cosine")}
Runs = dict[str, dict[str, dict[str, float]]]


def lucene(documents: Mapping[str, str], queries: Mapping[str, str]) -> Runs:
    """Lucene's scores by function, query and document; texts are terms with blanks between them."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, texts in (("documents", documents), ("queries", queries)):
            files.append(Path(folder) / name)
            files[-1].write_text("".join(f"{key}\t{text}\n" for key, text in texts.items()), encoding="utf-8")
        program = Path(__file__).parent / "LuceneRuns.java"
        command = ["java", "-cp", os.environ["LUCENE_JAR"], str(program), *map(str, files)]
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    runs: Runs = {name: {query: {} for query in queries} for name in OURS if name != "cosine"}
    for line in output.splitlines():
        function, query, document, score = line.split("\t")
        runs[function][query][document] = float(score)
    return runs


def scikit_learn(documents: Mapping[str, str], queries: Mapping[str, str]) -> Runs:
    """The best 1,000 cosines of scikit-learn's vectors, as `lucene` gives them."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, smooth_idf=False, token_pattern=r"\S+")
    matrix, names = vectorizer.fit_transform(documents.values()), list(documents)
    run: dict[str, dict[str, float]] = {}
    for query, text in queries.items():
        scores = (matrix @ vectorizer.transform([text]).T).toarray().ravel()
        best = np.argsort(-scores, kind="stable")[:1000]
        run[query] = {names[d]: float(scores[d]) for d in best if scores[d] > 0}
    return {"cosine": run}


def analysed(text: str) -> str:
    """The terms of a text, letters and digits alone, so that Lucene's analyser leaves them as they are."""
    return " ".join(filter(None, term_of(STEMMED_AND_STOPPED)(re.findall(WORD, text.lower()))))


def run() -> None:
    if "TRUERANK_DATA" not in os.environ or "LUCENE_JAR" not in os.environ:
        print("set TRUERANK_DATA to the folder of the collections and LUCENE_JAR to lucene-core's jar")
        return
    print(f"| MAP | {' | '.join(OURS)} |\n| --- |{' --- |' * len(OURS)}")
    for name, given in FILES.items():
        documents, queries, judgements = (Path(os.environ["TRUERANK_DATA"]) / name / file for file in given)
        qrels = read_judgements(documents.with_name(judgements.name))
        asked = [query for query in read_queries(queries) if query.id in set(qrels.query_ids.tolist())]
        texts = {document.id: analysed(" ".join(document.text.values())) for document in read_documents(documents)}
        terms = {query.id: analysed(query.text["text"]) for query in asked}
        with tempfile.TemporaryDirectory() as folder:
            index = build_index(read_documents(documents), Path(folder) / "index")
            ours = {key: retrieve(index, asked, function) for key, function in OURS.items()}
        found: dict[str, Any] = {"truerank": ours, "Lucene": lucene(texts, terms)}
        for title, runs in (found | {"scikit-learn": scikit_learn(texts, terms)}).items():
            cells = [f"{mean_average_precision(qrels, runs[key]):.4f}" if key in runs else "" for key in OURS]
            print(f"| {name}, {title} | {' | '.join(cells)} |", flush=True)


def mean_average_precision(qrels: Qrels, run: Any) -> float:
    """Over all judged queries, those that the run lacks included."""
    return evaluate(qrels, run, "AP(missing_topics=zero)")["AP(missing_topics=zero)"]


if __name__ == "__main__":
    run()
