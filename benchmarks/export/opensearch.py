"""Cranfield in a live OpenSearch: ten logged features, four kinds of model as Painless, orders, scores and latency.

    python -m benchmarks.export.opensearch http://127.0.0.1:9200 CRANFIELD_FOLDER

Makes the index `truerank-cranfield` and scripts of that prefix, and deletes them at the end.
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

import numpy as np

from truerank import AdaRank, CalibratedRanker, ObliviousBoosting, RankBoost, RankingData, RidgeRanker
from truerank.core.printing import table
from truerank.export.deployment import deploy
from truerank.export.verification import log_features, verify
from truerank.io.engine import Engine
from truerank.trees.leaves.fuzzy import FuzzyLeaves

INDEX = "truerank-cranfield"
WINDOW = 200
QUERIES = {
    "base": {"multi_match": {"query": "{{query}}", "fields": ["title", "text"]}},
    "features": {
        "text": {"match": {"text": "{{query}}"}},
        "title": {"match": {"title": "{{query}}"}},
        "text_all": {"match": {"text": {"query": "{{query}}", "minimum_should_match": "50%"}}},
        "title_all": {"match": {"title": {"query": "{{query}}", "minimum_should_match": "50%"}}},
        "text_stems": {"match": {"text.stems": "{{query}}"}},
        "title_stems": {"match": {"title.stems": "{{query}}"}},
        "text_phrase": {"match_phrase": {"text": {"query": "{{query}}", "slop": 50}}},
        "both": {"multi_match": {"query": "{{query}}", "fields": ["title", "text"], "type": "cross_fields"}},
        "most": {"multi_match": {"query": "{{query}}", "fields": ["title.stems", "text.stems"], "type": "most_fields"}},
        "author": {"match": {"author": "{{query}}"}},
    },
}


def read_smart(path: Path) -> list[dict[str, str]]:
    """Records of a SMART file by their letters."""
    with gzip.open(path, "rt", encoding="latin-1") as stream:
        text = stream.read()
    records = []
    for part in re.split(r"^\.I ", text, flags=re.M)[1:]:
        fields = re.split(r"^\.([TABW])\s*$", part, flags=re.M)
        records.append(dict(zip(fields[1::2], (" ".join(own.split()) for own in fields[2::2]))))
    return records


def grades_of(folder: Path) -> dict[tuple[int, str], int]:
    """Cranfield's grades by query number and document id, 4 the best."""
    grades = {}
    with gzip.open(folder / "cranqrel.gz", "rt") as stream:
        judgements = stream.read().splitlines()
    for line in judgements:
        query, document, grade = line.split()[:3]
        if int(grade) > 0:
            grades[int(query), document] = 5 - int(grade)
    return grades


def build(engine: Engine, documents: list[dict[str, str]]) -> None:
    """The index, with stemmed sub-fields."""
    field = {"type": "text", "fields": {"stems": {"type": "text", "analyzer": "english"}}}
    mappings = {"properties": {"id": {"type": "keyword"}, "title": field, "text": field, "author": {"type": "text"}}}
    engine.request("PUT", INDEX, {"settings": {"number_of_shards": 1, "number_of_replicas": 0}, "mappings": mappings})
    for number, own in enumerate(documents, 1):
        body = {"id": str(number), "title": own.get("T", ""), "text": own.get("W", ""), "author": own.get("A", "")}
        engine.request("PUT", f"{INDEX}/_doc/{number}", body)
    engine.request("POST", f"{INDEX}/_refresh")


def main(url: str, folder: str) -> None:
    """Index, log, train on odd queries, deploy, verify on even ones, print."""
    engine = Engine(url)
    documents = read_smart(Path(folder) / "cran.all.1400.gz")
    texts = [own["W"] for own in read_smart(Path(folder) / "cran.qry.gz")]
    grades = grades_of(Path(folder))
    build(engine, documents)
    try:
        names = list(QUERIES["features"])
        X, y, qid = [], [], []
        for number in range(1, len(texts) + 1, 2):
            found, rows = log_features(engine, INDEX, QUERIES, names, texts[number - 1], WINDOW, "id")
            X.append(rows)
            y += [grades.get((number, document), 0) for document in found]
            qid += [number] * len(found)
        data = RankingData(np.concatenate(X), np.array(y), np.array(qid), feature_names=names)
        models = {
            "linear (AdaRank)": AdaRank(measure="AP"),
            "linear (ridge)": RidgeRanker(),
            "RankBoost, 300 stumps": RankBoost(300),
            "100 plain trees": ObliviousBoosting(n_estimators=100, leaves="constant"),
            "100 fuzzy trees": ObliviousBoosting(n_estimators=100, leaves=FuzzyLeaves(places=256)),
            "100 polynomial trees": ObliviousBoosting(n_estimators=100, leaves="polynomial", depth=4),
            "ridge, pooled": CalibratedRanker(RidgeRanker(), random_state=0),
            "100 plain trees, pooled": CalibratedRanker(
                ObliviousBoosting(n_estimators=100, leaves="constant"), random_state=0
            ),
        }
        rows = []
        for k, (title, model) in enumerate(models.items()):
            model.fit(data)
            script = f"{INDEX}-{k}"
            deploy(model, url, script)
            try:
                test = texts[1::2]
                verify(model, url, script, INDEX, QUERIES, test[:5])  # the engine compiles the script
                own = verify(model, url, script, INDEX, QUERIES, test)
            finally:
                engine.request("DELETE", f"_scripts/{script}")
            kilobytes = f"{own.request_bytes / 1000:.0f}"
            rows.append([
                title, f"{own.orders_equal} / {own.queries}", own.documents, f"{own.largest_difference:.1e}",
                f"{own.took_base:.0f}", f"{own.took_rescored:.0f}", kilobytes,
            ])  # fmt: skip
        print(table(rows, ["model", "orders equal", "documents", "difference", "BM25 ms", "rescored ms", "request kB"]))
    finally:
        engine.request("DELETE", INDEX)


if __name__ == "__main__":
    main(*sys.argv[1:3])
